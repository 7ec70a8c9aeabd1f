#!/usr/bin/env python3
"""Records calls of a GStreamer pipeline over the known networks of lab/analyze/tests/networks.

    scripts/results/record-pipelines.py CONTROLLER FOLDER [NAME]...

Each call is a sender with `weircc` under the controller, 640x360 in VP8, and a receiver with `weirfeedback`, over plain RTP
and RTCP in `weir link`. FOLDER gets networks__NAME.pcapng.xz, captured at the sender. It needs the plugin (`make install-gst`), dumpcap,
iperf3 for `tcp`, and the rights of `weir link`. WEIR names the program.
"""

import lzma
import os
import struct
import subprocess
import sys
import time
import tomllib
from pathlib import Path

NETWORKS = Path(__file__).parents[2] / "lab/analyze/tests/networks"
TWCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
A, B = "10.45.0.1", "10.45.0.2"
RTP_PORT = 5004
#: Kinds of blocks, and of a link, in pcapng.
INTERFACE, PACKET, ETHERNET = 1, 6, 1
#: Bytes of a packet that are kept: headers of RTP, and whole RTCP as far as it is small.
KEPT = 160
SENDER = f"""videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1
! video/x-raw,width=640,height=360,framerate=30/1 ! videoconvert ! queue
! vp8enc name=encoder deadline=1 cpu-used=-8 end-usage=cbr lag-in-frames=0 keyframe-max-dist=90
  buffer-size=150 buffer-initial-size=75 buffer-optimal-size=100 overshoot=15
! rtpvp8pay mtu=1200 picture-id-mode=15-bit
! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000,extmap-1=(string){TWCC}
! weircc name=weircc local=true overhead=28 algorithm=CONTROLLER
! udpsink host={B} port={RTP_PORT} sync=false async=false
udpsrc port=5005 caps=application/x-rtcp ! weircc.rtcp_sink"""
RECEIVER = f"""udpsrc port={RTP_PORT}
  caps="application/x-rtp,media=video,encoding-name=VP8,clock-rate=90000,extmap-1=(string){TWCC}"
! weirfeedback name=feedback interval=50000000 feedback=twcc ! fakesink sync=false async=false
feedback.rtcp_src ! udpsink host={A} port=5005 sync=false async=false"""


def play(description: str, seconds: float) -> None:
    """Plays a pipeline for so long. Its `weircc`, if there is one, leads the encoder."""
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst

    Gst.init(None)
    pipeline = Gst.parse_launch(description)
    weircc = pipeline.get_by_name("weircc")
    if weircc is not None:
        weircc.set_property("encoder", pipeline.get_by_name("encoder"))
    pipeline.set_state(Gst.State.PLAYING)
    error = pipeline.get_bus().timed_pop_filtered(int(seconds * Gst.SECOND), Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if error is not None:
        sys.exit(error.parse_error().gerror.message)


def send(controller: str, seconds: float, rival_from: float | None, capture: str) -> None:
    """What runs at host A."""
    sniffer = subprocess.Popen(
        ["dumpcap", "-q", "-i", "weir0", "-f", "udp", "-s", str(KEPT), "-w", capture]
    )
    rival = None
    if rival_from is not None:
        words = f"sleep {rival_from}; exec iperf3 -C cubic -c {B} -t {seconds - rival_from:.0f}"
        rival = subprocess.Popen(["sh", "-c", words], stdout=subprocess.DEVNULL)
    # Capture, receiver and network must be there before the first packet.
    time.sleep(1)
    play(SENDER.replace("CONTROLLER", controller), seconds)
    if rival is not None:
        rival.wait()
    sniffer.terminate()
    sniffer.wait()


def receive(seconds: float) -> None:
    """What runs at host B."""
    server = subprocess.Popen(["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    play(RECEIVER, seconds + 2)
    server.terminate()


def without_pictures(capture: bytes) -> bytes:
    """The capture with zeros for the payloads of RTP, which nobody needs and nothing packs."""
    data, at, head = bytearray(capture), 0, 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == INTERFACE:
            (link,) = struct.unpack_from("<H", data, at + 8)
            head = 14 if link == ETHERNET else 0
        elif kind == PACKET:
            (kept,) = struct.unpack_from("<I", data, at + 20)
            udp = at + 28 + head + 20
            (port,) = struct.unpack_from(">H", data, udp + 2)
            if port == RTP_PORT:
                (words,) = struct.unpack_from(">H", data, udp + 8 + 14)
                begin, end = udp + 8 + 16 + 4 * words, at + 28 + kept
                data[begin:end] = bytes(max(end - begin, 0))
        at += length
    return bytes(data)


def call(name: str, controller: str, folder: Path) -> None:
    """One call over a known network."""
    network = NETWORKS / f"{name}.toml"
    known = tomllib.loads(network.read_text())
    seconds = float(known["duration"].removesuffix("s"))
    rivals = [float(it["start"][:-1]) for it in known["flow"] if it.get("kind") == "tcp"]
    rival = str(rivals[0]) if rivals else "-"
    me = ["/usr/bin/python3", str(Path(__file__).resolve())]
    capture = str((folder / f"networks__{name}.pcapng").resolve())
    words = [os.environ.get("WEIR", "weir"), "link", str(network)]
    words += ["--peer", " ".join([*me, "--receive", str(seconds)]), "--"]
    subprocess.run([*words, *me, "--send", controller, str(seconds), rival, capture], check=True)
    packed = lzma.compress(without_pictures(Path(capture).read_bytes()), preset=9)
    Path(f"{capture}.xz").write_bytes(packed)
    Path(capture).unlink()


def main() -> int:
    match sys.argv[1:]:
        case ["--receive", seconds]:
            receive(float(seconds))
        case ["--send", controller, seconds, rival, capture]:
            send(controller, float(seconds), None if rival == "-" else float(rival), capture)
        case [controller, folder, *names] if not controller.startswith("-"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name in names or sorted(it.stem for it in NETWORKS.glob("*.toml")):
                print(name, flush=True)
                call(name, controller, Path(folder))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
