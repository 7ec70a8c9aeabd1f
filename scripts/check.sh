#!/bin/sh
# What a change must pass before it is committed: formats, clippy, and all tests that need neither root nor a
# browser. Needs what scripts/deps.sh --test installs, and web/node_modules: `make check` sees to the latter.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

scripts/format.sh --check
cargo clippy --quiet --workspace --all-targets -- -D warnings
scripts/test.sh --check
