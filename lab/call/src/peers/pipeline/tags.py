"""Tells the lab which frames of the camera went in, and when, as the page of a browser does.

Each frame of the lab's camera has a tag in its top rows: 40 blocks from edge to edge. Their luma is
measured here, and the lab reads them.
"""

import time

BLOCKS = 40
# How many frames go into one message: half a second of them.
FRAMES_MAX = 15


def blocks_of(picture, width):
    """Mean luma of the middle of each block, as hexadecimal digits; `picture` begins with its luma.
    Empty if the picture is too narrow for a tag."""
    side = width // BLOCKS
    if side == 0:
        return ""
    top = edge_of(side)
    text = ""
    for block in range(BLOCKS):
        start = -(-block * width // BLOCKS)
        end = -(-(block + 1) * width // BLOCKS)
        edge = edge_of(end - start)
        total = count = 0
        for row in range(top, side - top):
            part = picture[row * width + start + edge : row * width + end - edge]
            total += sum(part)
            count += len(part)
        text += f"{total // count:02x}"
    return text


def edge_of(length):
    """Pixels at each edge of a block that are not measured, because a codec blurs them."""
    return 1 if length == 3 else length // 4


class Sightings:
    """Collects the frames that pass a place, and tells them to the lab."""

    def __init__(self, tell, width, height, place="camera"):
        self._tell, self._size, self._place = tell, {"width": width, "height": height}, place
        self._waiting = []

    def see(self, timestamp_ns, blocks):
        """A frame is there now. Its timestamp is that of the pipeline."""
        frame = {"atMs": time.time() * 1000, "timestampUs": timestamp_ns / 1000, **self._size}
        self._waiting.append({**frame, "blocks": blocks})
        if len(self._waiting) >= FRAMES_MAX:
            self.flush()

    def flush(self):
        """Tells all frames that the lab does not know yet."""
        frames, self._waiting = self._waiting, []
        if frames:
            self._tell("frames", place=self._place, frames=frames)
