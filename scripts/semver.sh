#!/bin/sh
# Compares the public interfaces of the published libraries with those of the last version tag
# (v0.1.0): a change that breaks a caller needs a new version. Installs cargo-semver-checks if it is
# missing.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2> /dev/null || true)
if [ -z "$tag" ]; then
    echo 'semver: skipped: no tag of a version yet'
    exit 0
fi
if ! cargo semver-checks --version > /dev/null 2>&1; then
    cargo install cargo-semver-checks --locked
fi
# The program and the crates that only it uses have no stable interface.
cargo semver-checks --workspace --exclude weir-cli --exclude weir-call --baseline-rev "$tag"
