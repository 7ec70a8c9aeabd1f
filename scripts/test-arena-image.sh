#!/bin/sh
# test-arena-image.sh PROGRAM: builds the image of a gate as docs/guide/arena.md describes it, with this program in it, and
# makes a run of the arena there, with Chromium as the sender. Needs root, buildah and debootstrap, and Debian's packages
# from the network, but no registry of images.
set -eu
. "$(dirname "$0")/usage.sh"
[ $# -eq 1 ] || set -- --help
case $1 in -*) accept '' "$1" ;; esac
program=$(realpath "$1")
cd "$(dirname "$0")/.."
for tool in buildah debootstrap; do
    command -v $tool > /dev/null || { echo "test-arena-image: apt-get install $tool" >&2 && exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export BUILDAH_ISOLATION=chroot

# The base that a registry would have.
debootstrap --variant=minbase bookworm "$work/base" > "$work/debootstrap.log"
base=$(buildah from scratch)
buildah copy --quiet "$base" "$work/base" / > /dev/null
buildah config --cmd /bin/bash "$base"
buildah commit --quiet "$base" docker.io/library/debian:12-slim > /dev/null
buildah rm "$base" > /dev/null
rm -rf "$work/base"

# The program, as `make dist` has it.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
python3 scripts/oci-image.py "$program" "$work/weir.tar" "$version" 0
buildah tag "$(buildah pull --quiet "oci-archive:$work/weir.tar")" "localhost/weir:$version"

# The page's own lines.
mkdir "$work/context"
# shellcheck disable=SC2016 # The marks of a block.
sed -n '/^```dockerfile$/,/^```$/p' docs/guide/arena.md | sed '1d;$d' > "$work/context/Dockerfile"
buildah bud --quiet --pull-never --tag localhost/weir-gate "$work/context" > /dev/null
echo "test-arena-image: built $(buildah images --format '{{.Size}}' localhost/weir-gate)"

gate=$(buildah from --pull-never localhost/weir-gate)
buildah run "$gate" -- weir --version
# `buildah run` has no --privileged. The image's files with this machine's /proc, /sys and /dev are the same to the program.
files=$(buildah mount "$gate")
# shellcheck disable=SC2016 # The inner shell replaces it.
unshare --mount --propagation private sh -c '
    mount --rbind "$1" "$1"
    for one in proc sys dev; do mount --rbind "/$one" "$1/$one"; done
    cd "$1" && pivot_root . mnt
    exec chroot . /bin/sh -c "umount -l /mnt; cd /work
        weir arena --stacks chromium --scenarios arena/steps --junit arena.xml --out runs"
' gate "$files"
grep -q "<testsuite " "$files/work/arena.xml"
buildah umount "$gate" > /dev/null
buildah rm "$gate" > /dev/null
