#!/bin/sh
# Format, clippy and documentation, each without a warning; the program for musl; THIRD-PARTY.md up to date;
# the links of the pages.
set -eux
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo fmt --manifest-path crates/wire/fuzz/Cargo.toml --check
rustfmt --edition 2024 --check bench/peers/src/main.rs
cargo clippy --workspace --all-targets -- -D warnings
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
node scripts/third-party.mjs --check
node scripts/check-links.mjs

# The program also builds without glibc, whose types and functions differ.
musl=x86_64-unknown-linux-musl
if rustup target list --installed 2> /dev/null | grep -qx "$musl"; then
    cargo check --package weir-cli --target "$musl"
else
    echo "lint: skipped: the check for musl: rustup target add $musl"
fi
