#!/bin/sh
# Makes lab/watch/weir-watch.wasm, the rules of `weir analyze` for a page. It is not in the repository, because each
# change of a rule changes it. With --quick it is built without optimisations, for tests. With --missing it only prints
# why it cannot; nothing if it can.
set -eu
. "$(dirname "$0")/usage.sh"
accept '--quick --missing' "$@"
cd "$(dirname "$0")/.."

triple=wasm32-unknown-unknown
profile=wasm-small
folder=wasm-small
case ${1:-} in
    --missing)
        rustup target list --installed 2> /dev/null | grep -qx "$triple" || echo "no $triple: rustup target add $triple"
        exit
        ;;
    --quick)
        profile=dev
        folder=debug
        ;;
esac
# As a cdylib alone, it is 80 kB smaller than with the library beside it.
cargo rustc --quiet --package weir-watch --lib --profile "$profile" --crate-type cdylib --target "$triple"
cp "${CARGO_TARGET_DIR:-target}/$triple/$folder/weir_watch.wasm" lab/watch/weir-watch.wasm
