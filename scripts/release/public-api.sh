#!/bin/sh
# Compares the public interfaces of weir-rtc, weir-wire, weir-rtcp, weir-sfu and weir-quic with the lists in
# library/*/public-api.txt. A line that is gone or that has changed breaks callers and needs a new
# version; a new line is an addition. With --update it writes the lists. Installs cargo-public-api,
# which needs a nightly compiler, if it is missing.
set -eu
. "$(dirname "$0")/../usage.sh"
accept --update "$@"
cd "$(dirname "$0")/../.."

# One version, because another one may write the lists differently.
version=0.52.0
[ "$(cargo public-api --version 2> /dev/null)" = "cargo-public-api $version" ] ||
    cargo install cargo-public-api --version "$version" --locked --quiet --debug
made=${CARGO_TARGET_DIR:-target}/public-api
mkdir -p "$made"
# One documentation of all: alone, each package would compile the others with features of its own.
RUSTDOCFLAGS='-Z unstable-options --output-format json --cap-lints allow' cargo +nightly doc --no-deps --lib --all-features \
    --package weir-rtc --package weir-wire --package weir-rtcp --package weir-sfu --package weir-quic --target-dir "$made"
status=0
for folder in weir wire rtcp sfu quic; do
    package=$(sed -n 's/^name = "\(.*\)"/\1/p' "library/$folder/Cargo.toml" | head -1)
    crate=$(sed -n '/^\[lib\]/,/^$/s/^name = "\(.*\)"/\1/p' "library/$folder/Cargo.toml")
    found=$made/$folder.txt
    # Without the blanket implementations that every type has.
    cargo public-api --rustdoc-json "$made/doc/${crate:-$(echo "$package" | tr - _)}.json" -sss > "$found"
    if [ "${1:-}" = --update ]; then
        cp "$found" "library/$folder/public-api.txt"
    elif ! diff --unified=0 "library/$folder/public-api.txt" "$found"; then
        echo "public-api: $package differs from library/$folder/public-api.txt; scripts/release/public-api.sh --update writes it" >&2
        status=1
    fi
done
exit $status
