"""A camera that plays a file of uncompressed pictures in a loop (YUV4MPEG2, 4:2:0)."""

import threading

from gi.repository import Gst, GstVideo
from tags import blocks_of

FRAME_MARK = b"FRAME\n"


def description(settings):
    """The source of the pictures, named `camera`, as text of a pipeline."""
    width, height, rate = settings["width"], settings["height"], settings["frameRate"]
    caps = f"video/x-raw,format=I420,width={width},height={height},framerate={rate}/1"
    if settings["camera"] is None:
        return f"videotestsrc name=camera is-live=true ! {caps}"
    queue = "max-buffers=2 leaky-type=downstream"
    return f"appsrc name=camera is-live=true format=time {queue} caps={caps}"


def open_camera(source, settings, sightings):
    """A camera that makes `source` deliver the file's pictures at the rate of the settings.

    All pictures stay in memory and are handed out without a copy. Without a file, `source` delivers
    its own test picture. `sightings` learn of each picture, if they are there.
    """
    width, height, rate = settings["width"], settings["height"], settings["frameRate"]
    path = settings["camera"]
    pictures = [] if path is None else _pictures(path, width, height)
    return Camera(source, pictures, Gst.SECOND // rate, sightings)


def _pictures(path, width, height):
    chroma = (width + 1) // 2, (height + 1) // 2
    picture = width * height + 2 * chroma[0] * chroma[1]
    offsets = [0, width * height, width * height + chroma[0] * chroma[1], 0]
    strides = [width, chroma[0], chroma[0], 0]
    pictures = []
    with open(path, "rb") as file:
        head = file.readline()
        if not head.startswith(b"YUV4MPEG2 "):
            raise ValueError(f"{path} is not a YUV4MPEG2 file")
        while file.readline() == FRAME_MARK:
            content = file.read(picture)
            buffer = Gst.Buffer.new_wrapped(content)
            GstVideo.buffer_add_video_meta_full(
                buffer,
                GstVideo.VideoFrameFlags.NONE,
                GstVideo.VideoFormat.I420,
                width,
                height,
                3,
                offsets,
                strides,
            )
            pictures.append((buffer, blocks_of(content, width)))
    if not pictures:
        raise ValueError(f"{path} has no picture")
    return pictures


class Camera:
    """Pushes one picture after the other, each at its time."""

    def __init__(self, source, pictures, interval, sightings):
        self._source, self._pictures, self._interval = source, pictures, interval
        self._sightings = sightings
        self._ended = threading.Event()
        self._thread = None

    def start(self):
        """Begins to play. The pipeline must be playing."""
        if self._pictures:
            self._thread = threading.Thread(target=self._play, daemon=True)
            self._thread.start()

    def stop(self):
        """Ends after the picture at hand. From then on nothing is told of pictures."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._sightings is not None:
            self._sightings.flush()

    def _play(self):
        clock = self._source.get_clock()
        base = self._source.get_base_time()
        start = clock.get_time()
        count = 0
        while not self._ended.wait(
            max(0, start + count * self._interval - clock.get_time()) / Gst.SECOND
        ):
            # A shallow copy: it shares the memory of the picture.
            picture, blocks = self._pictures[count % len(self._pictures)]
            buffer = picture.copy()
            buffer.pts = start + count * self._interval - base
            buffer.duration = self._interval
            if self._sightings is not None:
                self._sightings.see(buffer.pts, blocks)
            if self._source.emit("push-buffer", buffer) != Gst.FlowReturn.OK:
                return
            # A camera does not deliver the pictures of a time that has passed.
            count = max(count + 1, (clock.get_time() - start) // self._interval)
