#!/bin/bash
# Packs every crate that is meant to be published, as `cargo publish` would, and builds each package from
# its own contents. Nothing is uploaded. --no-verify packs and does not build.
set -euo pipefail
cd "$(dirname "$0")/.."

# The lab's package carries the report viewer: without it every report would be missing.
[ -f web/dist/report.html ] || { echo 'package: no report viewer: make web' >&2 && exit 1; }

cargo package --workspace --locked --allow-dirty "$@"

# Links out of a crate's folder must have become what they lead to.
target=${CARGO_TARGET_DIR:-target}
packed() { tar -tzf "$target/package/$1-$2.crate" | sed 's|^[^/]*/||'; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
for manifest in $(grep -L '^publish = false' crates/*/Cargo.toml); do
    package=$(sed -n 's/^name = "\(weir-.*\)"/\1/p' "$manifest")
    for file in README.md LICENSE-APACHE LICENSE-MIT; do
        packed "$package" "$version" | grep -qx "$file" ||
            { echo "package: $package has no $file" >&2 && exit 1; }
    done
done
for file in report.html scenarios/lund/rmcat-ns3.toml; do
    packed weir-lab "$version" | grep -qx "$file" || { echo "package: weir-lab has no $file" >&2 && exit 1; }
done
echo "package: all crates can be published"
