#!/bin/sh
# Checks formats, clippy, shellcheck, ruff and documentation, each without a warning. Also checks
# that the program builds for musl, that THIRD-PARTY.md is up to date, the links of the pages, and
# that the page of sluice makes an Internet-Draft.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
set -x
cd "$(dirname "$0")/.."

scripts/format.sh --check
cargo clippy --workspace --all-targets -- -D warnings
# The GStreamer plugin and its example are workspaces of their own.
missing=$(scripts/missing-for-gst.sh)
if [ -z "$missing" ]; then
    cargo clippy --manifest-path library/gst/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/gst" \
        --all-targets -- -D warnings
else
    echo "lint: skipped: the check of the GStreamer plugin: apt-get install $missing"
fi
# The adapters for stacks in Rust are workspaces of their own, too. One folder: they share half of their crates. CI has
# no time to compile these a second time: its tests of the adapters do it once.
adapters='str0m webrtc-rs'
[ -z "${CI:-}" ] || adapters=''
for name in $adapters; do
    cargo clippy --manifest-path "library/$name/Cargo.toml" --target-dir "${CARGO_TARGET_DIR:-target}/adapters" \
        --all-targets -- -D warnings
done
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
node scripts/third-party.mjs --check
node scripts/check-links.mjs
node scripts/draft.mjs --build

if command -v shellcheck > /dev/null; then
    shellcheck scripts/*.sh examples/*/*.sh .ci/run
else
    echo 'lint: skipped: the check of the shell scripts: apt-get install shellcheck'
fi
ruff=${CARGO_TARGET_DIR:-target}/python/bin/ruff
[ -x "$ruff" ] || ruff=ruff
if command -v "$ruff" > /dev/null; then
    "$ruff" check --quiet
else
    echo 'lint: skipped: the check of the Python scripts: scripts/deps.sh --test installs ruff'
fi

# The libraries for products must build without std, and with each of their features.
for features in '' std serde testing experiments; do
    cargo check --package weir-rtc --no-default-features --features "$features"
done
# The oldest compiler that their Cargo.toml names.
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' library/weir/Cargo.toml)
if rustup toolchain list 2> /dev/null | grep -q "^$oldest-"; then
    cargo "+$oldest" check --package weir-rtc --package weir-wire --package weir-rtcp --package weir-sfu --package weir-capi \
        --target-dir "${CARGO_TARGET_DIR:-target}/oldest"
else
    echo "lint: skipped: the check with Rust $oldest: rustup toolchain install $oldest --profile minimal"
fi
bare=thumbv7em-none-eabi
if rustup target list --installed 2> /dev/null | grep -qx "$bare"; then
    cargo check --package weir-rtc --package weir-wire --package weir-rtcp --package weir-sfu --features weir-rtc/serde \
        --target "$bare"
else
    echo "lint: skipped: the check without std: rustup target add $bare"
fi

# The demo builds the program without some of its parts.
for features in '' calls analyze; do
    cargo clippy --package weir-cli --no-default-features --features "$features" -- -D warnings
done

# The program must also build with musl, whose types and functions differ from those of glibc.
musl=x86_64-unknown-linux-musl
if rustup target list --installed 2> /dev/null | grep -qx "$musl"; then
    cargo check --package weir-cli --target "$musl"
else
    echo "lint: skipped: the check for musl: rustup target add $musl"
fi
