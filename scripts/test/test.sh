#!/bin/bash
# Runs the tests. Each step is one line with its time; what its programs print goes to a log below target/logs/, and
# a step that fails shows the end of its log. The last line has the totals.
#
# Without an option, as `make test` calls it: formats, clippy, all tests of library and lab in virtual time, the web pages,
# and one real call of two browsers through the emulator with its capture. --rest runs everything else, as `make test-all`
# does next; --ci the part of it for which CI has time, and names what it leaves out. --check runs clippy and tests for what
# has changed since the last check that passed on this machine: scripts/test/changed.py says which.
#
# A test that cannot run on this machine prints "skipped: REASON" and returns. It counts as skipped, although cargo counts it
# as passed. A test of real time that failed and then passed alone is listed as flaky: that is a bug, of the test or of ours.
set -u
. "$(dirname "$0")/../usage.sh"
accept '--rest --ci --check' "$@"
cd "$(dirname "$0")/../.." || exit
[ $# -le 1 ] || { echo "${0##*/}: one option at most" >&2 && exit 2; }
tier=${1:-quick}
tier=${tier#--}

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
logs=$target/logs/test-$tier
fuzz_seconds=${FUZZ_SECONDS:-10}
passed=0
failed=0
# The whole workspace, but for a crate without tests. With it, cargo would build all that uses serde once more, because its
# macros ask for more of syn.
all=(--workspace --exclude weir-python)
skipped=()
flaky=()
part=() # the part of the tests that runs, as an option of nextest
failures=()
left_out=()
rm -rf "$logs"
mkdir -p "$logs"

# --- What a step prints ---------------------------------------------------------------------------------------------

pass() { passed=$((passed + ${1:-1})); }
fail() { failed=$((failed + 1)) && failures+=("$1"); }
skip() { skipped+=("$1"); }

# begin NAME: the begun line of a step; end RESULT completes it.
begin() {
    step=$1
    log=$logs/$(tr -cs 'a-zA-Z0-9\n' - <<< "$1").log
    begun=$SECONDS
    printf '%3d:%02d  %-58s' $((SECONDS / 60)) $((SECONDS % 60)) "$1"
}
end() { printf ' %5d s  %s\n' $((SECONDS - begun)) "$1"; }

# The end of a log whose step has failed.
tell() {
    tail -n 30 "$log" | cut -c 1-300 | sed 's/^/        | /'
    echo "        the whole log: $log"
}

# In CI nothing begins after 35 minutes, so that a slow machine ends in time. What is left out is named at the end.
has_time() {
    [ "$tier" != ci ] || [ $(($(date +%s) - ${CI_BEGUN:-$(date +%s)})) -lt 2100 ] || ! left_out+=("$1")
}

# Runs one step that is one test: step NAME COMMAND...
step() {
    has_time "$1" || return
    begin "$1"
    shift
    if "$@" > "$log" 2>&1 < /dev/null; then
        pass && end ok
    else
        fail "$step" && end FAILED && tell
    fi
}

# Of a step that needs what a machine may lack: unless REASON NAME COMMAND...
unless() {
    local reason=$1
    shift
    if [ -n "$reason" ]; then skip "$1: $reason"; else step "$@"; fi
}

# own NAME SCRIPT ARGUMENT...: a script that says itself, with --missing, why it cannot run here.
own() {
    local name=$1
    shift
    unless "$("$1" --missing)" "$name" "$@"
}

# Runs the Rust tests that FILTER selects in nextest's words, and counts their outcomes: tests NAME PROFILE FILTER ARGUMENT...
# `store` is where nextest writes them: below the workspace's own folder for a workspace of its own.
tests() {
    local profile=$2 filter=$3 status=0 outcome name reason before=("$passed" "$failed" "${#skipped[@]}")
    local junit=${store:-target}/nextest/$profile/junit.xml
    has_time "$1" || return
    begin "$1"
    shift 3
    rm -f "$junit"
    cargo nextest run --profile "$profile" -E "$filter" "${part[@]}" "$@" > "$log" 2>&1 < /dev/null || status=$?
    if [ ! -f "$junit" ]; then
        fail "$step: cargo nextest is missing (scripts/build/deps.sh --test), or the tests did not build"
        end FAILED && tell
        return 1
    fi
    local red=()
    while IFS=$'\t' read -r outcome name reason; do
        case $outcome in
            passed) pass ;;
            skipped) skip "$name: $reason" ;;
            *) red+=("$name") ;;
        esac
    done < <(scripts/test/outcomes.py "$junit")
    [ "$status" -eq 0 ] || [ "${#red[@]}" -gt 0 ] || red=("$step: exit code $status")
    if [ "$profile" = real ] && [ "${#red[@]}" -gt 0 ]; then again "$@"; fi
    for name in "${red[@]}"; do fail "$name"; done
    end "$((passed - before[0])) passed, $((failed - before[1])) failed, $((${#skipped[@]} - before[2])) skipped"
    [ "$failed" -eq "${before[1]}" ] || tell
}

