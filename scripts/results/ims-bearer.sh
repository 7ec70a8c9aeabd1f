#!/bin/bash
# A Markdown table of a call beside TCP of its own terminal, with the default bearer and with bearers of its own:
# simulated, and as real calls of Chromium through the IMS (`weir ims`), whose PCRF decides about the bearers.
#
# usage: scripts/results/ims-bearer.sh FOLDER [CASE]...
#
# Makes the records of these cases (default: all) that are not in FOLDER yet, and prints the table of all that are there.
# WEIR is the program (default: `weir`). Real calls need root, 50 s each, and a machine that is otherwise quiet.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
cd "$(dirname "$0")/../.."
folder=$1
shift
weir=${WEIR:-weir}
mkdir -p "$folder"
family=delft/4g-2

policy() { # the default policy with other lines
    sed "$1" ims/configurations/policy.toml
}

simulated() { # NAME SCENARIO
    [ -e "$folder/$1" ] || "$weir" run "$family/$2" --controller gcc --out "$folder/$1" > /dev/null
}

subscribers() { # 8 of them
    printf 'realm = "ims.test"\nscscf = "sip:scscf.ims.test:5060"\n'
    for user in u{1..8}; do
        printf '[[subscriber]]\nprivate = "%s@ims.test"\npublic = ["sip:%s@ims.test"]\npassword = "secret"\n' "$user" "$user"
    done
}

real() { # NAME SCENARIO SED [USERS]
    [ ! -e "$folder/$1" ] || return 0
    policy "$3" > "$folder/policy.toml"
    subscribers > "$folder/subscribers.toml"
    "$weir" ims up --policy "$folder/policy.toml" --subscribers "$folder/subscribers.toml" > /dev/null
    trap '"$weir" ims down > /dev/null' EXIT
    "$weir" call "$family/$2" --quick --attempts 1 --ims "${4:-u1,u2}" --out "$folder/$1" > /dev/null
    "$weir" ims down > /dev/null
    trap - EXIT
}

make_case() {
    local none='s/^capacity_kbps.*/capacity_kbps = 1/'
    case $1 in
        1-near-simulated-default) simulated "$1" real ;;
        1-near-simulated-bearer) simulated "$1" real/bearer ;;
        1-near-simulated-small) simulated "$1" real/small ;;
        1-near-real-default) real "$1" real "$none" ;;
        1-near-real-bearer) real "$1" real '' ;;
        1-near-real-small) real "$1" real 's/^most_kbps.*/&\nguaranteed_percent = 20/' ;;
        1-near-simulated-audio) simulated "$1" real/audio-bearers ;;
        1-near-real-audio) real "$1" real/audio '' ;;
        2-far-simulated-default) simulated "$1" real/far ;;
        2-far-simulated-bearer) simulated "$1" real/far-bearer ;;
        2-far-real-default) real "$1" real/far "$none" ;;
        2-far-real-bearer) real "$1" real/far '' ;;
        3-edge-real-refused) real "$1" real/edge '' ;;
        4-four-simulated) simulated "$1" real/four ;;
        # Room in the policy, so that the cell decides.
        4-four-real) real "$1" real/four-small 's/^capacity_kbps.*/capacity_kbps = 40000/' u1,u2,u3,u4,u5,u6,u7,u8 ;;
        *)
            echo "no case $1" >&2
            exit 2
            ;;
    esac
}

cases=("$@")
if [ ${#cases[@]} -eq 0 ]; then
    mapfile -t cases < <(grep -oE '^ +[1-4]-[a-z-]+\)' "$0" | tr -d ' )')
fi
for case in "${cases[@]}"; do
    make_case "$case"
done

row() { # SUMMARY HEAD CALL OWN OTHER: a call, and the TCP flows of its terminal and of another one
    jq -r --arg head "$2" --arg call "media-$3" --arg own "tcp-$4" --arg other "tcp-$5" '
        def r: if . == null then "-" elif . >= 100 then round else . * 100 | round / 100 end | tostring;
        def of($flow; path): [.flows[] | select(.flow == $flow) | .sections[]
            | select(.name == "TCP of both terminals") | path][0] | r;
        [of("\($call)-up"; .rate_mbps.mean), of("\($call)-up"; .rtt_above_min_ms.mean), of("\($call)-up"; .rtt_above_min_ms.p95),
         of("\($call)-down"; .rate_mbps.mean), of("\($call)-down"; .rtt_above_min_ms.mean), of("\($call)-down"; .rtt_above_min_ms.p95),
         "\(of("\($own)-up"; .rate_mbps.mean)), \(of("\($own)-down"; .rate_mbps.mean))",
         "\(of("\($other)-up"; .rate_mbps.mean)), \(of("\($other)-down"; .rate_mbps.mean))"]
        | "\($head) \(join(" | ")) |"' "$1"
}

echo '| place | call | bearer | call up | delay up, mean | p95 | call down | delay down, mean | p95 | own TCP up, down | other TCP up, down |'
echo '|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|'
for record in "$folder"/[1-4]-*; do
    summary=$(find "$record" -name summary.json)
    IFS=- read -r _ place kind bearer <<< "$(basename "$record")"
    if [ "$place $kind" != "four real" ]; then
        row "$summary" "| $place | $kind | ${bearer:-own} |" 1 1 2
        continue
    fi
    # Which call is refused depends on who asks last.
    for call in 1 2 3 4; do
        events=$(dirname "$summary")/bearer-events.csv
        bearer=refused
        grep -q ",pc$((call + 2)),.*,added" "$events" && bearer=own
        own=0 other=0
        [ "$call" = 1 ] && own=1 other=2
        [ "$call" = 4 ] && own=2 other=1
        row "$summary" "| four | real, call $call | $bearer |" "$call" "$own" "$other"
    done
done
