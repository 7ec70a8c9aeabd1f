#!/bin/sh
# Builds the book of docs/ into target/book and checks its links. Installs mdBook for the user if it is missing.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

# One version, so that a new one cannot change the look of the pages or break the build.
version=0.5.4
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
if ! command -v mdbook > /dev/null; then
    # The book needs no search, server or file watcher, and mdBook compiles faster without them.
    cargo install mdbook --version "$version" --no-default-features --locked
fi
rm -rf target/book
mdbook build docs
node scripts/test/check-links.mjs --book target/book
# The playground of `make playground`, where a reader of the book can open it.
[ ! -f lab/web/dist/playground.html ] || cp lab/web/dist/playground.html target/book/
echo target/book/index.html
