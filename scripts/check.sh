#!/bin/sh
# The checks that a change must pass before it is committed: formats, clippy, and all tests that
# need neither root nor a browser. Needs the tools that scripts/deps.sh --test installs, and
# lab/web/node_modules, which `make check` installs.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

scripts/format.sh --check
cargo clippy --quiet --workspace --all-targets -- -D warnings
scripts/test.sh --check
