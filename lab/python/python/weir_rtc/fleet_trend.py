"""Limited time over the days or hours of a fleet: a query, and its plot."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from ._weir import WeirError
from .fleet_numbers import quoted, rows

if TYPE_CHECKING:
    import duckdb

#: A shorter time is plotted by the hour, s.
BY_HOUR_BELOW_S = 4 * 86_400
#: Parts of time in a plot. A longer time gets longer parts.
PARTS_MAX = 120
#: Units of time, the shortest that gives at most so many parts is taken.
UNITS = (("hour", 3_600), ("day", 86_400), ("week", 7 * 86_400), ("month", 30 * 86_400))
#: Size of the plot and its margins in px: left, right, top, bottom.
WIDTH, HEIGHT = 960, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 8, 12, 28
#: Labels below the plot.
LABELS = 6


def query(column: str, unit: str) -> str:
    """The calls of each part of time."""
    name = quoted(column)
    return f"""select date_trunc('{unit}', try_cast({name} as timestamp)) as at, count(*) as calls,
  sum(bad_s) as bad_s, sum(duration_s) as call_time_s
from known where status = 'analyzed' and try_cast({name} as timestamp) is not null
group by 1 order by 1"""


def unit_of(db: duckdb.DuckDBPyConnection, column: str) -> str:
    """The unit in which the times of a column are plotted. Raises `WeirError` if it has no times."""
    name = quoted(column)
    [span] = rows(
        db,
        f"""select epoch(max(try_cast({name} as timestamp))) - epoch(min(try_cast({name} as timestamp))) as s
from known where status = 'analyzed'""",
    )
    if span["s"] is None:
        raise WeirError(f"--over {column}: none of its values is a time such as 2026-11-26 18:30")
    for unit, length_s in UNITS:
        is_fine_enough = unit != "hour" or span["s"] < BY_HOUR_BELOW_S
        if is_fine_enough and span["s"] / length_s <= PARTS_MAX:
            return unit
    return "year"


def plot(column: str, unit: str, found: list[dict[str, Any]]) -> str:
    """A bar for each part of time: the share of its call time that was limited."""
    shares = [(row["bad_s"] or 0.0) / (row["call_time_s"] or 1.0) for row in found]
    top = _round_up(max(shares))
    width = (WIDTH - LEFT - RIGHT) / len(found)
    body = ""
    for step in range(5):
        share = top * step / 4
        y = _y(share, top)
        body += (
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * share:.3g} %</text>'
        )
    every = math.ceil(len(found) / LABELS)
    for place, (row, share) in enumerate(zip(found, shares, strict=True)):
        x, y = LEFT + place * width, _y(share, top)
        when = f"{row['at']:%Y-%m-%d %H:%M}" if unit == "hour" else f"{row['at']:%Y-%m-%d}"
        body += (
            f'<rect x="{x + 0.1 * width:.1f}" y="{y:.1f}" width="{0.8 * width:.1f}" '
            f'height="{HEIGHT - BOTTOM - y:.1f}"><title>{when}: {100 * share:.2f} % of '
            f"{row['calls']:,} calls' time</title></rect>"
        )
        if place % every == 0:
            anchor = "start" if place == 0 else "middle"
            x = LEFT if place == 0 else x + width / 2
            body += f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{when}</text>'
    about = f"Share of call time that was limited, in each {unit} of the column {escape(column)}."
    return (
        f"<h2>Over time</h2><p>{about} Bars have their calls as a title.</p><div class='wide'>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{about}" class="trend">{body}</svg></div>'
    )


def _y(share: float, top: float) -> float:
    return HEIGHT - BOTTOM - share / top * (HEIGHT - BOTTOM - TOP)


def _round_up(share: float) -> float:
    """The next share of 1, 2, 4 or 8 in any power of ten; 1 % at least."""
    if share <= 0.01:
        return 0.01
    power = 10.0 ** math.floor(math.log10(share))
    for factor in (1, 2, 4, 8):
        if share <= factor * power:
            return min(1.0, factor * power)
    return min(1.0, 10 * power)
