#!/bin/bash
# Packs every crate that is to be published, as `cargo publish` would, and builds each package from
# its own contents. Nothing is uploaded. With --no-verify it does not build the packages.
set -euo pipefail
cd "$(dirname "$0")/.."

# The lab's package contains the report viewer. Without it no report could be written.
[ -f web/dist/report.html ] || { echo 'package: no report viewer: make web' >&2 && exit 1; }

cargo package --workspace --locked --allow-dirty "$@"

# Links to files outside a crate's folder must be files in the package.
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
