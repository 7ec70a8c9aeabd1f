#!/bin/sh
# Checks formats, clippy, shellcheck, ruff and documentation, each without a warning. Also checks that crates from
# outside are as deny.toml says, that each brings its licence, that lock files are up to date, the
# links of the pages, and that the page of sluice makes an Internet-Draft.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
set -x
cd "$(dirname "$0")/../.."

scripts/build/format.sh --check
# With weir-python, whose macros ask for more of syn, cargo would check all that uses serde once more. CI has no time for that.
cargo clippy --workspace --exclude weir-python --all-targets -- -D warnings
[ -n "${CI:-}" ] || cargo clippy --package weir-python -- -D warnings
# The GStreamer plugin and its example are a workspace of their own. CI has no time to check the library for it once more.
missing=$(scripts/test/missing-for-gst.sh)
if [ -n "${CI:-}" ]; then
    echo 'lint: CI leaves out the GStreamer plugin'
elif [ -z "$missing" ]; then
    cargo clippy --manifest-path library/gst/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/gst" \
        --all-targets -- -D warnings
else
    echo "lint: skipped: the check of the GStreamer plugin: apt-get install $missing"
fi
# The adapters for stacks in Rust are workspaces of their own, too. One folder: they share half of their crates. CI has
# no time to compile these a second time: its tests of the adapters do it once.
adapters='str0m webrtc-rs noq quinn'
[ -z "${CI:-}" ] || adapters=''
for name in $adapters; do
    cargo clippy --manifest-path "library/$name/Cargo.toml" --target-dir "${CARGO_TARGET_DIR:-target}/examples" \
        --all-targets --all-features -- -D warnings
done
# A workspace of its own whose lock file lacks a crate builds something else on each machine.
for lock in $(git ls-files '*Cargo.lock'); do
    # It resolves, and downloads no crate.
    cargo update --quiet --workspace --locked --manifest-path "${lock%.lock}.toml" ||
        { echo "lint: $lock is not up to date: cargo update --workspace writes it anew" >&2 && exit 1; }
done
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --exclude weir-python --no-deps
node scripts/release/third-party.mjs
# Licences, crates that stand twice, and sources. An entry of deny.toml that nothing needs any more fails, too.
if cargo deny --version > /dev/null 2>&1; then
    cargo deny --locked check --hide-inclusion-graph -D unmatched-skip -D unnecessary-skip bans licenses sources
else
    echo 'lint: skipped: the check of the crates from outside: scripts/build/deps.sh --test-all installs cargo-deny'
fi
node scripts/test/check-links.mjs
node scripts/release/draft.mjs --build

if command -v shellcheck > /dev/null; then
    shellcheck scripts/*.sh scripts/*/*.sh examples/*/*.sh .ci/run
else
    echo 'lint: skipped: the check of the shell scripts: apt-get install shellcheck'
fi
ruff=${CARGO_TARGET_DIR:-target}/python/bin/ruff
[ -x "$ruff" ] || ruff=ruff
if command -v "$ruff" > /dev/null; then
    "$ruff" check --quiet
else
    echo 'lint: skipped: the check of the Python scripts: scripts/build/deps.sh --test installs ruff'
fi
