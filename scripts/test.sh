#!/bin/bash
# Runs all tests. With --check it runs clippy and tests for what has changed since the last check that
# passed on this machine: scripts/changed.py says which. None of them needs root or a browser. With --gate it first runs what CI holds besides the tests: lint, the packages, the public
# interfaces, and the expectations of the catalogue. At the end it prints the skipped tests with
# their reasons, and one line with the totals.
#
# A test that cannot run on this machine prints "skipped: REASON" and returns. Here it counts as
# skipped, although cargo counts it as passed. A test of real time that failed once and then passed
# counts as passed, and is listed with its first failure. This script needs lab/web/node_modules,
# cargo-nextest and Python, and it uses the other tools that scripts/deps.sh installs. `make test`
# installs all of them.
set -u
. "$(dirname "$0")/usage.sh"
accept '--check --gate' "$@"
cd "$(dirname "$0")/.." || exit
[ $# -le 1 ] || { echo "${0##*/}: one option at most" >&2 && exit 2; }
check=''
gate=''
case ${1:-} in
    --check) check=1 ;;
    --gate) gate=1 ;;
esac
profile=${check:+check}
profile=${profile:-default}

target=${CARGO_TARGET_DIR:-target}
fuzz_seconds=${FUZZ_SECONDS:-10}
# What a gate from nothing adds to a new machine, in GB.
needed_gb=25
passed=0
failed=0
skipped=()
repeated=()
failures=()
logs=$(mktemp -d)
lane=''
leave() {
    [ -z "$lane" ] || kill -- "-$lane" 2> /dev/null
    rm -rf "$logs"
}
trap leave EXIT

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)) && failures+=("$1"); }
skip() { skipped+=("$1"); }
# With the time since the start, so that a reader sees what takes long.
heading() { printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

# Runs one step that is one test.
step() {
    local name=$1
    shift
    heading "$name"
    if "$@"; then pass; else fail "$name"; fi
}

# Tests of real networks and calls wait for their packets most of the time. Meanwhile steps that only
# compute run in a lane of their own, one after another, with what the tests leave of the processors.
#
# The tests of a check. Without --check, everything is tested.
passed_tree=$target/check-passed
tree=''
filter='all()'
parts=''
packages=()
if [ -n "$check" ]; then
    {
        read -r tree
        read -r filter
        read -r parts
        read -ra packages
    } < <(scripts/changed.py "$(cat "$passed_tree" 2> /dev/null)")
fi

# Whether a part of the check can be affected by what has changed: affected PART
affected() { [ -z "$check" ] || [[ " $parts " = *" $1 "* ]]; }

# Takes a step for the lane: beside NAME COMMAND...
beside() {
    names+=("$1")
    shift
    commands+=("$(printf '%q ' "$@")")
}
names=()
commands=()
broken=()

start_lane() {
    # A process group of its own, so that Ctrl-C leaves none of it behind.
    set -m
    (
        renice -n 19 "$BASHPID" > /dev/null
        for i in "${!names[@]}"; do
            status=0
            eval "${commands[$i]}" > "$logs/$i.log" 2>&1 || status=$?
            echo "$status $SECONDS" > "$logs/$i.status"
        done
    ) &
    lane=$!
    set +m
}

# Waits for the lane, and tells what its steps have told.
end_lane() {
    local status end
    wait "$lane"
    lane=''
    for i in "${!names[@]}"; do
        read -r status end < "$logs/$i.status"
        printf '\n== %s (beside the tests, until %d:%02d)\n' "${names[$i]}" $((end / 60)) $((end % 60))
        cat "$logs/$i.log"
        if [ "$status" -eq 0 ]; then pass; else fail "${names[$i]}" && broken+=("$i"); fi
    done
}

# The last lines of what failed in the lane, once more: who has only the end of a long log sees why.
tell_broken() {
    local i
    for i in "${broken[@]}"; do
        echo "the end of ${names[$i]}:"
        tail -n 25 "$logs/$i.log" | cut -c 1-300 | sed 's/^/  /'
    done
}

# The report viewer, its types, and the pages that it draws in a browser.
web() {
    heading 'web'
    local result=$logs/vitest.json counts status=0
    local options=(--reporter=default --reporter=json --outputFile.json="$result")
    # The pages in a browser. The playground's is tested beside the other tests, with what it needs.
    [ -z "$check" ] || options+=(--exclude 'test/page.test.ts')
    [ -n "$check" ] || [ -n "$(scripts/test-wasm.sh --missing)" ] || options+=(--exclude 'test/playground.test.ts')
    (cd lab/web && npm test -- "${options[@]}") || status=$?
    counts=$(node -e '
        const r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
        console.log(r.numPassedTests, r.numFailedTests, r.numPendingTests + r.numTodoTests);
    ' "$result" 2> /dev/null)
    if [ -z "$counts" ]; then
        fail 'web: did not get as far as its tests'
        return
    fi
    local p f s
    read -r p f s <<< "$counts"
    passed=$((passed + p))
    failed=$((failed + f))
    if [ "$f" -gt 0 ]; then
        failures+=("web: $f tests")
    elif [ "$status" -ne 0 ]; then
        fail 'web: exit code'
    fi
    for ((i = 0; i < s; i++)); do skip 'web: a page test: no Chromium (apt-get install chromium), or no playground (make playground)'; done
}

# Runs the Rust tests that ARGUMENTS select, and reads their outcomes from the file JUNIT:
# nextest JUNIT ARGUMENT...
nextest() {
    local junit=$1 status=0 outcome name reason
    shift
    rm -f "$junit"
    cargo nextest run --profile "$profile" "$@" || status=$?
    if [ ! -f "$junit" ]; then
        fail 'cargo nextest: it is missing (scripts/deps.sh --test installs it), or the tests did not build'
        return
    fi
    local failed_before=$failed
    while IFS=$'\t' read -r outcome name reason; do
        case $outcome in
            passed) pass ;;
            skipped) skip "$name: $reason" ;;
            repeated) pass && repeated+=("$name: $reason") ;;
            *) fail "$name" ;;
        esac
    done < <(scripts/outcomes.py "$junit")
    if [ "$status" -ne 0 ] && [ "$failed" -eq "$failed_before" ]; then
        fail "cargo nextest: exit code $status"
    fi
}

