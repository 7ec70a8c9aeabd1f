#!/bin/bash
# Every test there is. At the end: what was skipped and why, and one line with the totals.
#
# A test that finds its machine wanting prints "skipped: REASON" and returns; cargo calls that passed, this
# script does not. Needs web/node_modules and wants what scripts/deps.sh installs: `make test` sees to both.
set -u
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
fuzz_seconds=${FUZZ_SECONDS:-10}
passed=0
failed=0
skipped=()
failures=()
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)) && failures+=("$1"); }
skip() { skipped+=("$1"); }
heading() { printf '\n== %s\n' "$1"; }

# Runs one step that is one test.
step() {
    local name=$1
    shift
    heading "$name"
    if "$@"; then pass; else fail "$name"; fi
}

# The report viewer, its types, and the pages that it draws in a browser.
web() {
    heading 'web'
    local result=$logs/vitest.json counts status=0
    (cd web && npm test -- --reporter=default --reporter=json --outputFile.json="$result") || status=$?
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
    for ((i = 0; i < s; i++)); do skip 'web: a page test: no Chromium (apt-get install chromium)'; done
}

# All crates; among their tests are the emulator with real programs and one real call.
rust() {
    heading 'cargo test'
    local log=$logs/cargo status name reason
    cargo test --workspace --no-fail-fast -- --show-output 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    local p f
    read -r p f <<< "$(awk '/^test result: / { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log")"
    while IFS=$'\t' read -r name reason; do
        p=$((p - 1))
        skip "$name: $reason"
    done < <(awk '
        /^successes:$/ { shown = 1 } /^test result: / { shown = 0; delete seen }
        /^---- .* stdout ----$/ { name = $2 }
        shown && /^skipped: / && !(name in seen) { seen[name]; print name "\t" substr($0, 10) }' "$log")
    # "no test" marks functions that are a part of another test, run by it in a process of its own.
    while IFS= read -r name; do
        skip "$name"
    done < <(grep ' \.\.\. ignored' "$log" | grep -v 'ignored, no test' | sed 's/^test //')
    passed=$((passed + p))
    failed=$((failed + f))
    while IFS= read -r name; do failures+=("$name"); done \
        < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
        fail 'cargo test: did not build, or a test program crashed'
    fi
}

# Each fuzz target for a few seconds from nothing; a find is a failure.
fuzz() {
    local reason=
    # Cargo finds its own folder of programs, which need not be on the path.
    if ! cargo fuzz --version > /dev/null 2>&1; then
        reason='no cargo-fuzz: cargo install cargo-fuzz --locked'
    elif ! command -v c++ > /dev/null; then
        reason='no C++ compiler: apt-get install g++'
    elif ! rustup toolchain list 2> /dev/null | grep -q '^nightly-[a-z]'; then
        reason='no nightly compiler: rustup toolchain install nightly --profile minimal'
    fi
    local file name
    for file in crates/wire/fuzz/fuzz_targets/*.rs; do
        name=$(basename "$file" .rs)
        if [ -n "$reason" ]; then
            skip "fuzz $name: $reason"
        else
            step "fuzz $name, $fuzz_seconds s" cargo +nightly fuzz run --fuzz-dir crates/wire/fuzz \
                "$name" -- -max_total_time="$fuzz_seconds" -print_final_stats=1 -verbosity=0
        fi
    done
}

# ping and iperf3 through the emulator, compared with what the link was asked to be.
emulator() {
    local name='emulator self-test' reason
    reason=$(scripts/missing-for-emulator.sh)
    if [ -n "$reason" ]; then
        skip "$name: $reason"
    else
        step "$name" "$target/debug/weir" link --self-test
    fi
}

web
rust
fuzz
emulator

heading 'result'
if [ "${#skipped[@]}" -gt 0 ]; then
    echo 'skipped:'
    printf '  %s\n' "${skipped[@]}"
fi
if [ "$failed" -gt 0 ]; then
    echo 'failed:'
    printf '  %s\n' "${failures[@]}"
fi
echo "$passed passed, $failed failed, ${#skipped[@]} skipped"
[ "$failed" -eq 0 ]
