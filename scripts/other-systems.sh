#!/bin/sh
# Checks that what needs no Linux compiles for Windows and macOS: library, simulator, reports, and the program, whose
# commands with an emulated network say there that they need Linux. Nothing is linked or run. With --missing it only prints
# why it cannot; nothing if it can.
set -eu
. "$(dirname "$0")/usage.sh"
accept --missing "$@"
cd "$(dirname "$0")/.."

targets='x86_64-pc-windows-gnu aarch64-apple-darwin'
reason=
for target in $targets; do
    rustup target list --installed 2> /dev/null | grep -qx "$target" || reason="no $target: rustup target add $target"
done
# Some crates are only for these systems, and a machine without a network may lack them.
if [ -z "$reason" ]; then
    for target in $targets; do
        cargo fetch --quiet --locked --target "$target" 2> /dev/null ||
            reason="cannot fetch the crates for $target"
    done
fi
if [ "${1:-}" = --missing ]; then
    echo "$reason"
    exit
elif [ -n "$reason" ]; then
    echo "other-systems: $reason" >&2
    exit 2
fi

# Both in one command: what runs in the compiler is compiled once.
set --
for target in $targets; do
    set -- "$@" --target "$target"
done
cargo check --quiet --package weir-cli "$@"
echo "other-systems: weir compiles for $targets"
