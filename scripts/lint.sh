#!/bin/sh
# Format, clippy and documentation, each without a warning.
set -eux
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo fmt --manifest-path crates/wire/fuzz/Cargo.toml --check
rustfmt --edition 2024 --check bench/peers/src/main.rs
cargo clippy --workspace --all-targets -- -D warnings
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
