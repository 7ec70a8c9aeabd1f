#!/bin/sh
# Checks the dashboards of examples/grafana by Grafana's own schema, which its foundation SDK has. With --missing it only
# prints why it cannot; nothing if it can. Where Go or its module is missing it says so and ends well.
set -eu
. "$(dirname "$0")/../usage.sh"
accept --missing "$@"
cd "$(dirname "$0")/../../examples/grafana/check"

reason=
command -v go > /dev/null || reason='no Go: https://go.dev/dl, 1.25 or later'
if [ "${1:-}" = --missing ]; then
    [ -z "$reason" ] || echo "$reason"
    exit
elif [ -n "$reason" ]; then
    echo "check-dashboards: skipped: $reason"
    exit
fi
if ! GOTOOLCHAIN=local go mod download > /dev/null 2>&1; then
    echo 'check-dashboards: skipped: Go 1.25 or later and a module proxy are needed'
    exit
fi
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "check-dashboards: gofmt -w $unformatted" >&2 && exit 1; }
go run . ../collect.json ../weir.json
