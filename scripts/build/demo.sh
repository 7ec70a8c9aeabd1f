#!/bin/sh
# Builds what the demo needs, simulates the first scenarios under the controllers of the library, writes
# report.html and opens it where there is a desktop. Then it makes one real call and writes the report again,
# with the call beside its simulation. Each step is one line, and its own output is below target/logs. The last
# line of the output is the report's path.
#
# On a new machine the first report is there after about two minutes and the second after about four.
# Both programs it builds are the same at different times: the first one only simulates, so that there
# is something to look at while the parts of a real call are built and installed.
set -eu
. "$(dirname "$0")/../usage.sh"
. "$(dirname "$0")/../quietly.sh"
accept '' "$@"
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
weir=$target/demo/weir
out=$target/demo-runs
report=$PWD/report.html
begun=$(date +%s)

say() {
    echo "$(clock) $1"
}

# Where the demo is: how long it has been running.
clock() {
    now=$(($(date +%s) - begun))
    printf 'demo (%d:%02d):' $((now / 60)) $((now % 60))
}

# step NAME WHAT COMMAND...: a step in one line, with its output in a log.
step() {
    name=$1 what=$2
    shift 2
    quietly "$(clock) $what" "demo-$name" "$@"
}

# shellcheck disable=SC2317 # `step` calls these two.
# The program without IMS and analysis of dumps, which the demo does not use.
build() { # FEATURE...
    cargo build --quiet --profile demo --package weir-cli --no-default-features "$@"
}

# shellcheck disable=SC2317
# Simulates the scenarios of the first report.
simulate() {
    "$weir" run lund/rmcat-ns3 lund/sudden-reduction lund/sweden-china lund/no-jitter rfc8867/5.1 \
        --seeds 5 --out "$out" &&
        "$weir" run demo/first-call demo/first-call/one-way --seed 1 --out "$out"
}

# Opens the report, if someone sits at a desktop.
show() {
    "$weir" report "$out" -o "$report" > /dev/null
    if [ -t 1 ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open > /dev/null; then
        xdg-open "$report" > /dev/null 2>&1 &
    fi
}

scripts/build/deps.sh --build
step web 'building the report' make --no-print-directory web
step simulator 'building the simulator' build
rm -rf "$out"
step simulation 'simulating 7 scenarios under 5 controllers' simulate
show
say "the first report is $report; a real call follows"

scripts/build/deps.sh --calls
reason=$(scripts/test/missing-for-calls.sh)
call=0
if [ -n "$reason" ]; then
    say "the real call was skipped: $reason"
else
    step emulator 'building the emulator' build --features calls
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
