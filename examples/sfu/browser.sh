#!/bin/sh
# browser.sh URL: opens the page in a Chromium without a window, with a made-up camera.
#
# `weir link` runs it as root on a host that reaches nothing but the server. Chromium has no sandbox for root. A page may
# only ask for the camera if its origin counts as secure.
set -eu
profile=$(mktemp -d)
origin=$(echo "$1" | cut -d / -f 1-3)
# The server, which starts at the same time, has to be there first.
sleep 1
exec "${CHROMIUM:-chromium}" --headless=new --no-sandbox --disable-gpu --no-first-run \
    --user-data-dir="$profile" --autoplay-policy=no-user-gesture-required \
    --use-fake-device-for-media-stream --use-fake-ui-for-media-stream \
    --unsafely-treat-insecure-origin-as-secure="$origin" \
    --disable-features=WebRtcHideLocalIpsWithMdns "$1"
