#!/bin/bash
# Packs every crate that is to be published, as `cargo publish` would, and builds each package from
# its own contents. Nothing is uploaded. With --no-verify it does not build the packages.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
accept --no-verify "$@"
cd "$(dirname "$0")/.."

# The lab's package contains the report viewer. Without it no report could be written.
[ -f web/dist/report.html ] || { echo 'package: no report viewer: make web' >&2 && exit 1; }

cargo package --workspace --locked --allow-dirty "$@"

# Links to files outside a crate's folder must be files in the package.
target=${CARGO_TARGET_DIR:-target}
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
echo "package: all crates can be published"
