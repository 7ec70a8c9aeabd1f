"""Encodes the camera of a call as VP8, for stacks that have no encoder of their own.

    encoder.py SETTINGS

SETTINGS is JSON with width, height, frameRate, startBitrate and camera (a YUV4MPEG2 file, or null for a
test picture). Lines of the input:

    start       the camera begins
    rate N      the encoder's target in bit/s
    key         the next frame is a key frame
    skip, take  leaves pictures out before the encoder, and no more

The output has each frame after its length, four bytes with the highest first. A picture that was left out has the length 0. The encoder is that of the
lab's own pipelines. If the variable WEIR_FRAMES names a file, it tells there which frames of the camera went in,
and when.
"""

import json
import os
import pathlib
import struct
import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")

from gi.repository import GLib, Gst, GstVideo

LAB = pathlib.Path(__file__).resolve().parent.parent / "lab" / "call" / "src" / "peers" / "pipeline"
sys.path.insert(0, str(LAB))

import camera
import tags
import vp8


def sightings_of(settings, place="camera"):
    """What tells the lab of the frames at this place; `None` if it does not ask."""
    path = os.environ.get("WEIR_FRAMES")
    if not path:
        return None

    def tell(kind, **members):
        with open(path, "a") as file:
            file.write(json.dumps({"type": kind, **members}) + "\n")

    return tags.Sightings(tell, settings["width"], settings["height"], place)


class Gate:
    """The way of the camera's pictures into the encoder, which may be shut.

    An encoder spends the bits of pictures that it did not get on the next one, by the times of the pictures. So these are
    even, whatever was left out.
    """

    def __init__(self, source, skip):
        self._source, self._skip = source, skip
        self.is_shut = False
        self._time = None

    def __getattr__(self, name):
        return getattr(self._source, name)

    def emit(self, signal, buffer):
        """Passes a picture on, or leaves it out."""
        if self.is_shut:
            self._skip()
            return Gst.FlowReturn.OK
        self._time = buffer.pts if self._time is None else self._time + buffer.duration
        buffer.pts = self._time
        return self._source.emit(signal, buffer)


class Encoder:
    """The pipeline from the camera's file to standard output."""

    def __init__(self, settings, loop):
        self._loop = loop
        self._pipeline = Gst.parse_launch(
            f"{camera.description(settings)} ! vp8enc name=encoder {vp8.SETTINGS} "
            "! appsink name=frames emit-signals=true sync=false max-buffers=0"
        )
        self._encoder = self._pipeline.get_by_name("encoder")
        self._encoder.set_property("target-bitrate", settings["startBitrate"])
        self._output = threading.Lock()
        self._gate = Gate(self._pipeline.get_by_name("camera"), lambda: self._tell(b""))
        self._camera = camera.open_camera(self._gate, settings, sightings_of(settings))
        self._pipeline.get_by_name("frames").connect("new-sample", self._write)
        self._pipeline.set_state(Gst.State.PLAYING)

    def _write(self, sink):
        buffer = sink.emit("pull-sample").get_buffer()
        return self._tell(buffer.extract_dup(0, buffer.get_size()))

    def _tell(self, frame):
        with self._output:
            try:
                sys.stdout.buffer.write(struct.pack(">I", len(frame)) + frame)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                GLib.idle_add(self._loop.quit)
                return Gst.FlowReturn.EOS
        return Gst.FlowReturn.OK

    def stop(self):
        """Ends the camera, and tells of its last frames."""
        self._camera.stop()

    def obey(self, line):
        """Handles a line of the input."""
        words = line.split()
        if words == ["start"]:
            self._camera.start()
        elif words == ["key"]:
            event = GstVideo.video_event_new_upstream_force_key_unit(Gst.CLOCK_TIME_NONE, True, 0)
            self._encoder.get_static_pad("src").send_event(event)
        elif words in (["skip"], ["take"]):
            self._gate.is_shut = words == ["skip"]
        elif len(words) == 2 and words[0] == "rate":
            self._encoder.set_property("target-bitrate", int(words[1]))
        else:
            print(f"encoder: unknown line: {line.strip()!r}", file=sys.stderr)
        return GLib.SOURCE_REMOVE


def main():
    Gst.init(None)
    loop = GLib.MainLoop()
    encoder = Encoder(json.loads(sys.argv[1]), loop)

    def read():
        for line in sys.stdin:
            GLib.idle_add(encoder.obey, line)
        GLib.idle_add(loop.quit)

    threading.Thread(target=read, daemon=True).start()
    loop.run()
    encoder.stop()


if __name__ == "__main__":
    main()
