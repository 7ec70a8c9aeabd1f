"""The film of the calls, encoded as the pipelines encode it but without a network."""

import pathlib
import subprocess
import sys

import gi

gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab/call/src/peers/pipeline"))
from vp8 import SETTINGS

FILM = ROOT / "lab/call/content/big-buck-bunny.mp4"
WIDTH, HEIGHT, FPS, FILM_S = 640, 360, 30, 4
PICTURE = WIDTH * HEIGHT * 3 // 2
# Share of the target that `weircc` gives the encoder.
SHARE = 0.95


def film():
    """The pictures of the film, each as bytes."""
    scale = f"setpts=N/{FPS}/TB,fps={FPS},scale={WIDTH}:{HEIGHT}"
    command = ["ffmpeg", "-v", "error", "-i", FILM, "-vf", scale, "-t", str(FILM_S)]
    command += ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"]
    raw = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return [raw[at : at + PICTURE] for at in range(0, len(raw), PICTURE)]


def encode(pictures, rates, options="", key_frame=0):
    """The bits of each picture, at these rates in bit/s and with more options of vp8enc.

    Before the picture of the number `key_frame`, unless it is 0, a key frame is asked for.
    """
    caps = f"video/x-raw,format=I420,width={WIDTH},height={HEIGHT},framerate={FPS}/1"
    # With more threads, equal input need not give equal bytes. The last of equal options counts.
    encoder = f"vp8enc name=encoder {SETTINGS} {options} threads=1"
    pipeline = Gst.parse_launch(
        f"appsrc name=source format=time caps={caps} ! {encoder} ! appsink name=sink sync=false"
    )
    source, encoder, sink = map(pipeline.get_by_name, ("source", "encoder", "sink"))
    pipeline.set_state(Gst.State.PLAYING)
    bits = []
    for number, rate in enumerate(rates):
        if number == key_frame > 0:
            event = GstVideo.video_event_new_upstream_force_key_unit
            sink.send_event(event(Gst.CLOCK_TIME_NONE, True, 0))
        encoder.set_property("target-bitrate", int(rate))
        picture = Gst.Buffer.new_wrapped(pictures[number % len(pictures)])
        picture.pts, picture.duration = number * Gst.SECOND // FPS, Gst.SECOND // FPS
        source.emit("push-buffer", picture)
        bits.append(sink.emit("pull-sample").get_buffer().get_size() * 8)
    pipeline.set_state(Gst.State.NULL)
    return bits
