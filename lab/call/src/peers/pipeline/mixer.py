"""A mixer (MCU): every participant gets one picture of all the others.

Started by the lab like sender.py. Each call is one participant, and has a leg here: a pipeline of
its own with a webrtcbin. A leg decodes what its participant sends and shows it to the other legs.
This is leg 0 of three:

    webrtcbin > depayloader > decoder > intervideosink "0"
    intervideosrc "1" > queue \
    intervideosrc "2" > queue > compositor > encoder > payloader > webrtcbin

Decoded pictures go from leg to leg through the channels of intervideosink and intervideosrc. So a
leg starts, fails and ends without the others, and a participant who sends nothing is a black tile.
"""

import math

# The first import also chooses the versions of the libraries.
from sender import STARTED_MS, Sender, now_ms, serve

# isort: split
from gi.repository import Gst, GstWebRTC

# How long the jitter buffer waits for a lost packet, in ms: a retransmission over 50 ms and the
# scheduling of a busy machine.
JITTER_BUFFER_MS = 100


class Leg(Sender):
    """The mixer's end of a call: its camera is the picture of the others."""

    DIRECTION = GstWebRTC.WebRTCRTPTransceiverDirection.SENDRECV

    def _describe_source(self):
        width, height, rate = (self._settings[key] for key in ("width", "height", "frameRate"))
        others = self._settings["others"]
        inputs, places = "", ""
        for pad, (call, tile) in enumerate(zip(others, layout(len(others), width, height))):
            inputs += (
                f"intervideosrc channel={call} ! video/x-raw,framerate={rate}/1 "
                f"! queue max-size-buffers=2 leaky=downstream ! mix.sink_{pad} "
            )
            x, y, tile_width, tile_height = tile
            places += (
                f"sink_{pad}::xpos={x} sink_{pad}::ypos={y} sink_{pad}::width={tile_width} "
                f"sink_{pad}::height={tile_height} sink_{pad}::sizing-policy=keep-aspect-ratio "
            )
        return (
            f"{inputs} compositor name=mix background=black {places} "
            f"! video/x-raw,format=I420,width={width},height={height},framerate={rate}/1 "
            "! queue max-size-buffers=2 leaky=downstream"
        )

    def _open_source(self):
        # One thread for each participant is enough; more of them wait for each other.
        self._encoder.set_property("threads", 1)
        self._webrtc.set_property("latency", JITTER_BUFFER_MS)
        self._webrtc.connect("pad-added", self._on_pad_added)
        return Unattended()

    def _make_scaler(self):
        # The tiles have places in a picture of one size.
        return Unattended()

    def _on_pad_added(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        receiver = Gst.parse_bin_from_description(
            "rtpvp8depay request-keyframe=true wait-for-keyframe=true ! vp8dec name=decoder "
            f"! intervideosink channel={self._call} sync=false",
            True,
        )
        decoder = receiver.get_by_name("decoder")
        self._reporter.watch_decoder(decoder)
        decoder.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self._on_first_frame)
        self._pipeline.add(receiver)
        receiver.sync_state_with_parent()
        pad.link(receiver.get_static_pad("sink"))

    def _on_first_frame(self, *_):
        self._lines.tell(self._call, "playing", firstFrame=now_ms() - STARTED_MS)
        return Gst.PadProbeReturn.REMOVE


class Unattended:
    """In place of a camera and of a scaler: the other legs play by themselves."""

    def start(self):
        """Nothing to start."""

    def stop(self):
        """Nothing to stop."""


def layout(tiles, width, height):
    """Places of the tiles in a picture, row by row: x, y, width and height of each."""
    columns = math.ceil(math.sqrt(tiles))
    rows = math.ceil(tiles / columns)
    size = width // columns, height // rows
    places = ((tile % columns, tile // columns) for tile in range(tiles))
    return [(column * size[0], row * size[1], *size) for column, row in places]


if __name__ == "__main__":
    serve(Leg)
