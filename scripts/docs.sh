#!/bin/sh
# Builds the book of docs/ into target/book and checks its links. Installs mdBook for the user if it is missing.
set -eu
cd "$(dirname "$0")/.."

# Kept at one version, so that a new one cannot change how the pages look or fail the build.
version=0.5.4
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
if ! command -v mdbook > /dev/null; then
    # No search, no server, no watching of files: the book needs none of them, and it compiles sooner.
    cargo install mdbook --version "$version" --no-default-features --locked
fi
rm -rf target/book
mdbook build docs
node scripts/check-links.mjs --book target/book
echo target/book/index.html
