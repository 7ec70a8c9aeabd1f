"""Pictures that a receiver in Python decodes, and the freezes between them."""

import time

# A freeze by the rule of the W3C's statistics (webrtc-stats, freezeCount).
GAPS_OF_MEAN = 30
LEAST_EXTRA_S = 0.15


class Pictures:
    """Counts decoded pictures and freezes."""

    def __init__(self):
        self.count, self.freezes, self.frozen_s = 0, 0, 0.0
        self.size = None
        self._last, self._gaps = None, []

    def add(self, width, height):
        """A picture is there now."""
        now = time.monotonic()
        if self._last is not None:
            gap = now - self._last
            if len(self._gaps) == GAPS_OF_MEAN:
                mean = sum(self._gaps) / GAPS_OF_MEAN
                if gap > max(3 * mean, mean + LEAST_EXTRA_S):
                    self.freezes += 1
                    self.frozen_s += gap
                self._gaps.pop(0)
            self._gaps.append(gap)
        self._last, self.size = now, (width, height)
        self.count += 1

    def inbound(self):
        """Their part of the statistics of a receiver."""
        width, height = self.size or (None, None)
        return {
            "framesDecoded": self.count,
            "frameWidth": width,
            "frameHeight": height,
            "freezeCount": self.freezes,
            "totalFreezesDuration": self.frozen_s,
        }
