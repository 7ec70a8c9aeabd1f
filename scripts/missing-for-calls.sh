#!/bin/sh
# Prints why this machine cannot make real calls, or nothing if it can.
set -eu

if [ "$(id -u)" -ne 0 ]; then
    echo 'not root, and network namespaces need it: use sudo'
elif [ ! -e /dev/net/tun ]; then
    echo "no /dev/net/tun: run 'modprobe tun', or give a container '--device /dev/net/tun'"
elif [ -z "${WEIR_BROWSER:-}" ]; then
    for browser in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$browser" > /dev/null && exit 0
    done
    echo 'no Chromium: apt-get install chromium'
fi
