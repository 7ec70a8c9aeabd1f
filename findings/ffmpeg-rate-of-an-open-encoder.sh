#!/bin/sh
# A new bit rate for an encoder that FFmpeg has open is taken without a word, and mostly ignored.
#
# Version:   FFmpeg's libraries with x264 (core 165) and libvpx 1.16.0, as PyAV 18.1.0 brings them
#            (PyPI).
# Behaviour: `AVCodecContext.bit_rate` can be set between two frames, without an error. FFmpeg hands
#            it to x264, and x264 obeys it only if the stream began as CBR (maxrate = bit_rate, with
#            a buffer). An average rate, or a maximum above it, stays as it was. VP8 and VP9 by
#            libvpx stay in any mode, since FFmpeg never reconfigures libvpx. A sender that follows
#            a congestion controller this way goes on sending the old rate.
# Output:    x264, average rate           800 -> 200 kbit/s: sends 794
#            x264, maximum above the rate 800 -> 200 kbit/s: sends 799
#            x264, CBR                    800 -> 200 kbit/s: sends 196
#            VP8, CBR                     800 -> 200 kbit/s: sends 800
#            VP9, CBR                     800 -> 200 kbit/s: sends 800
# Exits with 1 if x264 in CBR does not follow, or one of the others does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: av==18.1.0
"$folder/venv/bin/python" - <<'END'
import fractions

import av

FILM = "testsrc2=s=640x360:r=30,noise=alls=20:allf=t,trim=end_frame=150"
BEFORE, AFTER, FALL, SETTLED = 800_000, 200_000, 60, 90
CBR = {"minrate": str(BEFORE), "maxrate": str(BEFORE), "bufsize": str(BEFORE // 5)}
X264 = {"tune": "zerolatency", "preset": "ultrafast"}
VPX = {"deadline": "realtime", "cpu-used": "-8", "lag-in-frames": "0"}
CASES = {
    "x264, average rate": ("libx264", X264),
    "x264, maximum above the rate": ("libx264", {**X264, **CBR, "maxrate": "1200000"}),
    "x264, CBR": ("libx264", {**X264, **CBR}),
    "VP8, CBR": ("libvpx", {**VPX, **CBR}),
    "VP9, CBR": ("libvpx-vp9", {**VPX, "cpu-used": "8", **CBR}),
}


def sent(codec, options):
    """Kilobits a second from a second after the fall on."""
    encoder = av.CodecContext.create(codec, "w")
    encoder.width, encoder.height, encoder.pix_fmt = 640, 360, "yuv420p"
    encoder.bit_rate, encoder.gop_size, encoder.thread_count = BEFORE, 3000, 1
    encoder.framerate, encoder.time_base = 30, fractions.Fraction(1, 30)
    encoder.options = options
    sizes = []
    for number, frame in enumerate(av.open(FILM, format="lavfi").decode(video=0)):
        if number == FALL:
            encoder.bit_rate = AFTER
        frame.pict_type = av.video.frame.PictureType.NONE
        sizes += [packet.size for packet in encoder.encode(frame)]
    late = sizes[SETTLED:]
    return sum(late) * 8 * 30 / len(late) / 1000


follows = {}
for name, (codec, options) in CASES.items():
    rate = sent(codec, options)
    follows[name] = rate < 300
    print(f"{name:28} 800 -> 200 kbit/s: sends {rate:.0f}")
if [name for name, does in follows.items() if does] != ["x264, CBR"]:
    raise SystemExit("changed: only x264 in CBR followed")
END
