#!/usr/bin/python3
"""Sends video from webrtcbin at the rate of a controller of Weir: sender.py CONTROLLER SECONDS FOLDER

The offer goes to FOLDER/offer.sdp, and the answer is awaited in FOLDER/answer.sdp. See README.md.
"""

import pathlib
import sys
import time

import gi

for library in ("Gst", "GstSdp", "GstWebRTC"):
    gi.require_version(library, "1.0")
from gi.repository import Gst, GstSdp, GstWebRTC

# Without this header extension the receiver sends no feedback per packet.
TWCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
# With a buffer of one second instead of six, the encoder follows a lower target sooner.
PIPELINE = f"""
    videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1
    ! video/x-raw,width=640,height=360,framerate=30/1 ! videoconvert ! queue
    ! vp8enc name=encoder deadline=1 cpu-used=-8 end-usage=cbr lag-in-frames=0 keyframe-max-dist=3000
        buffer-size=1000 buffer-initial-size=500 buffer-optimal-size=600 overshoot=15
    ! rtpvp8pay mtu=1200 picture-id-mode=15-bit
    ! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000,extmap-1=(string){TWCC}
    ! webrtcbin name=webrtc bundle-policy=max-bundle
"""


def on_negotiation_needed(webrtc):
    def on_offer(promise):
        reply = promise.get_reply()  # Its values live only as long as this variable.
        webrtc.emit("set-local-description", reply.get_value("offer"), None)

    webrtc.emit("create-offer", None, Gst.Promise.new_with_change_func(on_offer))


def write_offer(webrtc, path):
    """Writes the offer as soon as it has all addresses."""
    if webrtc.get_property("ice-gathering-state") != GstWebRTC.WebRTCICEGatheringState.COMPLETE:
        return False
    path.with_suffix(".part").write_text(webrtc.get_property("local-description").sdp.as_text())
    return path.with_suffix(".part").rename(path)


def read_answer(webrtc, path):
    if not path.exists():
        return False
    sdp = GstSdp.SDPMessage.new_from_text(path.read_text()).msg
    answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, sdp)
    webrtc.emit("set-remote-description", answer, None)
    return True


Gst.init(None)
if len(sys.argv) != 4:
    sys.exit("write: sender.py CONTROLLER SECONDS FOLDER")
seconds, folder = float(sys.argv[2]), pathlib.Path(sys.argv[3])
pipeline, weircc = Gst.parse_launch(PIPELINE), Gst.ElementFactory.make("weircc")
if weircc is None:
    sys.exit("no element weircc: run `make install-gst`, or set GST_PLUGIN_PATH")
weircc.set_property("algorithm", sys.argv[1])
weircc.set_property("encoder", pipeline.get_by_name("encoder"))
webrtc = pipeline.get_by_name("webrtc")
# Retransmissions; without them a lost packet freezes the picture until the next key frame.
webrtc.emit("get-transceiver", 0).set_property("do-nack", True)
webrtc.connect("request-aux-sender", lambda _webrtc, _transport: weircc)
webrtc.connect("on-negotiation-needed", on_negotiation_needed)
pipeline.set_state(Gst.State.PLAYING)
start, lines, is_offered, is_answered, error = time.monotonic(), 0, False, False, None
while not error and time.monotonic() < start + seconds:
    error = pipeline.bus.timed_pop_filtered(50 * Gst.MSECOND, Gst.MessageType.ERROR)
    is_offered = is_offered or write_offer(webrtc, folder / "offer.sdp")
    is_answered = is_answered or read_answer(webrtc, folder / "answer.sdp")
    if time.monotonic() > start + lines + 1:
        lines, kbps = lines + 1, weircc.get_property("target-bitrate") // 1000
        print(f"time_s {lines} target_kbps {kbps}", flush=True)
pipeline.set_state(Gst.State.NULL)
sys.exit(error and error.parse_error().gerror.message)
