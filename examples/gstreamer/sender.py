#!/usr/bin/python3
"""Sends video from webrtcbin at the rate of a controller of Weir: sender.py CONTROLLER SECONDS FOLDER

The offer goes to FOLDER/offer.sdp, and the answer is awaited in FOLDER/answer.sdp. See README.md.
"""

import pathlib
import sys
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC

# Without this header extension the receiver sends no feedback per packet.
TWCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
# With a buffer of one second instead of six, the encoder follows a lower target sooner.
PIPELINE = f"""
    videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1
    ! video/x-raw,width=640,height=360,framerate=30/1
    ! videoconvert ! queue
    ! vp8enc name=encoder deadline=1 cpu-used=8 end-usage=cbr lag-in-frames=0
        buffer-size=1000 buffer-initial-size=500 buffer-optimal-size=600 overshoot=15
    ! rtpvp8pay mtu=1200 picture-id-mode=15-bit
    ! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000,extmap-1=(string){TWCC}
    ! webrtcbin name=webrtc bundle-policy=max-bundle
"""


def main():
    if len(sys.argv) != 4:
        sys.exit("write: sender.py CONTROLLER SECONDS FOLDER")
    controller, seconds, folder = sys.argv[1], float(sys.argv[2]), pathlib.Path(sys.argv[3])
    Gst.init(None)
    loop, start = GLib.MainLoop(), time.monotonic()
    pipeline = Gst.parse_launch(PIPELINE)
    webrtc = pipeline.get_by_name("webrtc")
    # Retransmissions; without them a lost packet freezes the picture until the next key frame.
    webrtc.emit("get-transceiver", 0).set_property("do-nack", True)
    weircc = Gst.ElementFactory.make("weircc")
    if weircc is None:
        sys.exit("no element weircc: run `make install-gst`, or set GST_PLUGIN_PATH")
    weircc.set_property("algorithm", controller)
    weircc.set_property("encoder", pipeline.get_by_name("encoder"))
    webrtc.connect("request-aux-sender", lambda _webrtc, _transport: weircc)

    def on_gathering_state(webrtc, _property):
        if webrtc.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            part = folder / "offer.part"
            part.write_text(webrtc.get_property("local-description").sdp.as_text())
            part.rename(folder / "offer.sdp")

    def on_offer(promise, webrtc):
        reply = promise.get_reply()  # Its values live only as long as this variable.
        webrtc.emit("set-local-description", reply.get_value("offer"), None)

    def on_negotiation_needed(webrtc):
        promise = Gst.Promise.new_with_change_func(on_offer, webrtc)
        webrtc.emit("create-offer", None, promise)

    def look_for_answer():
        answer = folder / "answer.sdp"
        if not answer.exists():
            return True
        _, sdp = GstSdp.SDPMessage.new_from_text(answer.read_text())
        description = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, sdp)
        webrtc.emit("set-remote-description", description, None)
        return False

    def print_target():
        kbps = weircc.get_property("target-bitrate") / 1000
        print(f"time_s {time.monotonic() - start:.0f} target_kbps {kbps:.0f}", flush=True)
        return True

    def on_error(_bus, message):
        print(message.parse_error().gerror.message, file=sys.stderr)
        loop.quit()

    webrtc.connect("notify::ice-gathering-state", on_gathering_state)
    webrtc.connect("on-negotiation-needed", on_negotiation_needed)
    pipeline.get_bus().add_signal_watch()
    pipeline.get_bus().connect("message::error", on_error)
    GLib.timeout_add(100, look_for_answer)
    GLib.timeout_add(1000, print_target)
    GLib.timeout_add(int(seconds * 1000), loop.quit)
    pipeline.set_state(Gst.State.PLAYING)
    loop.run()
    pipeline.set_state(Gst.State.NULL)


if __name__ == "__main__":
    main()
