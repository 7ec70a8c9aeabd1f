#!/bin/sh
# Makes all conformance vectors in target/vectors, with what one needs to play them, and checks that they are those of
# vectors/SHA256SUMS. The project has a few of them. With --update, after a change of a controller: writes these and the hashes
# again.
set -eu
. "$(dirname "$0")/../usage.sh"
accept --update "$@"
cd "$(dirname "$0")/../.."

all=$(realpath -m "${CARGO_TARGET_DIR:-target}")/vectors
rm -rf "$all"
mkdir -p "$all"
[ "${1:-}" != --update ] || export WEIR_UPDATE=1
# A failure leaves no half of them behind.
# In CI all tests are built, and by --package cargo would build once more what they use, with other features.
packages='--package weir-rtcp'
[ -z "${CI:-}" ] || packages='--workspace --exclude weir-python'
# shellcheck disable=SC2086
WEIR_VECTORS=$all cargo test --quiet $packages --test it -- --exact vectors::the_stored_vectors_are_up_to_date > /dev/null || {
    rm -rf "$all"
    echo 'vectors: those in vectors/ are not what the controllers do: scripts/build/vectors.sh --update' >&2
    exit 1
}
if [ "${1:-}" = --update ]; then
    (cd "$all" && find . -name '*.jsonl' | sed 's|^\./||' | LC_ALL=C sort | xargs sha256sum) > vectors/SHA256SUMS
fi
cp vectors/README.md vectors/SHA256SUMS vectors/run.py vectors/schema.json "$all"
count=$(find "$all" -name '*.jsonl' | wc -l)
if ! (cd "$all" && sha256sum --quiet --check --strict SHA256SUMS) || [ "$count" -ne "$(wc -l < vectors/SHA256SUMS)" ]; then
    echo "vectors: $count made are not those of vectors/SHA256SUMS: scripts/build/vectors.sh --update" >&2
    exit 1
fi
echo "$all"
