#!/bin/sh
# build.sh: makes a crate of the example `chat` of str0m's crate in target/example, and builds it in the folder `target`.
# Needs Rust.
set -eu
cd "$(dirname "$0")"
mkdir -p target/example
cp example.toml target/example/Cargo.toml
cp example.lock target/example/Cargo.lock
cd target/example
# Cargo wants the program before it tells where str0m's source is.
[ -f chat.rs ] || echo 'fn main() {}' > chat.rs
manifest=$(cargo metadata --locked --format-version 1 | sed 's/.*"manifest_path":"\([^"]*\/str0m-0[^"]*\)".*/\1/')
cp -r "${manifest%/Cargo.toml}/examples/." .
cargo build --quiet --release --locked --target-dir ..
