"""The parameters of a sweep: a grid, or points drawn from ranges.

A parameter is the path of a key in the scenario's file, such as `network.up.delay`; `flow.0.max_bitrate` is a key of
the first flow.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, written into the scenario with their unit, such as `Range(5, 200, "ms")`.

    `logarithmic`: equal ratios instead of equal differences are equally likely. `digits`: significant digits.
    """

    low: float
    high: float
    unit: str = ""
    logarithmic: bool = False
    digits: int = 6

    def at(self, share: float):
        """The value at this share of the range, 0 to 1, as the scenario has it."""
        if self.logarithmic:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + (self.high - self.low) * share
        text = f"{value:.{self.digits}g}"
        # Units have no exponents.
        text = f"{float(text):f}".rstrip("0").rstrip(".") if "e" in text else text
        return text + self.unit if self.unit else float(text)


def grid(values: Mapping[str, Iterable]) -> list[dict]:
    """Every combination of the values, in their order."""
    lists = [list(one) for one in values.values()]
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*lists)]


def sobol(ranges: Mapping[str, Range], points: int, seed: int = 1) -> list[dict]:
    """Points of a scrambled Sobol sequence (SciPy), which fill the space evenly. A power of two is best."""
    from scipy.stats import qmc

    return _drawn(qmc.Sobol(len(ranges), rng=seed), ranges, points)


def latin_hypercube(ranges: Mapping[str, Range], points: int, seed: int = 1) -> list[dict]:
    """Points of a Latin hypercube (SciPy): each of `points` equal parts of each range has one point."""
    from scipy.stats import qmc

    return _drawn(qmc.LatinHypercube(len(ranges), rng=seed), ranges, points)


def _drawn(engine, ranges: Mapping[str, Range], points: int) -> list[dict]:
    rows = engine.random(points)
    parts = [(name, chosen.at) for name, chosen in ranges.items()]
    return [
        {name: at(float(share)) for (name, at), share in zip(parts, row, strict=True)}
        for row in rows
    ]


def changed(document: dict, point: Mapping) -> dict:
    """The scenario's document with these values at these paths. Missing tables are made."""
    document = copy.deepcopy(document)
    for path, value in point.items():
        place, (*parents, last) = document, path.split(".")
        for name in parents:
            if isinstance(place, list):
                place = place[int(name)]
            else:
                place = place.setdefault(name, {})
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return document
