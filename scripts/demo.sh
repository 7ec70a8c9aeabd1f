#!/bin/sh
# Simulates the first scenarios under every controller, makes one real call, and compares both in
# report.html. The last line of the output is its path. `make demo` builds the program first.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
weir=$target/release/weir
out=$target/demo
rm -rf "$out"

"$weir" run lund/rmcat-ns3 lund/sudden-reduction lund/sweden-china lund/no-jitter rfc8867/5.1 \
    --controller all --seeds 5 --out "$out"
"$weir" run demo/first-call demo/first-call/one-way --controller all --seed 1 --out "$out"

reason=$(scripts/missing-for-calls.sh)
call=0
if [ -n "$reason" ]; then
    echo "demo: the real call was skipped: $reason"
else
    echo 'demo: a real call of two browsers, about a minute'
    "$weir" call demo/first-call --out "$out" || call=$?
    # A sender under Weir's own controller beside Chromium, with video in one direction: a pipeline only sends.
    if gst-inspect-1.0 weircc > /dev/null 2>&1; then
        echo 'demo: two calls with video in one direction, under sluice and by Chromium, about two minutes'
        "$weir" call demo/first-call/one-way --controller chromium,sluice --out "$out" || call=$?
    else
        echo 'demo: no call under sluice, only its simulation: make install-gst makes it possible'
    fi
fi

"$weir" report "$out" -o report.html > /dev/null
if [ "$call" -ne 0 ]; then
    echo 'demo: the real call FAILED, see above; the report is without it'
fi
echo "$PWD/report.html"
exit "$call"
