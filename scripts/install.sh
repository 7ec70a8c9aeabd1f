#!/bin/sh
# Installs what real calls and their tests need: Debian packages, only those that are missing, only as
# root. Without them everything but the real calls works. The compilers must be there already.
set -eu

for tool in cargo node npm; do
    command -v "$tool" > /dev/null && continue
    case $tool in
        cargo) hint='the Rust toolchain, https://rustup.rs (1.95 or later)' ;;
        *) hint='Node.js with npm, https://nodejs.org (20 or later)' ;;
    esac
    echo "install: $tool is missing: install $hint" >&2
    exit 1
done

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

if [ -z "$missing" ]; then
    exit 0
elif ! command -v apt-get > /dev/null; then
    echo "install: no apt-get here; real calls need these Debian packages or their like:$missing" >&2
elif [ "$(id -u)" -ne 0 ]; then
    echo "install: not root; real calls need: sudo apt-get install$missing" >&2
else
    echo "install: apt-get install$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    # shellcheck disable=SC2086 # one word a package
    apt-get install -q -y --no-install-recommends $missing
fi