# Builds the tests of all crates, and the program. Of a check, without the programs real_*: cargo
# knows no option to leave out, but patterns.
build() {
    heading 'build'
    local targets=()
    [ -z "$check" ] || targets=(--lib --bins --test '[!r]*' --test 'r[!e]*' --test 're[!a]*')
    cargo metadata --format-version 1 > "$logs/metadata.json"
    cargo nextest list --workspace "${targets[@]}" --list-type binaries-only --message-format json \
        > "$logs/binaries.json"
}

# Tests of all crates. Test programs whose names begin with real_ run the emulator and browser
# calls. cargo builds nothing here, because it would wait for what it builds in the lane.
rust() {
    heading 'cargo nextest'
    built_tests "($filter) and not $alone"
}

# Tests that nothing may disturb: they judge real stacks of others by limits, or count losses of real sockets.
alone='test(/^alone::/)'
undisturbed() {
    heading 'cargo nextest, with nothing beside it'
    built_tests "$alone"
    step 'example of a forwarding server' cargo test --quiet --locked \
        --manifest-path examples/sfu/Cargo.toml --target-dir "$target/examples"
}

# Runs those of the built tests that a filter selects: built_tests FILTER
built_tests() {
    nextest "$target/nextest/$profile/junit.xml" --binaries-metadata "$logs/binaries.json" \
        --cargo-metadata "$logs/metadata.json" -E "$1"
}

# The GStreamer plugin is a workspace of its own, because it does not build without GStreamer.
gstreamer() {
    local missing
    missing=$(scripts/missing-for-gst.sh)
    if [ -n "$missing" ]; then
        skip "the GStreamer plugin: apt-get install $missing"
        return
    fi
    heading 'GStreamer plugin'
    # nextest writes its file below the workspace's own folder, whatever the target folder is.
    nextest "library/gst/target/nextest/$profile/junit.xml" --manifest-path library/gst/Cargo.toml \
        --target-dir "$target/gst"
    # Calls by pipelines, among the other tests, find the plugin here.
    cargo build --quiet --manifest-path library/gst/Cargo.toml --target-dir "$target/gst"
    GST_PLUGIN_PATH=$(realpath "$target/gst/debug")
    export GST_PLUGIN_PATH
    if [ -n "$check" ]; then
        :
    elif command -v valgrind > /dev/null; then
        step 'GStreamer plugin under valgrind' scripts/valgrind-gst.sh
    else
        skip 'GStreamer plugin under valgrind: apt-get install valgrind'
    fi
}

