"""Driver of the arena for GStreamer: the sender of the lab's own pipelines, with rtpgccbwe in place of weircc; or a
receiver.

`driver.py --version` prints the version. Otherwise it talks to the lab as docs/guide/arena.md says.
"""

import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = HERE / "target" / "release" / "libgstrsrtp.so"
os.environ["GST_PLUGIN_PATH"] = f"{PLUGIN.parent}:{os.environ.get('GST_PLUGIN_PATH', '')}"
sys.path[:0] = [
    str(HERE.parent),
    str(HERE.parent.parent / "lab" / "call" / "src" / "peers" / "pipeline"),
]

import pipelines
import receiver
import sender
from gi.repository import GLib, Gst

# IPv4, UDP, RTP with extensions, the descriptor of VP8, and the authentication tag of SRTP.
HEADER_BYTES = 20 + 8 + 24 + 3 + 10
PAYLOAD_BYTES = 1_127


class GccSender(pipelines.Sender):
    """One call under rtpgccbwe."""

    def _make_controller(self):
        self._target = self._settings["startBitrate"]
        self._encode(self._target)
        estimator = Gst.ElementFactory.make("rtpgccbwe", "controller")
        estimator.set_property("min-bitrate", self._settings["minBitrate"])
        estimator.set_property("max-bitrate", self._settings["maxBitrate"])
        estimator.set_property("estimated-bitrate", self._target)
        estimator.connect("notify::estimated-bitrate", self._on_estimate)
        return estimator

    def _on_estimate(self, estimator, _):
        target = estimator.get_property("estimated-bitrate")
        if target == self._target:
            return
        told = {"reason": "told by the stack", "state": "unknown", "signals": {}}
        told |= {"timeNs": time.monotonic_ns(), "fromBps": self._target, "targetBps": target}
        self._lines.write(self._call, target=told)
        self._target = target
        # Not in the estimator's own thread, which waits for this.
        GLib.idle_add(self._encode, target)

    def _encode(self, target):
        """Gives the encoder its part of a target that includes headers."""
        rate = self._settings["frameRate"]
        packets = -(-target // 8 // rate // PAYLOAD_BYTES)
        headers = 8 * packets * HEADER_BYTES * rate
        self._encoder.set_property("target-bitrate", max(target - headers, target // 2))
        return GLib.SOURCE_REMOVE


def make(lines, call, settings):
    """The end of a call that the settings say."""
    end = receiver.Receiver if settings.get("role") == "receiver" else GccSender
    return end(lines, call, settings)


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        pipelines.tell_version("rsrtp", "rtpgccbwe", "gst-plugin-rtp")
    else:
        sender.serve(make)
