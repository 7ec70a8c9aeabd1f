#!/bin/bash
# Packs every crate that is to be published, as `cargo publish` would, and checks that the packages
# compile from their own contents, with each other, and that no version in Cargo.lock is yanked. Nothing is uploaded. WEIR_INSTALL=FOLDER also installs the program from
# the packages below that folder, as `cargo install weir-cli` will, but without optimisations.
set -euo pipefail
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

# The report's package contains the report viewer. Without it no report could be written.
[ -f lab/web/dist/report.html ] || { echo 'package: no report viewer: make web' >&2 && exit 1; }

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
mkdir -p "$target"
# cargo's own check would build each package into code, and all that it depends on once more.
cargo package --workspace --locked --allow-dirty --no-verify 2>&1 | tee "$target/package.log"
# Only packing asks the registry whether a version of Cargo.lock was withdrawn since.
if grep 'is yanked' "$target/package.log" >&2; then
    echo 'package: a version in Cargo.lock is yanked: cargo update' >&2
    exit 1
fi

# A workspace of the unpacked packages. They find each other where a stranger's cargo finds them on
# crates.io. The profile and the lock are those of this workspace, so that the rest is compiled already.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
unpacked=$target/package/unpacked
rm -rf "$unpacked"
mkdir -p "$unpacked"
trap 'rm -rf "$unpacked"' EXIT
cp Cargo.lock "$unpacked"
{
    sed -n '/^\[profile.dev\]/,$p' Cargo.toml
    printf '[workspace]\nresolver = "3"\nmembers = ["*-%s"]\n[patch.crates-io]\n' "$version"
} > "$unpacked/Cargo.toml"

# Links to files outside a crate's folder must be files in the package.
has() { # PACKAGE FILE...
    local package=$1 file
    shift
    for file in "$@"; do
        [ -f "$unpacked/$package-$version/$file" ] || { echo "package: $package has no $file" >&2 && exit 1; }
    done
}
mapfile -t manifests < <(grep -L '^publish = false' {library,lab,ims}/*/Cargo.toml research/Cargo.toml)
for manifest in "${manifests[@]}"; do
    # The first name is the package's. Names of its programs may follow.
    package=$(sed -n 's/^name = "\(weir-.*\)"/\1/p' "$manifest" | head -n 1)
    # With the time of now: cargo gives all files one old time, by which it would not see a change.
    tar -mxzf "$target/package/$package-$version.crate" -C "$unpacked"
    echo "$package = { path = \"$package-$version\" }" >> "$unpacked/Cargo.toml"
    has "$package" README.md LICENSE-APACHE LICENSE-MIT
done
has weir-scenario scenarios/lund/rmcat-ns3.toml
has weir-report report.html
has weir-cli serve.html
cargo check --workspace --manifest-path "$unpacked/Cargo.toml" --target-dir "$target"
echo "package: all crates can be published"
if [ -n "${WEIR_INSTALL:-}" ]; then
    cargo install --debug --path "$unpacked/weir-cli-$version" --root "$WEIR_INSTALL" --target-dir "$target"
fi
