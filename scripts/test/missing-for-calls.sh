#!/bin/sh
# Prints why this machine cannot make real calls, or nothing if it can.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"

reason=$("$(dirname "$0")/missing-for-emulator.sh")
if [ -n "$reason" ]; then
    echo "$reason"
elif [ -z "${WEIR_BROWSER:-}" ]; then
    for browser in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$browser" > /dev/null && exit 0
    done
    echo 'no Chromium: apt-get install chromium'
fi