# own NAME SCRIPT ARGUMENT...: a script that says itself, with --missing, why it cannot run here.
own() {
    local name=$1 reason
    shift
    reason=$("$1" --missing)
    if [ -n "$reason" ]; then
        skip "$name: $reason"
    else
        beside "$name" "$@"
    fi
}

# The Python package is built by maturin, outside the workspace. Sweeps need Dask, which takes long to install.
python() {
    [ -n "$check" ] || export WEIR_SWEEPS=1
    ! affected python || own 'Python package' scripts/test-python.sh
}

# The simulator in WebAssembly: equal records, and the playground's page.
wasm() {
    own 'equal records in WebAssembly, the playground' scripts/test-wasm.sh --quick
}

# The rules in a page, and examples, are built here, where the real tests find them: a real test that builds has
# all others wait for it. The adapters for stacks in Rust have nothing real in their tests.
built_beside() {
    local name
    own 'the rules of analyze in WebAssembly' scripts/watch-wasm.sh --quick
    own 'the size of these rules' scripts/watch-wasm.sh --size
    beside 'build of the example of a forwarding server' cargo test --no-run --quiet --locked \
        --manifest-path examples/sfu/Cargo.toml --target-dir "$target/examples"
    beside 'example of a sender with webrtc-rs' cargo build --quiet --locked \
        --manifest-path examples/webrtc-rs/Cargo.toml --target-dir "$target/examples"
    for name in webrtc-rs str0m; do
        beside "adapter for $name" cargo test --quiet --manifest-path "library/$name/Cargo.toml" \
            --target-dir "$target/adapters"
    done
}

# The Go module: equal numbers in the vectors, and calls between two pions. A server with it, if that is asked for.
go_module() {
    own 'Go module' scripts/test-go.sh
    own 'dashboards' scripts/check-dashboards.sh
    own 'LiveKit with the Go module' scripts/test-livekit.sh
}

# VMAF, whose C library is built only with a feature.
vmaf() {
    if command -v meson > /dev/null && command -v nasm > /dev/null; then
        beside 'VMAF' cargo test --quiet --package weir-vmaf --features libvmaf --target-dir "$target/vmaf"
    else
        skip 'VMAF: apt-get install meson nasm'
    fi
}

# What needs no Linux compiles for other systems.
others() {
    own 'a check for Windows and macOS' scripts/other-systems.sh
}

