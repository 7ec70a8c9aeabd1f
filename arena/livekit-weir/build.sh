#!/bin/sh
# build.sh [--missing | --test | --with PATCH FILE]: builds LiveKit's server with weirbwe and the file for its
# streamallocator beside this script, in livekit-server. Go takes LiveKit's module from its proxy, 360 MB once; the
# change of LiveKit's own code is change.patch. --test also vets and tests both, under the race detector. --with
# applies one more patch, and the server goes to FILE. --missing only prints why it cannot; nothing if it can.
set -eu
version=v1.13.5
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
case ${1:-} in
    '' | --missing | --test) ;;
    --with) [ $# -eq 3 ] || { sed -n '2,5s/^# //p' "$0" >&2 && exit 2; } ;;
    *) sed -n '2,5s/^# //p' "$0" >&2 && exit 2 ;;
esac
missing() {
    if ! command -v go > /dev/null; then
        echo 'no Go: https://go.dev/dl, 1.26 or later'
    elif [ "${1:-}" = --test ] && ! command -v cc > /dev/null; then
        echo 'no C compiler, which the race detector needs: apt-get install gcc'
    else
        "$root/scripts/build/go-wasm.sh" --missing
    fi
}
reason=$(missing "${1:-}")
if [ "${1:-}" = --missing ]; then
    [ -z "$reason" ] || echo "$reason"
    exit
elif [ -n "$reason" ]; then
    echo "livekit-weir: not built: $reason"
    exit
fi
export GOFLAGS=-mod=mod
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$(go mod download -json "github.com/livekit/livekit-server@$version" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
if [ -z "$source" ]; then
    echo "livekit-weir: not built: Go's proxy does not give github.com/livekit/livekit-server@$version"
    exit
fi
[ -f "$root/library/go/weir.wasm" ] && [ -f "$root/library/go/sfu/weir-sfu.wasm" ] || "$root/scripts/build/go-wasm.sh"

cp -r "$source" "$work/livekit"
chmod -R u+w "$work/livekit"
cp -r "$here/weirbwe" "$work/livekit/pkg/sfu/bwe/weirbwe"
cp "$here"/streamallocator/*.go "$work/livekit/pkg/sfu/streamallocator/"
patch --quiet --strip 1 --directory "$work/livekit" < "$here/change.patch"
out=$here/livekit-server
if [ "${1:-}" = --with ]; then
    out=$3
    patch --quiet --strip 1 --directory "$work/livekit" < "$2"
fi
# Without weircc, which would give LiveKit a newer pion than its own.
mkdir -p "$work/weir-go"
cp -r "$root"/library/go/*.go "$root/library/go/weir.wasm" "$root/library/go/history" "$root/library/go/sfu" \
    "$work/weir-go/"
rm -f "$work"/weir-go/*_test.go "$work"/weir-go/*/*_test.go
wazero=$(sed -n 's/^\t\(github.com\/tetratelabs\/wazero v.*\)/\1/p' "$root/library/go/go.mod")
printf 'module weir-go\n\ngo 1.25.0\n\nrequire %s\n' "$wazero" > "$work/weir-go/go.mod"
cd "$work/livekit"
go mod edit -require weir-go@v0.0.0 -replace weir-go=../weir-go -require "$(echo "$wazero" | tr ' ' '@')"
if [ "${1:-}" = --test ]; then
    unformatted=$(gofmt -l pkg/sfu/bwe/weirbwe pkg/sfu/streamallocator)
    [ -z "$unformatted" ] || { echo "livekit-weir: gofmt -w $unformatted" >&2 && exit 1; }
    go vet ./pkg/sfu/bwe/weirbwe ./pkg/sfu/streamallocator
    go test -race ./pkg/sfu/bwe/weirbwe ./pkg/sfu/streamallocator
fi
go build -ldflags='-s -w' -o livekit-server ./cmd/server
mv livekit-server "$out"
