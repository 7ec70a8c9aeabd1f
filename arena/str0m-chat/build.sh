#!/bin/sh
# build.sh: copies the examples of str0m's crate to target/example, and builds `chat` in the folder `target`. Needs Rust.
set -eu
cd "$(dirname "$0")"
mkdir -p target/example
manifest=$(cargo metadata --locked --format-version 1 | sed 's/.*"manifest_path":"\([^"]*\/str0m-0[^"]*\)".*/\1/')
cp -r "${manifest%/Cargo.toml}/examples/." target/example
cargo build --quiet --release --locked --target-dir target
