# shellcheck shell=sh
# The other scripts read this file with `.` and then call `quietly`.

# quietly STEP NAME COMMAND...: prints one line, the step and how long the command took. What the command
# says goes to target/logs/NAME.log. If it fails, the last 20 lines of that log are printed, and where it is.
quietly() (
    step=$1
    log=${CARGO_TARGET_DIR:-target}/logs/$2.log
    shift 2
    mkdir -p "${log%/*}"
    begun=$(date +%s)
    printf '%s ... ' "$step"
    status=0
    "$@" > "$log" 2>&1 || status=$?
    took=$(($(date +%s) - begun))
    if [ "$status" -eq 0 ]; then
        echo "$took s"
        return
    fi
    echo "FAILED after $took s"
    tail -n 20 "$log" >&2
    echo "these are the last lines of $log" >&2
    return "$status"
)
