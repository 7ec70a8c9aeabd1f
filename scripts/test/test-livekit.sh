#!/bin/sh
# Builds LiveKit's server with an estimator of ours, ./arena/livekit-weir, and tests that package under Go's race
# detector. It takes minutes and Go's proxy, so it runs only if WEIR_TEST_LIVEKIT is set. With --missing it only prints
# why it does not run; nothing if it does.
set -eu
. "$(dirname "$0")/../usage.sh"
accept --missing "$@"
cd "$(dirname "$0")/../.."

if [ -z "${WEIR_TEST_LIVEKIT:-}" ]; then
    reason='it takes minutes: WEIR_TEST_LIVEKIT=1 asks for it'
else
    reason=$(./arena/livekit-weir/build.sh --missing)
fi
if [ "${1:-}" = --missing ]; then
    [ -z "$reason" ] || echo "$reason"
    exit
elif [ -n "$reason" ]; then
    echo "test-livekit: skipped: $reason"
    exit
fi
./arena/livekit-weir/build.sh --test
