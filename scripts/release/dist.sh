#!/bin/bash
# Builds what is published, into dist/: the static program as an archive, a Debian package and an OCI image, the wheel,
# the playground, the conformance vectors, a list of all parts (SBOM, CycloneDX), and checksums. scripts/release/test-dist.sh installs each of them into
# an empty root and runs a scenario there. Prints their sizes.
set -euo pipefail
. "$(dirname "$0")/../usage.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

[ -f lab/web/dist/report.html ] || { echo 'dist: no report viewer: make web' >&2 && exit 2; }
triple=x86_64-unknown-linux-musl
for need in "$triple" wasm32-unknown-unknown; do
    rustup target list --installed | grep -qx "$need" || {
        echo "dist: no $need: rustup target add $need" >&2
        exit 2
    }
done
command -v dpkg-deb > /dev/null || { echo 'dist: no dpkg-deb: apt-get install dpkg' >&2 && exit 2; }

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$PWD/dist
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
rm -rf "$out"
mkdir -p "$out"
# Archives have the time of the commit, so that two builds of it differ only where compilers differ.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
archive() { # FILE FOLDER: the folder as a compressed archive, the same for the same files
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$2" -cf - . |
        gzip -9n > "$1"
}

cargo build --profile dist --package weir-cli --target "$triple"
export WEIR_PROGRAM=$target/$triple/dist/weir
node scripts/release/third-party.mjs

name=weir-$version-x86_64-linux
DESTDIR=$stage/archive PREFIX=/$name scripts/build/install-program.sh install > /dev/null
archive "$out/$name.tar.gz" "$stage/archive"

DESTDIR=$stage/deb PREFIX=/usr scripts/build/install-program.sh install > /dev/null
# `make uninstall` needs this list; dpkg has its own.
rm "$stage/deb/usr/share/doc/weir/installed.txt"
mkdir -p "$stage/deb/DEBIAN" "$stage/deb/usr/share/zsh/vendor-completions"
mv "$stage/deb/usr/share/zsh/site-functions/_weir" "$stage/deb/usr/share/zsh/vendor-completions/"
rmdir "$stage/deb/usr/share/zsh/site-functions"
gzip -9n "$stage"/deb/usr/share/man/man1/*.1
cat > "$stage/deb/DEBIAN/control" << EOF
Package: weir
Version: $version
Architecture: amd64
Maintainer: The Weir project <weir@example.invalid>
Section: net
Priority: optional
Installed-Size: $(du -sk "$stage/deb/usr" | cut -f 1)
Suggests: chromium, iperf3, tshark
Description: congestion control of real-time media: simulator, emulator, reports
 How does a call behave on this network under this controller, and why?
 weir simulates calls, makes real ones over emulated networks, and compares both.
EOF
dpkg-deb --root-owner-group --build "$stage/deb" "$out/weir_${version}_amd64.deb" > /dev/null

python3 scripts/release/oci-image.py "$WEIR_PROGRAM" "$out/weir-$version-oci.tar" "$version" "$SOURCE_DATE_EPOCH"

environment=$target/python-package
[ -x "$environment/bin/maturin" ] || {
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
}
# WEIR_WHEEL=dev makes a wheel of what scripts/test/test-python.sh compiled: minutes less, for a test of this script.
CARGO_TARGET_DIR=$target "$environment/bin/maturin" build --quiet --profile "${WEIR_WHEEL:-release}" \
    --manifest-path lab/python/Cargo.toml --out "$out"

make --silent playground > /dev/null
cp lab/web/dist/playground.html "$out/weir-$version-playground.html"

scripts/build/vectors.sh > /dev/null
archive "$out/weir-$version-vectors.tar.gz" "$target/vectors"

node scripts/release/sbom.mjs > "$out/weir-$version.cdx.json"
(cd "$out" && sha256sum ./* | sed 's|  \./|  |' > SHA256SUMS)
(cd "$out" && du -b --dereference weir*) | awk '{ printf "%s %.2f MB\n", $2, $1 / 1e6 }'
