#!/bin/sh
# Builds the LiveKit server beside this script. `go install` refuses a module with replace directives, so a module
# of one's own takes over LiveKit's. Needs Go; 3 minutes of processor time, and 70 MB.
set -eu
version=v1.11.0
here=$(cd "$(dirname "$0")" && pwd)
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
go build -o "$here/livekit-server" github.com/livekit/livekit-server/cmd/server
