#!/bin/sh
# make-video.sh FOLDER: writes ten seconds of one moving picture as three layers, l.ivf, m.ivf and h.ivf, for `load`.
#
# A publisher who is asked for a key frame goes on at the file's next one, so there is one each half second.
# The speed is negative, because libvpx chooses a positive one by how busy the machine is.
set -eu
cd "$1"
layer() {
    ffmpeg -v error -nostdin -y -f lavfi -i "testsrc2=size=$2:rate=30:duration=10" \
        -c:v libvpx -b:v "$3k" -minrate "$3k" -maxrate "$3k" -bufsize "$(($3 / 2))k" \
        -g 15 -keyint_min 15 -auto-alt-ref 0 -deadline realtime -cpu-used -8 "$1.ivf"
}
layer l 240x136 150
layer m 640x360 500
layer h 960x540 1500
