#!/bin/sh
# libvpx's own buffer of six seconds makes the first VP8 frame 20 times the mean, and stretches a fall.
#
# Version:   libvpx 1.16.0, as PyAV 18.1.0 brings it (PyPI).
# Behaviour: `vpx_codec_enc_config_default` models a receiver with a buffer of 6,000 ms, filled to
#            4,000 ms at the start and 5,000 ms later. Constant bitrate (`VPX_CBR`) holds only over
#            such a time: the first frame may spend what is in the buffer, and after a fall of the
#            target the encoder lives on it. A call needs buffers of a tenth of that. Whoever sets
#            bitrate, CBR and no lookahead, and leaves the rest (vp8enc of GStreamer, `-b:v` of
#            ffmpeg with maxrate alone), has these.
# Output:    buffers of 6000, 4000, 5000 ms: first frame 21.5 times the mean, 436 kbit/s in the three seconds after a fall to 300
#            buffers of 150, 100, 100 ms: first frame 0.4 times the mean, 305 kbit/s in the three seconds after a fall to 300
# Exits with 1 if the default's first frame is below ten times the mean, or its rate below 375 kbit/s.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: av==18.1.0
"$folder/venv/bin/python" - <<'END'
import ctypes
import pathlib

import av

[path] = (pathlib.Path(av.__file__).parents[1] / "av.libs").glob("libvpx-*")
vpx = ctypes.CDLL(str(path))
UINT, INT, POINTER = ctypes.c_uint, ctypes.c_int, ctypes.c_void_p
WIDTH, HEIGHT, FRAMES, FALL, AFTERWARDS = 640, 360, 180, 90, 90
BEFORE, AFTER = 1500, 300
FILM = f"testsrc2=s={WIDTH}x{HEIGHT}:r=30,noise=alls=12:allf=t,trim=end_frame={FRAMES}"
#: vpx_image.h, vpx_encoder.h, vp8cx.h.
I420, CBR, REALTIME, SET_CPUUSED, FRAME_PACKET, ABI_VERSION = 0x102, 1, 1, 13, 0, 39


class Settings(ctypes.Structure):
    """The beginning of `vpx_codec_enc_cfg_t`."""

    _fields_ = [
        *[(name, UINT) for name in ("usage", "threads", "profile", "width", "height", "depth", "input_depth")],
        *[("num", INT), ("den", INT), ("resilient", UINT), ("pass_", INT), ("lag", UINT)],
        *[(name, UINT) for name in ("dropframe", "resize", "scaled_width", "scaled_height", "up", "down")],
        *[("end_usage", INT), ("stats", POINTER * 4), ("bitrate", UINT), ("min_q", UINT), ("max_q", UINT)],
        *[(name, UINT) for name in ("undershoot", "overshoot", "size", "initial", "optimal")],
        ("rest", ctypes.c_char * 2000),
    ]


class Packet(ctypes.Structure):
    _fields_ = [("kind", INT), ("data", POINTER), ("size", ctypes.c_size_t)]


vpx.vpx_codec_vp8_cx.restype = vpx.vpx_img_wrap.restype = POINTER
vpx.vpx_codec_get_cx_data.restype = ctypes.POINTER(Packet)


def check(status):
    if status != 0:
        raise SystemExit(f"libvpx refuses: {status}")


def plain(frame):
    """The picture without what pads its lines."""
    lines = []
    for plane in frame.planes:
        data = bytes(plane)
        lines += [data[at * plane.line_size :][: plane.width] for at in range(plane.height)]
    return b"".join(lines)


def frame_sizes(buffers):
    settings, encoder = Settings(), (ctypes.c_char * 512)()
    interface = POINTER(vpx.vpx_codec_vp8_cx())
    check(vpx.vpx_codec_enc_config_default(interface, ctypes.byref(settings), 0))
    settings.width, settings.height, settings.num, settings.den = WIDTH, HEIGHT, 1, 30
    settings.lag, settings.end_usage, settings.bitrate = 0, CBR, BEFORE
    if buffers:
        settings.size, settings.initial, settings.optimal = buffers
    check(vpx.vpx_codec_enc_init_ver(encoder, interface, ctypes.byref(settings), 0, ABI_VERSION))
    check(vpx.vpx_codec_control_(encoder, SET_CPUUSED, INT(-8)))
    sizes = []
    for number, frame in enumerate(av.open(FILM, format="lavfi").decode(video=0)):
        if number == FALL:
            settings.bitrate = AFTER
            check(vpx.vpx_codec_enc_config_set(encoder, ctypes.byref(settings)))
        pixels = plain(frame)
        image = POINTER(vpx.vpx_img_wrap(None, I420, WIDTH, HEIGHT, 1, pixels))
        times = ctypes.c_int64(number), ctypes.c_ulong(1), ctypes.c_long(0), ctypes.c_ulong(REALTIME)
        check(vpx.vpx_codec_encode(encoder, image, *times))
        vpx.vpx_img_free(image)
        next_packet = POINTER(None)
        while packet := vpx.vpx_codec_get_cx_data(encoder, ctypes.byref(next_packet)):
            if packet.contents.kind == FRAME_PACKET:
                sizes.append(packet.contents.size)
    vpx.vpx_codec_destroy(encoder)
    return (settings.size, settings.initial, settings.optimal), sizes


found = []
for buffers in (None, (150, 100, 100)):
    used, sizes = frame_sizes(buffers)
    first = sizes[0] / (BEFORE * 1000 / 8 / 30)
    later = sizes[FALL : FALL + AFTERWARDS]
    rate = sum(later) * 8 * 30 / len(later) / 1000
    found.append((first, rate))
    print(f"buffers of {', '.join(map(str, used))} ms: first frame {first:.1f} times the mean, "
          f"{rate:.0f} kbit/s in the three seconds after a fall to {AFTER}")
(first, rate), (_, short) = found
if first < 10 or rate < 1.25 * AFTER or short > 1.1 * AFTER:
    raise SystemExit("changed: 21 times the mean, and 436 kbit/s, with the buffers of libvpx")
END
