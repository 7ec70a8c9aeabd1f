#!/bin/sh
# Makes conversations between caller.py and agent.py through emulated networks, and prints what they were
# like as a Markdown table.
#
#   measure.sh OUT SECONDS NETWORK...
#
# Each network of the catalogue has one conversation with aiortc and one with libwebrtc (wrtc). Needs root,
# `weir` in PATH or in WEIR, and a Python with requirements.txt in PYTHON (default: .venv here).
set -eu

if [ $# -lt 3 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
seconds=$2
shift 2
weir=${WEIR:-weir}
python=${PYTHON:-$here/.venv/bin/python}
speech=$here/../../lab/call/content/sense-and-sensibility.wav

folders=
for network in "$@"; do
    for module in aiortc webrtc.aiortc; do
        folder="$out/$(echo "$network" | sed 's:/:__:g')-$module"
        mkdir -p "$folder"
        "$weir" link "$network" --peer "$python $here/agent.py $folder --module $module" -- \
            "$python" "$here/caller.py" "$folder" "$speech" --module "$module" \
            --seconds "$seconds" > "$folder/link.txt" 2>&1 || {
            echo "measure.sh: $network with $module: $(tail -n 1 "$folder/link.txt")" >&2
            exit 1
        }
        folders="$folders $folder"
    done
done
# shellcheck disable=SC2086 # one word for each folder
"$python" "$here/turns.py" $folders
