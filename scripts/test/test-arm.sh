#!/bin/sh
# Runs the unit tests of the library for aarch64 and armv7 in qemu. Also simulates a call with each controller
# on this machine and on both, and compares the hashes of the results: they must be equal. The tools are those
# that scripts/test/missing-for-arm.sh asks for.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

reason=$(scripts/test/missing-for-arm.sh)
if [ -n "$reason" ]; then
    echo "test-arm: $reason" >&2
    exit 2
fi

fingerprint() {
    cargo run --quiet --package weir-sim --example fingerprint "$@"
}
native=$(fingerprint)
echo "$native"
for target in aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf; do
    cargo test --quiet --package weir-rtc --lib --target "$target"
    arm=$(fingerprint --target "$target")
    if [ "$arm" != "$native" ]; then
        printf 'test-arm: %s gives other results:\n%s\n' "$target" "$arm" >&2
        exit 1
    fi
    echo "test-arm: $target: unit tests passed, results equal those of this machine"
done
