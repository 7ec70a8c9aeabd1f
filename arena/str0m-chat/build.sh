#!/bin/sh
# build.sh: copies the example `chat` from str0m's crate, and builds it in the folder `target`. Needs Rust.
set -eu
cd "$(dirname "$0")"
# Cargo wants the file before it knows the crate.
mkdir -p target/example
[ -f target/example/chat.rs ] || echo 'fn main() {}' > target/example/chat.rs
metadata=$(cargo metadata --locked --format-version 1)
manifest=$(echo "$metadata" | sed 's/.*"manifest_path":"\([^"]*\/str0m-0[^"]*\)".*/\1/')
cp -r "${manifest%/Cargo.toml}/examples/." target/example/
cargo build --quiet --release --locked --target-dir target
