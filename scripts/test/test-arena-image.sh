#!/bin/sh
# test-arena-image.sh PROGRAM: builds the image of a gate as docs/guide/arena.md describes it, with this program in it, and
# makes runs of the arena there. Chromium as the sender leaves its file for the CI. With Go, pion as it is must be green, and
# pion with a factor of 1.5 in place of 0.85 in its GCC must be red, with the cause. Needs root, buildah and debootstrap, and
# Debian's packages from the network, but no registry of images.
set -eu
. "$(dirname "$0")/../usage.sh"
[ $# -eq 1 ] || set -- --help
case $1 in -*) accept '' "$1" ;; esac
program=$(realpath "$1")
cd "$(dirname "$0")/../.."
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
python3 scripts/release/oci-image.py "$program" "$work/weir.tar" "$version" 0
buildah tag "$(buildah pull --quiet "oci-archive:$work/weir.tar")" "localhost/weir:$version"

# The page's own lines.
mkdir "$work/context"
# shellcheck disable=SC2016 # The marks of a block.
sed -n '/^```dockerfile$/,/^```$/p' docs/guide/arena.md | sed '1d;$d' > "$work/context/Dockerfile"
buildah bud --quiet --pull-never --tag localhost/weir-gate "$work/context" > /dev/null
echo "test-arena-image: built $(buildah images --format '{{.Size}}' localhost/weir-gate)"

gate=$(buildah from --pull-never localhost/weir-gate)
buildah run "$gate" -- weir --version
files=$(buildah mount "$gate")

# in_image COMMAND: runs it in the image, in /work. `buildah run` has no --privileged. The image's files with this machine's
# /proc, /sys and /dev are the same to the program.
in_image() {
    # shellcheck disable=SC2016 # The inner shell replaces it.
    unshare --mount --propagation private sh -c '
        mount --rbind "$1" "$1"
        for one in proc sys dev; do mount --rbind "/$one" "$1/$one"; done
        cd "$1" && pivot_root . mnt
        exec chroot . /bin/sh -c "umount -l /mnt; cd /work; $2"
    ' gate "$files" "$1"
}

in_image 'weir arena --stacks chromium --scenarios arena/steps --junit arena.xml --out runs'
grep -q "<testsuite " "$files/work/arena.xml"

# pion NAME FACTOR: makes pion's driver with this factor of a decrease in the image, for the gate.
pion() {
    tree=$work/pion-$1
    mkdir -p "$tree"
    cp -r "$(cd ./arena/pion && go list -m -f '{{.Dir}}' github.com/pion/interceptor)" "$tree/interceptor"
    chmod -R u+w "$tree/interceptor"
    sed -i "s/= 0\.85$/= $2/" "$tree/interceptor/pkg/gcc/rate_controller.go"
    grep -q "= $2$" "$tree/interceptor/pkg/gcc/rate_controller.go"
    cp ./arena/pion/go.mod "$tree/changed.mod"
    cp ./arena/pion/go.sum "$tree/changed.sum"
    go mod edit -replace "github.com/pion/interceptor=$tree/interceptor" "$tree/changed.mod"
    mkdir -p "$files/work/arena/$1"
    (cd ./arena/pion && CGO_ENABLED=0 go build -mod=mod "-modfile=$tree/changed.mod" -o "$files/work/arena/$1/driver" .)
}

if command -v go > /dev/null; then
    # What this driver needs: an encoder, with GStreamer.
    buildah run "$gate" -- apt-get install -qq -y --no-install-recommends python3-gst-1.0 \
        gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-good > "$work/apt.log"
    mkdir -p "$files/work/lab/call/src/peers/pipeline" "$files/work/arena"
    cp lab/call/src/peers/pipeline/*.py "$files/work/lab/call/src/peers/pipeline/"
    cp ./arena/encoder.py "$files/work/arena/"
    [ -e library/go/weir.wasm ] || scripts/build/go-wasm.sh
    pion sound 0.85
    pion broken 1.5
    for name in sound broken; do
        code=0
        in_image "weir arena --stacks mine --driver './arena/$name/driver gcc' --scenarios arena/steps \
            --junit $name.xml --out runs-$name" > "$work/$name.txt" || code=$?
        cat "$work/$name.txt"
        echo "test-arena-image: pion $name: exit code $code"
        [ "$name" = sound ] && wanted=0 || wanted=1
        [ "$code" = "$wanted" ] || exit 1
    done
    grep -q 'controller: its target was above the link' "$files/work/broken.xml"
fi
buildah umount "$gate" > /dev/null
buildah rm "$gate" > /dev/null
