#!/bin/sh
# Builds the library for WebAssembly and tests the Go module with it, under the race detector: the controllers by the
# vectors of vectors/, or by all of them where `make vectors` has made them, and the parts of weircc. With --calls also calls
# between two pions, which need a quiet machine. With --missing it only prints why it cannot; nothing if it can. Where Go or its
# modules are missing it says so and ends well.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '--missing --calls' "$@"
cd "$(dirname "$0")/../.."

missing() {
    if ! command -v go > /dev/null; then
        echo 'no Go: https://go.dev/dl, 1.25 or later'
    elif ! command -v cc > /dev/null; then
        echo 'no C compiler, which the race detector needs: apt-get install gcc'
    else
        scripts/build/go-wasm.sh --missing
    fi
}
reason=$(missing)
if [ "${1:-}" = --missing ]; then
    [ -z "$reason" ] || echo "$reason"
    exit
elif [ -n "$reason" ]; then
    echo "test-go: skipped: $reason"
    exit
fi
if ! (cd library/go && GOTOOLCHAIN=local go mod download) > /dev/null 2>&1; then
    echo 'test-go: skipped: Go 1.25 or later and a module proxy are needed'
    exit
fi
scripts/build/go-wasm.sh
all=$(realpath -m "${CARGO_TARGET_DIR:-target}")/vectors
[ ! -d "$all" ] || export WEIR_VECTORS="$all"
cd library/go
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "test-go: gofmt -w $unformatted" >&2 && exit 1; }
go vet ./...
if [ "${1:-}" = --calls ]; then
    # The calls wait most of the time.
    go test -race -parallel 8 ./...
else
    go test -race -short ./...
fi
