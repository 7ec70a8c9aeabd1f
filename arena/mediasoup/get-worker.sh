#!/bin/sh
# get-worker.sh [--with CHANGE FILE]: builds mediasoup's worker beside this script, in the folder `worker`, unless it is
# there; if another one builds it, waits for that. The sources come from npm's package of mediasoup (run
# `npm ci --ignore-scripts` first), the libraries from Debian's packages, which are unpacked in that folder and not
# installed. Needs Debian 12 with g++, meson, ninja-build, patch and libssl-dev, and Rust for libweir. 15 minutes of
# processor time. With --with, then makes FILE: the same worker with a change of a finding, such as
# ../findings/mediasoup-fall/change.patch.
set -eu
change='' changed=''
case ${1:-} in
    '') ;;
    --with)
        if [ $# -ne 3 ] || [ ! -f "$2" ]; then
            sed -n '2,7s/^# //p' "$0" >&2
            exit 2
        fi
        change=$(realpath "$2") changed=$(realpath -m "$3")
        ;;
    --help | -h) sed -n '2,7s/^# //p' "$0" && exit ;;
    *) echo "${0##*/}: unknown argument '$1'; see $0 --help" >&2 && exit 2 ;;
esac
packages='libuv1-dev libuv1 libsrtp2-dev libsrtp2-1 libusrsctp-dev libusrsctp2 libabsl-dev libabsl20220623
libflatbuffers-dev libflatbuffers2 flatbuffers-compiler'
here=$(cd "$(dirname "$0")" && pwd)
work=$here/worker
mkdir -p "$work"
exec 9> "$work/.lock"
flock 9

# with_change: makes $changed, from the sources of the worker that is there.
with_change() {
    [ -d "$work/build" ] || { echo "${0##*/}: the sources are gone: remove $work" >&2 && exit 1; }
    trap 'patch --quiet --reverse --strip 1 --directory "$work/source" < "$change"' EXIT
    patch --quiet --forward --strip 1 --directory "$work/source" < "$change"
    ninja -C "$work/build" -j2 mediasoup-worker > "$work/ninja.log" ||
        { grep -m 3 -A 10 FAILED "$work/ninja.log" >&2 && exit 1; }
    mv "$work/build/mediasoup-worker" "$changed"
}

if [ -x "$work/mediasoup-worker" ]; then
    [ -z "$change" ] || with_change
    exit
fi
for tool in g++ meson ninja cargo apt-get dpkg patch flock; do
    command -v "$tool" > /dev/null || { echo "${0##*/}: $tool is missing" >&2 && exit 1; }
done
[ -e /usr/include/openssl/ssl.h ] || { echo "${0##*/}: Debian's package libssl-dev is missing" >&2 && exit 1; }
source=$here/node_modules/mediasoup/worker
[ -d "$source" ] || { echo "${0##*/}: run 'npm ci --ignore-scripts' first" >&2 && exit 1; }

# libweir, which listens beside libwebrtc's controller if WEIR_SHADOW asks for it.
cd "$here/../.."
weir=$(scripts/build/c-library.sh build)
weir=$(cd "$weir" && pwd)

mkdir -p "$work/debs" "$work/unpacked"
cd "$work/debs"
# shellcheck disable=SC2086
apt-get download -qq -o APT::Sandbox::User=root $packages
for package in *.deb; do
    dpkg -x "$package" "$work/unpacked"
done
# It calls libsrtp 3, and Debian has libsrtp 2.
cp "$here/libsrtp3.h" "$work/unpacked/usr/include/srtp.h"
libraries=$work/unpacked/usr/lib/$(gcc -print-multiarch)

cd "$work"
rm -rf source build
cp -r "$source" source
cd source
patch --quiet --strip 1 < "$here/shadow.patch"

# Its own descriptions of libraries fetch from outside. These name Debian's.
rm subprojects/*.wrap
# library NAME VARIABLES LINK...: a subproject that declares the variables as the library with these link options.
library() {
    name=$1 variables=$2
    shift 2
    mkdir -p "subprojects/$name"
    {
        echo "project('$name', 'cpp')"
        echo "d = declare_dependency("
        echo "  compile_args: ['-isystem', '$work/unpacked/usr/include'],"
        echo "  link_args: ['-L$libraries', '-Wl,-rpath,$libraries',"
        for option in "$@"; do
            echo "    '$option',"
        done
        echo "  ])"
        for variable in $variables; do
            echo "$variable = d"
        done
    } > "subprojects/$name/meson.build"
}
library openssl openssl_dep -lssl -lcrypto
library libuv libuv_dep -luv
library libsrtp3 libsrtp3_dep -lsrtp2
library usrsctp usrsctp_dep -lusrsctp
library flatbuffers flatbuffers_dep -lflatbuffers
library abseil-cpp 'absl_container_dep absl_strings_dep absl_types_dep' -labsl_graphcycles_internal \
    -labsl_raw_hash_set -labsl_hash -labsl_city -labsl_low_level_hash -labsl_raw_logging_internal \
    -labsl_throw_delegate -labsl_strings -labsl_malloc_internal -labsl_bad_optional_access -labsl_base
# No tests, no options for subprojects, and Debian's meson is 1.0.
sed -i -e '/default_options: \[$/,/^ *\],/d' -e '/^catch2_proj/,/^)/d' -e '/^test_sources/,$d' \
    -e '/^link_whole = \[/,/^\]/c link_whole = [libwebrtc]' -e "s/>= 1.1.0/>= 1.0.0/" meson.build
sed -i '/default_options: \[$/,/^ *\],/d' deps/libwebrtc/meson.build
# Its callback answers 1 to each question about a BIO. Debian's OpenSSL, which knows TLS in the kernel, asks whether
# that is on, and would then have no buffer to write to.
sed -i 's/(operationType == BIO_CB_RETURN)/((operationType \& BIO_CB_RETURN) != 0)/' src/RTC/DtlsTransport.cpp

# For flatc, which is also unpacked only.
export LD_LIBRARY_PATH="$libraries" PATH="$work/unpacked/usr/bin:$PATH"
export CXXFLAGS="-I$here/../../library/capi/include" LDFLAGS="-L$weir"
meson setup --wrap-mode=nodownload -Dms_disable_liburing=true -Doptimization=1 -Ddebug=false "$work/build" \
    > "$work/meson.log" || { tail -n 20 "$work/meson.log" >&2 && exit 1; }
ninja -C "$work/build" fbs/FBS > "$work/ninja.log"
ninja -C "$work/build" -j2 mediasoup-worker > "$work/ninja.log" ||
    { grep -m 3 -A 10 FAILED "$work/ninja.log" >&2 && exit 1; }
mv "$work/build/mediasoup-worker" "$work"
rm -r "$work/debs"
[ -z "$change" ] || with_change
