"""Makes the pictures smaller while the encoder cannot make enough of them, as browsers do.

A codec has a lowest quality. If a picture at that quality takes more bits than the target allows, the
encoder and the pacer leave pictures out. Smaller pictures take fewer bits, so more of them are made.
"""

from gi.repository import GLib, Gst

# Width and height in parts of the camera's: 3/4 and 2/3 in turn, which halves the pixels each time.
SIZES = (1, 3 / 4, 1 / 2, 3 / 8, 1 / 4)
CHECK_MS = 1000
# Smaller pictures below this share of the camera's pictures, larger ones only above the other.
FEW, MOST = 0.6, 0.9
# Larger pictures need this much more than the target at which they were too large,
MORE = 2
# or an encoder that makes less than this share of the target: it is at its best quality.
UNFILLED = 0.6


class Scaler:
    """Chooses the size of the pictures in front of an encoder."""

    def __init__(self, size, encoder, controller, settings):
        self._size, self._controller, self._settings = size, controller, settings
        self._frames = self._bytes = 0
        # The targets at which each step down was taken.
        self._too_low = []
        encoder.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self._on_frame)

    def start(self):
        """Begins to check, until `stop`."""
        self._frames = self._bytes = 0
        self._timer = GLib.timeout_add(CHECK_MS, self._check)

    def stop(self):
        """Ends."""
        GLib.source_remove(self._timer)

    def _on_frame(self, _, info):
        self._frames += 1
        self._bytes += info.get_buffer().get_size()
        return Gst.PadProbeReturn.OK

    def _check(self):
        made = self._frames * 1000 / CHECK_MS / self._settings["frameRate"]
        bitrate = self._bytes * 8 * 1000 / CHECK_MS
        self._frames = self._bytes = 0
        target = self._controller.get_property("target-bitrate")
        is_unfilled = bitrate < UNFILLED * target
        if made < FEW and len(self._too_low) + 1 < len(SIZES):
            self._too_low.append(target)
            self._apply()
        elif made > MOST and self._too_low and (is_unfilled or target > MORE * self._too_low[-1]):
            self._too_low.pop()
            self._apply()
        return GLib.SOURCE_CONTINUE

    def _apply(self):
        part = SIZES[len(self._too_low)]
        # Chroma is sampled at half the resolution, so both are even.
        width, height = (round(self._settings[key] * part / 2) * 2 for key in ("width", "height"))
        caps = f"video/x-raw,width={width},height={height},pixel-aspect-ratio=1/1"
        self._size.set_property("caps", Gst.Caps.from_string(caps))
