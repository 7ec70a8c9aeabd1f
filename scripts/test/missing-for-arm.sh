#!/bin/sh
# Prints why this machine cannot build programs for ARM and run them in qemu, or nothing if it can.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"

for target in aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf; do
    if ! rustup target list --installed 2> /dev/null | grep -qx "$target"; then
        echo "no $target: rustup target add $target"
        exit
    fi
done
# missing PACKAGE PROGRAM: prints the reason if the program is not there.
missing() {
    command -v "$2" > /dev/null && return 1
    echo "no $2: apt-get install $1"
}
missing qemu-user qemu-aarch64 && exit
missing 'g++-aarch64-linux-gnu libc6-dev-arm64-cross' aarch64-linux-gnu-g++ && exit
missing 'g++-arm-linux-gnueabihf libc6-dev-armhf-cross' arm-linux-gnueabihf-g++ && exit
exit 0
