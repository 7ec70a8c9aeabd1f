"""The parameters of a sweep: a grid, or points drawn from ranges.

A parameter is the path of a key in the scenario's file, such as `network.up.delay`; `flow.0.max_bitrate` is a key of
the first flow.
"""

from __future__ import annotations

import copy
import itertools
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ._weir import WeirError

#: Points of a sweep at most. They are in memory.
POINTS_MAX = 1_000_000


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

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise WeirError(f"a range goes from low to high, not from {self.low} to {self.high}")
        if self.logarithmic and self.low <= 0:
            raise WeirError(f"a logarithmic range begins above 0, not at {self.low}")

    def at(self, share: float) -> str | float:
        """The value at this share of the range, 0 to 1, as the scenario has it."""
        if self.logarithmic:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + (self.high - self.low) * share
        text = f"{value:.{self.digits}g}"
        # Units have no exponents.
        text = f"{float(text):f}".rstrip("0").rstrip(".") if "e" in text else text
        return text + self.unit if self.unit else float(text)


def grid(values: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values, in their order."""
    for name, of_one in values.items():
        if isinstance(of_one, str) or not isinstance(of_one, Iterable):
            raise WeirError(f"{name} of a grid is a list of values, not {of_one!r}")
    lists = [list(one) for one in values.values()]
    _check_count(math.prod(len(one) for one in lists))
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*lists)]


def sobol(ranges: Mapping[str, Range], points: int, seed: int = 1) -> list[dict[str, Any]]:
    """Points of a scrambled Sobol sequence (SciPy), which fill the space evenly. A power of two is best."""
    _check(ranges, points)
    qmc = _quasi_monte_carlo()
    with warnings.catch_warnings():
        # SciPy's word on other numbers than powers of two is in the line above.
        warnings.simplefilter("ignore", UserWarning)
        return _drawn(qmc.Sobol(len(ranges), rng=seed), ranges, points)


def latin_hypercube(
    ranges: Mapping[str, Range], points: int, seed: int = 1
) -> list[dict[str, Any]]:
    """Points of a Latin hypercube (SciPy): each of `points` equal parts of each range has one point."""
    _check(ranges, points)
    return _drawn(_quasi_monte_carlo().LatinHypercube(len(ranges), rng=seed), ranges, points)


def _quasi_monte_carlo() -> Any:
    try:
        from scipy.stats import qmc
    except ImportError:
        raise WeirError(
            "points drawn from ranges need SciPy: pip install 'weir-rtc[sweep]'"
        ) from None
    return qmc


def _check(ranges: Mapping[str, Range], points: int) -> None:
    if not ranges:
        raise WeirError("points are drawn from ranges, and there is none")
    for name, of_one in ranges.items():
        if not isinstance(of_one, Range):
            raise WeirError(f"{name} is no Range, but {of_one!r}")
    if points < 1:
        raise WeirError(f"the number of points is at least 1, not {points}")
    _check_count(points)


def _check_count(points: int) -> None:
    if points > POINTS_MAX:
        raise WeirError(f"a sweep has at most {POINTS_MAX} points, not {points}")


def _drawn(engine: Any, ranges: Mapping[str, Range], points: int) -> list[dict[str, Any]]:
    rows = engine.random(points)
    parts = [(name, chosen.at) for name, chosen in ranges.items()]
    return [
        {name: at(float(share)) for (name, at), share in zip(parts, row, strict=True)}
        for row in rows
    ]


def changed(document: dict[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario's document with these values at these paths. Missing tables are made."""
    document = copy.deepcopy(document)
    for path, value in point.items():
        *parents, last = path.split(".")
        place: Any = document
        try:
            for name in parents:
                place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
            place[int(last) if isinstance(place, list) else last] = value
        except (AttributeError, IndexError, TypeError, ValueError):
            raise WeirError(f"the scenario has no place for {path}") from None
    return document
