#!/usr/bin/python3
"""Measures how GStreamer's encoders obey their target: gst-encoders.py [--write]

Encodes ten seconds of three test pictures (640x360, 30 frames a second) with each encoder that is
installed, at three targets, and halves the target after five seconds. Prints a table: the rate
before and after the change, without RTP headers, in kbit/s. With --write the table also replaces
the one in docs/reference/gstreamer.md. The encoders work as fast as they can, so the table does not
depend on the speed of the machine.
"""

import pathlib
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst

FRAMES_PER_SECOND = 30
SECONDS = 10
TARGETS_KBPS = [600, 1200, 2400]
# Name, options of videotestsrc.
PICTURES = [
    ("easy", "pattern=smpte"),
    ("hard", "pattern=zone-plate kx2=20 ky2=20 kt=1"),
    ("snow", "pattern=snow"),
]
# A positive speed would depend on how busy the machine is.
VPX = (
    "deadline=1 cpu-used=-8 end-usage=cbr lag-in-frames=0 keyframe-max-dist=3000"
    " buffer-size=1000 buffer-initial-size=500 buffer-optimal-size=600 overshoot=15"
)
AV1 = (
    "usage-profile=realtime cpu-used=10 end-usage=cbr lag-in-frames=0 keyframe-max-dist=3000"
    # Its own limit of the quantizer is 0, which is lossless.
    " min-quantizer=2 max-quantizer=56 buf-sz=1000 buf-initial-sz=500 buf-optimal-sz=600 threads=1"
)
# Element, options, property of the target, its unit in bit/s.
ENCODERS = [
    ("vp8enc", VPX, "target-bitrate", 1),
    ("vp9enc", VPX, "target-bitrate", 1),
    ("x264enc", "tune=zerolatency speed-preset=ultrafast key-int-max=3000", "bitrate", 1000),
    ("openh264enc", "rate-control=bitrate complexity=low gop-size=3000", "bitrate", 1),
    ("av1enc", AV1, "target-bitrate", 1000),
    ("svtav1enc", "preset=12 intra-period-length=299", "target-bitrate", 1000),
]
PAGE = pathlib.Path(__file__).parents[2] / "docs/reference/gstreamer.md"
BEGIN = "<!-- printed by scripts/results/gst-encoders.py --write -->\n"
END = "<!-- end of what is printed -->\n"


def rates(encoder, options, name, unit_bps, picture, target_kbps):
    """Mean rate in kbit/s of each half of the video; the second half has half the target."""
    pipeline = Gst.parse_launch(
        f"videotestsrc num-buffers={SECONDS * FRAMES_PER_SECOND} {picture}"
        f" ! video/x-raw,format=I420,width=640,height=360,framerate={FRAMES_PER_SECOND}/1"
        f" ! identity name=raw ! {encoder} name=encoder {options} ! fakesink name=sink sync=false"
    )
    raw, element, sink = (pipeline.get_by_name(it) for it in ("raw", "encoder", "sink"))
    element.set_property(name, target_kbps * 1000 // unit_bps)
    half = SECONDS * Gst.SECOND // 2
    sums = [0, 0]

    def before_frame(_pad, info):
        is_first_of_second_half = info.get_buffer().pts // Gst.MSECOND == half // Gst.MSECOND
        if is_first_of_second_half:
            element.set_property(name, target_kbps * 500 // unit_bps)
        return Gst.PadProbeReturn.OK

    def after_frame(_pad, info):
        buffer = info.get_buffer()
        sums[buffer.pts % (1000 * 3600 * Gst.SECOND) >= half] += buffer.get_size()
        return Gst.PadProbeReturn.OK

    raw.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, before_frame)
    sink.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, after_frame)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(
        Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR
    )
    pipeline.set_state(Gst.State.NULL)
    if message.type == Gst.MessageType.ERROR:
        sys.exit(message.parse_error().gerror.message)
    return [total * 8 / 1000 / (SECONDS / 2) for total in sums]


def table():
    """The table's lines, those of encoders that are not installed left out."""
    heads = [f"{name}, {target}" for name, _ in PICTURES for target in TARGETS_KBPS]
    yield "| encoder | " + " | ".join(heads) + " |\n"
    yield "|---|" + "---:|" * len(heads) + "\n"
    for encoder, options, name, unit_bps in ENCODERS:
        if Gst.ElementFactory.find(encoder) is None:
            print(f"gst-encoders: left out: {encoder} is not installed", file=sys.stderr)
            continue
        row = []
        for _, picture in PICTURES:
            for target in TARGETS_KBPS:
                before, after = rates(encoder, options, name, unit_bps, picture, target)
                row.append(f"{before:.0f}, {after:.0f}")
        yield f"| `{encoder}` | " + " | ".join(row) + " |\n"


def main():
    if sys.argv[1:] not in ([], ["--write"]):
        sys.exit(__doc__)
    Gst.init(None)
    lines = []
    for line in table():
        print(line, end="", flush=True)
        lines.append(line)
    if sys.argv[1:]:
        before, rest = PAGE.read_text().split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(before + BEGIN + "".join(lines) + END + after)


if __name__ == "__main__":
    main()
