#!/bin/sh
# make-video.sh FOLDER: writes ten seconds of one moving picture at six bitrates, KBPS.ivf each.
#
# The sender changes from one file to another where a second begins, so each second begins with a key frame.
# The speed is negative, because libvpx chooses a positive one by how busy the machine is.
set -eu
cd "$1"
for kbps in 150 250 400 600 900 1200; do
    ffmpeg -v error -nostdin -y -f lavfi -i testsrc2=size=384x216:rate=25:duration=10 \
        -c:v libvpx -b:v ${kbps}k -minrate ${kbps}k -maxrate ${kbps}k -bufsize $((kbps / 2))k \
        -g 25 -keyint_min 25 -auto-alt-ref 0 -deadline realtime -cpu-used -8 "$kbps.ivf"
done
