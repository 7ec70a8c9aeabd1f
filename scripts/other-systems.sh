#!/bin/sh
# Checks that what needs no Linux compiles for Windows and macOS: library, simulator, reports, and the program, whose
# commands with an emulated network say there that they need Linux. Nothing is linked or run.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

for target in x86_64-pc-windows-gnu aarch64-apple-darwin; do
    if ! rustup target list --installed | grep -qx "$target"; then
        echo "other-systems: no $target: rustup target add $target" >&2
        exit 2
    fi
    cargo check --quiet --target "$target" --package weir-cli
    echo "other-systems: weir compiles for $target"
done
