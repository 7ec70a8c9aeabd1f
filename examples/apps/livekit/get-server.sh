#!/bin/sh
# Builds the LiveKit server beside this script, unless it is there; if another one builds it, waits for that.
# `go install` refuses a module with replace directives, so a module of one's own takes over LiveKit's. Needs Go;
# 3 minutes of processor time, 360 MB from Go's module proxy, and 1 GB below Go's own folders.
set -eu
case ${1:-} in
    '') ;;
    --help | -h) sed -n '2,4s/^# //p' "$0" && exit ;;
    *) echo "${0##*/}: unknown argument '$1'; see $0 --help" >&2 && exit 2 ;;
esac
version=v1.13.5
here=$(cd "$(dirname "$0")" && pwd)
exec 9> "$here/.livekit-server.lock"
flock 9
[ ! -x "$here/livekit-server" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOFLAGS=-mod=mod
source=$(go mod download -json "github.com/livekit/livekit-server@$version" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
sed 's|^module .*|module example.com/livekit-under-test|' "$source/go.mod" > go.mod
echo "require github.com/livekit/livekit-server $version" >> go.mod
cat > tools.go <<'T'
//go:build tools

package tools

import _ "github.com/livekit/livekit-server/cmd/server"
T
# Without tables for debuggers it is linked sooner.
go build -ldflags='-s -w' -o livekit-server github.com/livekit/livekit-server/cmd/server
mv livekit-server "$here"
