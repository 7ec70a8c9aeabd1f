#!/bin/sh
# Usage: scripts/results/vmaf-beside-ffmpeg.sh FFMPEG
#
# Compares the VMAF of single pictures, as `weir call --quality` scores them, with that of a whole
# film by an ffmpeg that has libvmaf (Debian's has none; that of the Python package imageio-ffmpeg
# has). Prints the differences over the pictures of the lab's film in VP8 at 300 kbit/s.
set -eu
. "$(dirname "$0")/../usage.sh"
accept "${1:-}" "$@"
[ $# = 1 ] || accept "" --help
cd "$(dirname "$0")/../.."
ffmpeg=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

film=lab/call/content/big-buck-bunny.mp4
"$ffmpeg" -v error -i "$film" -vf scale=640:360,setpts=N/30/TB -r 30 -frames:v 120 -pix_fmt yuv420p "$folder/sent.y4m"
"$ffmpeg" -v error -i "$folder/sent.y4m" -c:v libvpx -deadline realtime -cpu-used -6 -b:v 300k "$folder/film.ivf"
"$ffmpeg" -v error -i "$folder/film.ivf" -pix_fmt yuv420p "$folder/received.y4m"
for name in sent received; do
    "$ffmpeg" -v error -i "$folder/$name.y4m" -vf extractplanes=y -f rawvideo "$folder/$name.gray"
done
# Pictures are paired by their place in the film.
"$ffmpeg" -v error -i "$folder/received.y4m" -i "$folder/sent.y4m" -lavfi \
    "[0]settb=1/30,setpts=N[a];[1]settb=1/30,setpts=N[b];[a][b]libvmaf=model=version=vmaf_v0.6.1:log_fmt=csv:log_path=$folder/vmaf.csv:shortest=1" \
    -f null -
cargo run --quiet --package weir-vmaf --features libvmaf --example score -- \
    640 360 "$folder/sent.gray" "$folder/received.gray" > "$folder/ours.csv"
python3 - "$folder/vmaf.csv" "$folder/ours.csv" << 'PYTHON'
import csv
import sys

theirs = [float(row["vmaf"]) for row in csv.DictReader(open(sys.argv[1]))]
ours = [float(row["vmaf"]) for row in csv.DictReader(open(sys.argv[2]))]
assert len(theirs) == len(ours) > 0, (len(theirs), len(ours))
differences = [abs(a - b) for a, b in zip(theirs, ours)]
print(f"{len(ours)} pictures, VMAF {sum(ours) / len(ours):.2f}, ffmpeg {sum(theirs) / len(theirs):.2f}")
print(f"difference of a picture: mean {sum(differences) / len(differences):.4f}, largest {max(differences):.4f}")
PYTHON
