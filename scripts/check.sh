#!/bin/sh
# The checks that a change must pass before it is committed: formats, then clippy and the tests that
# scripts/test.sh --check selects. Needs the tools that scripts/deps.sh --test installs, and
# lab/web/node_modules, which `make check` installs.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

scripts/format.sh --check
scripts/test.sh --check
