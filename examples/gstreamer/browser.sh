#!/bin/sh
# browser.sh URL: opens the page in a Chromium without a window.
#
# `weir link` runs it as root on a host that reaches nothing but the sender. Chromium has no sandbox for root.
set -eu
profile=$(mktemp -d)
# The sender, which starts at the same time, has to be there first.
sleep 1
exec "${CHROMIUM:-chromium}" --headless=new --no-sandbox --disable-gpu --no-first-run \
    --user-data-dir="$profile" --autoplay-policy=no-user-gesture-required \
    --disable-features=WebRtcHideLocalIpsWithMdns "$1"
