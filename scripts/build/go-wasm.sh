#!/bin/sh
# Makes what the Go module carries: library/go/weir.wasm, libweir for WebAssembly, and library/go/sfu/weir-sfu.wasm with
# the decisions of weir-sfu. They are not in the repository, because each change of a controller changes them. With
# --missing it only prints why it cannot; nothing if it can.
set -eu
. "$(dirname "$0")/../usage.sh"
accept --missing "$@"
cd "$(dirname "$0")/../.."

triple=wasm32-unknown-unknown
if [ "${1:-}" = --missing ]; then
    rustup target list --installed 2> /dev/null | grep -qx "$triple" || echo "no $triple: rustup target add $triple"
    exit
fi
# Each controller has a memory of its own, most of which would be a stack of 1 MB. On a stack that is too small, it would
# trap, because the stack lies at the bottom of the memory.
cargo rustc --quiet --package weir-capi --lib --profile wasm --crate-type cdylib --target "$triple" -- \
    -C link-arg=-zstack-size=131072
cp "${CARGO_TARGET_DIR:-target}/$triple/wasm/weir_capi.wasm" library/go/weir.wasm
cargo rustc --quiet --package weir-sfu-wasm --lib --profile wasm --crate-type cdylib --target "$triple" -- \
    -C link-arg=-zstack-size=131072
cp "${CARGO_TARGET_DIR:-target}/$triple/wasm/weir_sfu_wasm.wasm" library/go/sfu/weir-sfu.wasm
