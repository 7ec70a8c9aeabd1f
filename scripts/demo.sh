#!/bin/sh
# Builds what the demo needs, simulates the first scenarios under every controller, writes report.html
# and opens it where there is a desktop. Then it makes one real call and writes the report again, with
# the call beside its simulation. The last line of the output is the report's path.
#
# On a new machine the first report is there after about two minutes and the second after about four.
# Both programs it builds are the same at different times: the first one only simulates, so that there
# is something to look at while the parts of a real call are built and installed.
set -eu
. "$(dirname "$0")/usage.sh"
accept '' "$@"
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
weir=$target/demo/weir
out=$target/demo-runs
report=$PWD/report.html
begun=$(date +%s)

say() {
    now=$(($(date +%s) - begun))
    printf 'demo (%d:%02d): %s\n' $((now / 60)) $((now % 60)) "$1"
}

# The program without IMS and analysis of dumps, which the demo does not use.
build() { # FEATURE...
    cargo build --quiet --profile demo --package weir-cli --no-default-features "$@"
}

# Opens the report, if someone sits at a desktop.
show() {
    "$weir" report "$out" -o "$report" > /dev/null
    if [ -t 1 ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open > /dev/null; then
        xdg-open "$report" > /dev/null 2>&1 &
    fi
}

scripts/deps.sh --build
say 'building the simulator and the report'
make --no-print-directory web > "${TMPDIR:-/tmp}/weir-demo-web.log" 2>&1 || {
    cat "${TMPDIR:-/tmp}/weir-demo-web.log" >&2
    exit 1
}
build
rm -rf "$out"
say 'simulating'
"$weir" run lund/rmcat-ns3 lund/sudden-reduction lund/sweden-china lund/no-jitter rfc8867/5.1 \
    --controller all --seeds 5 --out "$out"
"$weir" run demo/first-call demo/first-call/one-way --controller all --seed 1 --out "$out"
show
say "the first report is $report; a real call follows"

scripts/deps.sh --calls
reason=$(scripts/missing-for-calls.sh)
call=0
if [ -n "$reason" ]; then
    say "the real call was skipped: $reason"
else
    say 'building the emulator'
    build --features calls
    say 'a real call of two browsers, about a minute'
    "$weir" call demo/first-call --out "$out" || call=$?
    show
    say "the report has the call: $report"
    # A sender under Weir's own controller beside Chromium, with video in one direction: a pipeline only sends.
    if gst-inspect-1.0 weircc > /dev/null 2>&1; then
        say 'two calls with video in one direction, under sluice and by Chromium, about two minutes'
        "$weir" call demo/first-call/one-way --controller chromium,sluice --out "$out" || call=$?
        show
    else
        say 'no call under sluice, only its simulation: make install-gst makes it possible'
    fi
fi
if [ "$call" -ne 0 ]; then
    say 'the real call FAILED, see above; the report is without it'
fi
echo "$report"
exit "$call"