# Runs each fuzz target for a few seconds from an empty corpus. A finding is a failure.
fuzz() {
    local reason=
    # Ask cargo, because its folder of programs need not be on the path.
    if ! cargo fuzz --version > /dev/null 2>&1; then
        reason='no cargo-fuzz: cargo install cargo-fuzz --locked'
    elif ! command -v c++ > /dev/null; then
        reason='no C++ compiler: apt-get install g++'
    elif ! rustup toolchain list 2> /dev/null | grep -q '^nightly-[a-z]'; then
        reason='no nightly compiler: rustup toolchain install nightly --profile minimal'
    fi
    local file name
    for file in fuzz/fuzz_targets/*.rs; do
        name=$(basename "$file" .rs)
        if [ -n "$reason" ]; then
            skip "fuzz $name: $reason"
        else
            beside "fuzz $name, $fuzz_seconds s" cargo +nightly fuzz run --fuzz-dir fuzz \
                "$name" -- -max_total_time="$fuzz_seconds" -print_final_stats=1 -verbosity=0
        fi
    done
}

# The unsafe code at the border to C, under an interpreter that finds undefined behaviour.
miri() {
    local name='the border to C under Miri'
    if cargo +nightly miri --version > /dev/null 2>&1; then
        beside "$name" cargo +nightly miri test --quiet --package weir-capi --lib --test uninitialized \
            --target-dir "$target/miri"
    else
        skip "$name: rustup +nightly component add miri rust-src"
    fi
}

# Waits for LiveKit's server, whose build began in scripts/deps.sh and would disturb calls.
livekit() {
    [ -z "${CI:-}" ] && command -v go > /dev/null || return
    heading 'LiveKit server'
    examples/apps/livekit/get-server.sh || echo 'no LiveKit server; its test is skipped'
}

# Runs ping and iperf3 through the emulator, and compares the results with the settings of the link.
emulator() {
    local name='emulator self-test' reason
    reason=$(scripts/missing-for-emulator.sh)
    if [ -n "$reason" ]; then
        skip "$name: $reason"
    else
        step "$name" "$target/debug/weir" link --self-test
    fi
}

# The library on processors of ARM, in qemu.
arm() {
    local name='unit tests and results on ARM' reason
    reason=$(scripts/missing-for-arm.sh)
    if [ -n "$reason" ]; then
        skip "$name: $reason"
    else
        beside "$name" scripts/test-arm.sh
    fi
    name='controllers on a processor without an operating system'
    reason=$(scripts/bare-metal.sh --missing)
    if [ -n "$reason" ]; then
        skip "$name: $reason"
    else
        beside "$name" scripts/bare-metal.sh
    fi
}

# What holds besides the tests: the packages, the public interfaces and the catalogue. Each step runs
# although an earlier one failed.
gate() {
    local weir=$target/debug/weir
    beside 'packages' scripts/package.sh
    beside 'public interfaces' scripts/public-api.sh
    beside 'expectations of the suites' "$weir" check 'rfc8867/*' 'rfc8836/*' 'rfc8869/*' 'bari/tcp/*/compete' \
        'handover/*' 'l4s/*' 'policer/*' --controller all
    beside 'expectations of delft' "$weir" check 'delft/wired*' 'delft/wifi-*' 'delft/4g-*' \
        --controller gcc,gcc-draft
    beside 'goals of sluice' "$weir" check 'goals/*' --controller sluice --seeds 10
    beside 'a forwarding server' "$weir" check 'sfu/*' --controller sluice
    beside 'Wi-Fi against ns-3' "$weir" research validate wifi
    beside 'cellular against ns-3' "$weir" research validate cellular
}

# Measured on two quiet cores; most of it are calls and networks in real time.
if [ -n "$check" ]; then
    echo 'a minute after a line of a package, some minutes if everything has changed'
    echo "tests: $filter${parts:+; $parts}"
else
    echo "about 30 minutes on two quiet cores from nothing, 20 if all is built; it ends with the totals"
    free=$(df --output=avail --block-size=1G . | tail -n 1)
    [ "$free" -ge "$needed_gb" ] || echo "only ${free// /} GB are free: from nothing, the tests take $needed_gb"
fi
[ -z "$gate" ] || step 'lint' make lint
[ "${#packages[@]}" -eq 0 ] || step 'clippy' cargo clippy --quiet "${packages[@]}" --all-targets -- -D warnings
! affected web || web
! affected gstreamer || gstreamer
build
[ -n "$check" ] || livekit
[ -n "$check" ] || emulator
# First in the lane: a real test that finds it not built builds it, while all others wait.
[ -n "$check" ] || built_beside
python
! affected memory || beside 'controllers in fixed memory' cargo test --quiet --manifest-path examples/fixed-memory/Cargo.toml
# nextest does not run the examples in the documentation.
[ -n "$check" ] || beside 'examples in the documentation' cargo test --quiet --workspace --doc
if [ -z "$check" ]; then
    arm
    wasm
    go_module
    vmaf
    others
    fuzz
    miri
fi
[ -z "$gate" ] || gate
start_lane
rust
end_lane
[ -n "$check" ] || undisturbed

heading 'result'
if [ "${#skipped[@]}" -gt 0 ]; then
    echo 'skipped:'
    printf '  %s\n' "${skipped[@]}"
fi
if [ "${#repeated[@]}" -gt 0 ]; then
    echo 'passed when they were repeated:'
    printf '  %s\n' "${repeated[@]}"
fi
if [ "$failed" -gt 0 ]; then
    tell_broken
    echo 'failed:'
    printf '  %s\n' "${failures[@]}"
fi
echo "$passed passed, $failed failed, ${#skipped[@]} skipped"
if [ -n "$tree" ] && [ "$failed" -eq 0 ]; then
    echo "$tree" > "$passed_tree"
fi
[ "$failed" -eq 0 ]