# The tests in `red` once more, each alone: what passes now is flaky, and is told.
again() {
    local name still=()
    for name in "${red[@]}"; do
        if cargo nextest run --profile real "$@" -E "binary_id(${name%% *}) & test(=${name##* })" >> "$log" 2>&1 < /dev/null; then
            pass && flaky+=("$name")
        else
            still+=("$name")
        fi
    done
    red=("${still[@]}")
}

# --- What `make test` runs --------------------------------------------------------------------------------------------

# The report viewer, its types, and the pages that it draws in a browser: web [OPTION OF VITEST]...
web() {
    local result=$logs/vitest.json counts status=0 p f s
    begin 'web pages'
    (cd lab/web && npm test -- --reporter=default --reporter=json --outputFile.json="$result" "$@") > "$log" 2>&1 < /dev/null ||
        status=$?
    counts=$(node -e '
        const r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
        console.log(r.numPassedTests, r.numFailedTests, r.numPendingTests + r.numTodoTests);
    ' "$result" 2> /dev/null)
    if [ -z "$counts" ]; then
        fail 'web pages: did not get as far as the tests'
        end FAILED && tell
        return
    fi
    read -r p f s <<< "$counts"
    pass "$p"
    for ((i = 0; i < s; i++)); do skip 'web pages: a test of a page: no Chromium (apt-get install chromium)'; done
    if [ "$f" -gt 0 ] || [ "$status" -ne 0 ]; then
        failed=$((failed + (f > 0 ? f : 1))) && failures+=("web pages, see $log")
    fi
    end "$p passed, $f failed, $s skipped"
    [ "$status" -eq 0 ] || tell
}

# Builds before it tests, so that no test waits for a compiler.
quick() {
    step 'formats' scripts/build/format.sh --check
    # The playground's page is tested with the simulator in WebAssembly.
    web --exclude test/playground.test.ts
    step 'clippy of library and lab' cargo clippy --quiet --all-targets -- -D warnings
    step 'check of the programs of make demo' scripts/test/builds.sh --demo
    step 'build of their tests' cargo build --quiet --tests --bins
    tests 'tests of library and lab, in virtual time' default 'all()'
    # Two Chromiums, the emulator, a capture at each end, getStats: five witnesses that must agree.
    # Not by --package: with other features of what it uses, cargo would build that once more.
    tests 'a real call' real \
        'package(weir-call) & test(=call::getstats_captures_and_emulator_agree_and_tshark_reads_the_same)'
}

# --- What `make test-all` runs besides ---------------------------------------------------------------------------------

# The steps of the rest, those first that broke most often. What runs in real time has nothing beside it, and finds built what
# it needs.
rest() {
    step 'public interfaces' scripts/release/public-api.sh
    step 'lint' scripts/test/lint.sh
    step 'packages' scripts/release/package.sh
    step 'build of all tests' cargo build --quiet "${all[@]}" --tests --bins
    tests 'tests of the IMS and of controllers in fixed memory, in virtual time' default \
        'package(weir-diameter) | package(weir-nodes) | package(weir-testbed) | package(weir-fixed-memory)' "${all[@]}"
    gstreamer
    if [ "$tier" = ci ]; then left_out+=('adapters for stacks in Rust'); else adapters; fi
    tests 'Wi-Fi against ns-3, the losses' ns-3 'all()' "${all[@]}"
    step 'conformance vectors' scripts/build/vectors.sh
    own 'rules of analyze in WebAssembly' scripts/build/watch-wasm.sh --quick
    real
    catalogue
    step 'examples in the documentation' cargo test --quiet "${all[@]}" --doc
    own 'Go module' scripts/test/test-go.sh
    # Sweeps need Dask, which takes long to install.
    [ "$tier" = ci ] || export WEIR_SWEEPS=1
    own 'Python package' scripts/test/test-python.sh
    rarely
}

# What a change has seldom broken. CI leaves it out.
rarely() {
    if [ "$tier" = ci ]; then
        step 'the library without std, with its oldest compiler' scripts/test/builds.sh --library
        left_out+=('clippy of the Python package and of the GStreamer plugin' 'other features, compilers and systems' 'ARM' 'bare metal' 'WebAssembly and the playground' 'fuzz' 'Miri'
            'VMAF' 'dashboards' 'ns-3' 'the size of the rules in WebAssembly' 'LiveKit')
        return
    fi
    step 'other features, compilers and systems' scripts/test/builds.sh
    unless "$(scripts/test/missing-for-arm.sh)" 'unit tests and results on ARM' scripts/test/test-arm.sh
    own 'controllers on a processor without an operating system' scripts/test/bare-metal.sh
    own 'equal records in WebAssembly, the playground' scripts/test/test-wasm.sh --quick
    own 'the size of the rules in WebAssembly' scripts/build/watch-wasm.sh --size
    fuzz
    miri
    vmaf
    own 'dashboards' scripts/test/check-dashboards.sh
    step 'Wi-Fi against ns-3' "$target/debug/weir" research validate wifi
    step 'cellular against ns-3' "$target/debug/weir" research validate cellular
    own 'LiveKit with the Go module' scripts/test/test-livekit.sh
}

# The expectations of the catalogue.
catalogue() {
    local weir=$target/debug/weir
    step 'expectations of the suites' "$weir" check 'rfc8867/*' 'rfc8836/*' 'rfc8869/*' 'bari/tcp/*/compete' \
        'handover/*' 'l4s/*' 'policer/*' 'field/*' --controller all
    step 'expectations of delft' "$weir" check 'delft/wired*' 'delft/wifi-*' 'delft/4g-*' --controller gcc,gcc-draft
    step 'clocks, reports and rates' "$weir" check 'wide/*' --controller gcc,nada,scream-v2,sluice
    step 'goals of sluice' "$weir" check 'goals/*' --controller sluice --seeds 10
    step 'media over QUIC' "$weir" check 'quic/*' --controller sluice
    step 'a forwarding server' "$weir" check 'sfu/*' --controller gcc,nada,scream-v2,sluice
}

# The GStreamer plugin is a workspace of its own, because it does not build without GStreamer. Calls by pipelines, among
# the real tests, find it by GST_PLUGIN_PATH.
gstreamer() {
    local missing
    missing=$(scripts/test/missing-for-gst.sh)
    if [ -n "$missing" ]; then
        skip "the GStreamer plugin: apt-get install $missing"
        return
    fi
    store=library/gst/target tests 'GStreamer plugin' default 'all()' --manifest-path library/gst/Cargo.toml --target-dir "$target/gst"
    step 'build of the GStreamer plugin' cargo build --quiet --manifest-path library/gst/Cargo.toml --target-dir "$target/gst"
    GST_PLUGIN_PATH=$target/gst/debug
    export GST_PLUGIN_PATH
    if [ "$tier" = rest ]; then
        unless "$(command -v valgrind > /dev/null || echo 'apt-get install valgrind')" 'GStreamer plugin under valgrind' \
            scripts/test/valgrind-gst.sh
    fi
}

# The adapters for stacks in Rust, and examples that real tests run, are workspaces of their own. They share a folder, and with
# equal profiles most of what they build.
adapters() {
    local name
    for name in webrtc-rs str0m noq quinn; do
        step "adapter for $name" cargo test --quiet --all-features --manifest-path "library/$name/Cargo.toml" --target-dir "$target/examples"
    done
    step 'build of the example of a forwarding server' cargo test --no-run --quiet --locked \
        --manifest-path examples/sfu/Cargo.toml --target-dir "$target/examples"
    step 'build of the example with webrtc-rs' cargo build --quiet --locked \
        --manifest-path examples/webrtc-rs/Cargo.toml --target-dir "$target/examples"
}

# Real networks, stacks and calls. .config/nextest.toml says which of them wait most of the time, and run side by side.
real() {
    unless "$(scripts/test/missing-for-emulator.sh)" 'emulator self-test' "$target/debug/weir" link --self-test
    if [ "$tier" = rest ] && command -v go > /dev/null; then
        step 'build of the server of LiveKit' examples/apps/livekit/get-server.sh
    fi
    if [ "$tier" = ci ]; then
        a_third
        return
    fi
    tests 'real networks and calls' real 'all()' "${all[@]}"
    step 'example of a forwarding server' cargo test --quiet --locked --manifest-path examples/sfu/Cargo.toml \
        --target-dir "$target/examples"
}

# All real tests take half an hour. CI runs a third of those that need no stack of others, with each commit another one.
a_third() {
    local third=$(($(git rev-list --count HEAD) % 3 + 1))
    part=(--partition "count:$third/3")
    tests "real networks and calls, third $third of 3" real \
        'not (package(weir-cli) & test(/^(arena|bindings|examples|own_controller)::/))' "${all[@]}"
    part=()
    left_out+=('two thirds of the real networks and calls' 'real calls with stacks of others and of examples')
}

# VMAF, whose C library is built only with a feature.
vmaf() {
    local missing=''
    command -v meson > /dev/null && command -v nasm > /dev/null || missing='apt-get install meson nasm'
    unless "$missing" 'VMAF' cargo test --quiet --package weir-vmaf --features libvmaf --target-dir "$target/vmaf"
}

# Runs each fuzz target for a few seconds from an empty corpus. A finding is a failure.
fuzz() {
    local reason='' file name
    # Ask cargo, because its folder of programs need not be on the path.
    if ! cargo fuzz --version > /dev/null 2>&1; then
        reason='no cargo-fuzz: cargo install cargo-fuzz --locked'
    elif ! command -v c++ > /dev/null; then
        reason='no C++ compiler: apt-get install g++'
    elif ! rustup toolchain list 2> /dev/null | grep -q '^nightly-[a-z]'; then
        reason='no nightly compiler: rustup toolchain install nightly --profile minimal'
    fi
    for file in fuzz/fuzz_targets/*.rs; do
        name=$(basename "$file" .rs)
        unless "$reason" "fuzz $name, $fuzz_seconds s" cargo +nightly fuzz run --fuzz-dir fuzz "$name" -- \
            -max_total_time="$fuzz_seconds" -print_final_stats=1 -verbosity=0
    done
}

# The unsafe code at the border to C, under an interpreter that finds undefined behaviour.
miri() {
    local reason=''
    cargo +nightly miri --version > /dev/null 2>&1 || reason='rustup +nightly component add miri rust-src'
    unless "$reason" 'the border to C under Miri' \
        cargo +nightly miri test --quiet --package weir-capi --lib --test it --target-dir "$target/miri" -- \
        --skip allocations:: --skip c_programs:: --skip header:: --skip properties::
}

# Clippy without the tests of its options, and tests, of what has changed.
check() {
    local tree filter parts packages
    {
        read -r tree
        read -r filter
        read -r parts
        read -ra packages
    } < <(scripts/test/changed.py "$(cat "$target/check-passed" 2> /dev/null)")
    echo "tests: $filter${parts:+; $parts}"
    step 'formats' scripts/build/format.sh --check
    [ "${#packages[@]}" -eq 0 ] || step 'clippy' cargo clippy --quiet "${packages[@]}" --all-targets -- -D warnings
    [[ " $parts " != *' web '* ]] || web --exclude 'test/{page,plots}.test.ts'
    [[ " $parts " != *' gstreamer '* ]] || gstreamer
    [[ " $parts " != *' python '* ]] || own 'Python package' scripts/test/test-python.sh
    tests 'tests' default "$filter" "${all[@]}"
    [ "$failed" -gt 0 ] || echo "$tree" > "$target/check-passed"
}

# --- The run -----------------------------------------------------------------------------------------------------------

# What a tier adds to a machine that has nothing, in GB.
case $tier in
    quick) needs=6 && echo 'formats, clippy, library and lab, pages, one call: half an hour from nothing on two busy cores' ;;
    rest) needs=25 && echo 'everything else: longer than the tests before' ;;
    ci) needs=15 && echo 'what CI has time for: nothing begins after 35 minutes' ;;
    check) needs=1 && echo 'a minute after a line of a package, some minutes if everything has changed' ;;
esac
free=$(df --output=avail --block-size=1G . | tail -n 1)
[ "$free" -ge "$needs" ] || echo "only ${free// /} GB are free: from nothing, this takes $needs"
case $tier in
    ci) rest ;;
    *) "$tier" ;;
esac

list() { # HEADING LINE...
    local heading=$1
    shift
    [ $# -eq 0 ] || printf '%s\n' "$heading" "${@/#/  }"
}
list 'skipped:' "${skipped[@]}"
list 'left out; make test-all has them:' "${left_out[@]}"
list 'flaky, which is a bug: failed among the others, passed alone:' "${flaky[@]}"
list 'failed:' "${failures[@]}"
echo "$passed passed, $failed failed, ${#skipped[@]} skipped"
[ "$failed" -eq 0 ]
