#!/bin/sh
# Checks that everything compiles where it should: the library without std and with the oldest compiler that it names, and
# with each of its features; the program without some of its parts, with musl, for Windows and for macOS, where its commands
# with an emulated network say that they need Linux. Nothing is linked or run. With --library it checks the library without
# std, by that compiler; with --demo the two programs that `make demo` builds. What this machine lacks is skipped, and said.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '--library --demo' "$@"
cd "$(dirname "$0")/../.."

# The program with these of its parts alone. Not by clippy: `cargo doc` checks the same crates with the same features, and
# finds them checked. In silence only a warning or an error prints anything.
program_with() {
    told=$(cargo check --quiet --package weir-cli --no-default-features --features "$1" 2>&1) && [ -z "$told" ] && return
    echo "$told"
    echo "builds: weir-cli with the features '$1' has warnings or errors" >&2
    exit 1
}

if [ "${1:-}" = --demo ]; then
    program_with ''
    program_with calls
    exit 0
fi

skipped() { echo "builds: skipped: $1"; }
has_target() { rustup target list --installed 2> /dev/null | grep -qx "$1"; }
has_bare() { rustup "+$oldest" target list --installed 2> /dev/null | grep -qx "$bare"; }

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' library/weir/Cargo.toml)
with_oldest="cargo +$oldest check --target-dir ${CARGO_TARGET_DIR:-target}/oldest"
bare=thumbv7em-none-eabi
if has_bare; then
    $with_oldest --package weir-rtc --package weir-wire --package weir-rtcp --package weir-quic --package weir-sfu \
        --features weir-rtc/serde --target "$bare"
else
    skipped "the library without std: rustup toolchain install $oldest --profile minimal --target $bare"
fi
[ "${1:-}" != --library ] || exit 0

if rustup toolchain list 2> /dev/null | grep -q "^$oldest-"; then
    # Of the library, only the border to C needs std.
    $with_oldest --package weir-capi
fi
for features in '' std serde testing experiments; do
    cargo check --package weir-rtc --no-default-features --features "$features"
done
program_with analyze
for target in x86_64-unknown-linux-musl x86_64-pc-windows-gnu aarch64-apple-darwin; do
    if ! has_target "$target"; then
        skipped "$target: rustup target add $target"
    # Some crates are only for these systems, and a machine without a network may lack them.
    elif ! cargo fetch --quiet --locked --target "$target" 2> /dev/null; then
        skipped "$target: its crates cannot be fetched"
    else
        cargo check --quiet --package weir-cli --target "$target"
        echo "builds: weir compiles for $target"
    fi
done
