"""Decodes the frames of VP8 that a stack without a decoder receives, and tells the lab when each picture is there.

    decoder.py WIDTH HEIGHT

The input has each frame after its length, four bytes with the highest first. The variable WEIR_FRAMES names the
file in which the lab is told. There is no buffer against jitter: a picture is shown when it is decoded.
"""

import struct
import sys

import gi

gi.require_version("Gst", "1.0")

from encoder import sightings_of, tags
from gi.repository import Gst


class Decoder:
    """The pipeline from standard input to the sightings of pictures."""

    def __init__(self, width, height):
        self._width, self._height = width, height
        self._sightings = sightings_of({"width": width, "height": height}, "screen")
        caps = f"video/x-vp8,width={width},height={height},framerate=0/1"
        self._pipeline = Gst.parse_launch(
            f"appsrc name=frames is-live=true format=time do-timestamp=true caps={caps} ! vp8dec "
            "! video/x-raw,format=I420 ! appsink name=pictures emit-signals=true sync=false"
        )
        self._frames = self._pipeline.get_by_name("frames")
        self._pipeline.get_by_name("pictures").connect("new-sample", self._see)
        self._pipeline.set_state(Gst.State.PLAYING)

    def _see(self, sink):
        buffer = sink.emit("pull-sample").get_buffer()
        # The tag is in the top rows, whose strides are their width: it is a multiple of 4.
        rows = buffer.extract_dup(0, self._width * (self._width // 40 + 1))
        self._sightings.see(buffer.pts, tags.blocks_of(rows, self._width))
        return Gst.FlowReturn.OK

    def decode(self, frame):
        """Passes a frame to the decoder."""
        self._frames.emit("push-buffer", Gst.Buffer.new_wrapped(frame))

    def end(self):
        """Waits for the last picture, and tells of what is left."""
        self._frames.emit("end-of-stream")
        wanted = Gst.MessageType.EOS | Gst.MessageType.ERROR
        self._pipeline.get_bus().timed_pop_filtered(Gst.SECOND, wanted)
        self._sightings.flush()


def main():
    Gst.init(None)
    decoder = Decoder(int(sys.argv[1]), int(sys.argv[2]))
    while len(length := sys.stdin.buffer.read(4)) == 4:
        decoder.decode(sys.stdin.buffer.read(struct.unpack(">I", length)[0]))
    decoder.end()


if __name__ == "__main__":
    main()
