#!/bin/sh
# Installs what is missing: `deps.sh` for real calls, `deps.sh --test` also for tests and lint. Debian packages
# are installed as root; otherwise it prints the command. What rustup and cargo install goes to the user's own
# folders and needs no root. A missing compiler ends it; all else is said, and what needs it is skipped later.
set -eu

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
# need PACKAGE PROGRAM...: one of the programs is enough.
need() {
    package=$1
    shift
    for program in "$@"; do
        command -v "$program" > /dev/null && return
    done
    missing="$missing $package"
}
need chromium chromium chromium-browser google-chrome google-chrome-stable
need ffmpeg ffmpeg
need firefox-esr firefox-esr firefox
need janus janus
need coturn turnserver
need iperf3 iperf3
need iputils-ping ping
need iproute2 ip
need procps ps
need tshark tshark
# Rust links with cc, which it brings; the fuzzer is C++.
need g++ c++

if [ -z "$missing" ]; then
    :
elif ! command -v apt-get > /dev/null; then
    echo "deps: no apt-get here; real calls need these Debian packages or their like:$missing" >&2
elif [ "$(id -u)" -ne 0 ]; then
    echo "deps: not root; real calls need: sudo apt-get install$missing" >&2
else
    echo "deps: apt-get install$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    # shellcheck disable=SC2086 # one word a package
    apt-get install -q -y --no-install-recommends $missing
fi

[ "${1:-}" = --test ] || exit 0

# Runs a command that gets something; without it the tests say what they skip.
get() {
    what=$1
    shift
    echo "deps: $*"
    "$@" || echo "deps: no $what, see above; what needs it is skipped" >&2
}
musl=x86_64-unknown-linux-musl
if ! command -v rustup > /dev/null; then
    echo "deps: no rustup: the fuzz tests need a nightly compiler, and lint wants $musl" >&2
else
    cargo clippy --version > /dev/null 2>&1 && cargo fmt --version > /dev/null 2>&1 ||
        get 'rustfmt and clippy' rustup component add rustfmt clippy
    rustup toolchain list | grep -q '^nightly-[a-z]' ||
        get 'nightly compiler' rustup toolchain install nightly --profile minimal --no-self-update
    rustup target list --installed | grep -qx "$musl" || get "$musl" rustup target add "$musl"
    rustup target list --installed | grep -qx thumbv7em-none-eabi ||
        get 'a target without std' rustup target add thumbv7em-none-eabi
fi
cargo fuzz --version > /dev/null 2>&1 || get cargo-fuzz cargo install cargo-fuzz --locked
# In a folder of their own: a system's Python is often not to be installed into.
python=${CARGO_TARGET_DIR:-target}/python
if command -v python3 > /dev/null && ! python3 -c 'import pandas, polars' 2> /dev/null &&
    ! "$python/bin/python3" -c 'import pandas, polars' 2> /dev/null; then
    # shellcheck disable=SC2016 # the inner shell expands it
    get 'pandas and polars' sh -c 'python3 -m venv "$1" && "$1/bin/pip" install -q pandas polars' - "$python"
fi
