#!/bin/bash
# Packs every crate that is to be published, as `cargo publish` would, and builds each package from
# its own contents. Nothing is uploaded. With --no-verify it does not build the packages.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
accept --no-verify "$@"
cd "$(dirname "$0")/.."

# The lab's package contains the report viewer. Without it no report could be written.
[ -f web/dist/report.html ] || { echo 'package: no report viewer: make web' >&2 && exit 1; }

target=${CARGO_TARGET_DIR:-target}

# To build a package, cargo unpacks the packages that it depends on below its home, and keeps them by
# name and version. The version is the same after each change, so an earlier run's copy would be built
# in place of this one's. The copies go, and what was compiled from them.
forget_copies() {
    local dep
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/weir-*
    while read -r dep; do
        dep=$(basename "$dep" .d)
        rm -rf "$target"/debug/.fingerprint/weir-*-"${dep##*-}"
    done < <(grep -l 'registry/src/-[^/]*/weir-' "$target"/debug/deps/weir*.d 2> /dev/null)
}
trap forget_copies EXIT
forget_copies

cargo package --workspace --locked --allow-dirty "$@"

# Links to files outside a crate's folder must be files in the package.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
has() { # PACKAGE FILE...
    local package=$1 files file
    shift
    files=$(tar -tzf "$target/package/$package-$version.crate" | sed 's|^[^/]*/||')
    for file in "$@"; do
        grep -qx "$file" <<< "$files" || { echo "package: $package has no $file" >&2 && exit 1; }
    done
}
mapfile -t manifests < <(grep -L '^publish = false' crates/*/Cargo.toml)
for manifest in "${manifests[@]}"; do
    # The first name is the package's. Names of its programs may follow.
    has "$(sed -n 's/^name = "\(weir-.*\)"/\1/p' "$manifest" | head -n 1)" README.md LICENSE-APACHE LICENSE-MIT
done
has weir-lab report.html scenarios/lund/rmcat-ns3.toml
has weir-cli serve.html
echo "package: all crates can be published"
