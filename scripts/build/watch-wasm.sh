#!/bin/sh
# Makes lab/watch/weir-watch.wasm, the rules of `weir analyze` for a page. It is not in the repository, because each
# change of a rule changes it. A nightly compiler with the component rust-src builds the standard library with it, without
# the texts of panics: 376 kB, and this script fails beyond 400. Another compiler makes a larger one, which is said. With
# --quick it is built without optimisations, for tests. --size builds it and looks at its size only. With --missing it only prints why it cannot; nothing if it can.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '--quick --size --missing' "$@"
cd "$(dirname "$0")/../.."

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
target=${CARGO_TARGET_DIR:-target}
# As a cdylib alone, it is 80 kB smaller than with the library beside it.
build() {
    "$@" --quiet --package weir-watch --lib --profile "$profile" --crate-type cdylib --target "$triple" --target-dir "$target"
}
sources=$(rustc +nightly --print sysroot 2> /dev/null || true)/lib/rustlib/src/rust/library
if [ "$profile" = dev ] || [ ! -d "$sources" ]; then
    build cargo rustc
    [ "$profile" = dev ] || echo 'watch-wasm: larger than need be: rustup toolchain install nightly --component rust-src' >&2
else
    # The flags are for these crates, so they get a folder of their own.
    target=$target/watch
    RUSTFLAGS='-Zunstable-options -Cpanic=immediate-abort -Zfmt-debug=none -Zlocation-detail=none' build cargo +nightly rustc \
        -Z build-std=std,panic_abort -Z build-std-features=optimize_for_size
    size=$(wc -c < "$target/$triple/$folder/weir_watch.wasm")
    if [ "$size" -gt 400000 ]; then
        echo "watch-wasm: $size bytes; at most 400000 are promised" >&2
        exit 1
    fi
fi
[ "${1:-}" = --size ] || cp "$target/$triple/$folder/weir_watch.wasm" lab/watch/weir-watch.wasm
