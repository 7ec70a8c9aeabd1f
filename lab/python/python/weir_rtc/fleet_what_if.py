"""Would another controller have helped? The networks of some calls, simulated under several controllers."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import _weir
from ._weir import Scenario, WeirError
from .fleet_sources import kept_content

#: Controllers that are compared; the first is that of browsers.
CONTROLLERS = "gcc,nada,scream-v2,sluice"
#: Calls of a sample at most.
CALLS_MAX = 1000
#: A share of good time that changes by less counts as the same.
SAME = 0.05

#: Calls in which the network or the controller took most time. A call's name is a hash, so their order is a draw.
SAMPLE = """select source, call_id from calls
where status = 'analyzed' and not connection_failed and main_cause in
  ('uplink_capacity', 'downlink_capacity', 'uplink_loss', 'downlink_loss', 'air_time', 'delay', 'controller')
order by call_id limit {count}"""


@dataclass(frozen=True)
class Outcome:
    """What the videos of a call got."""

    #: Sum of the mean rates that arrived.
    rate_kbps: float
    #: Mean share of time that was good, by the rule for dumps: nobody knows the sharpness of their pictures.
    good_ratio: float
    #: Largest 95th percentile of the queuing delay.
    queuing_delay_ms: float


#: Of each controller, what the videos of one call get.
Answer = dict[str, Outcome]


@dataclass
class WhatIf:
    """The answers of a sample of calls, and the calls that gave none."""

    controllers: list[str]
    answers: list[Answer]
    #: Names and errors.
    failed: list[tuple[str, str]]

    def medians(self, controller: str) -> Outcome:
        """The median of each measure over the calls."""
        found = [answer[controller] for answer in self.answers]
        return Outcome(
            statistics.median(it.rate_kbps for it in found),
            statistics.median(it.good_ratio for it in found),
            statistics.median(it.queuing_delay_ms for it in found),
        )

    def good_ratio(self, controller: str) -> float:
        """The share of good time of all calls."""
        return statistics.fmean(answer[controller].good_ratio for answer in self.answers)

    def changed(self, controller: str) -> tuple[int, int]:
        """In how many calls it is better than the first controller, and in how many worse."""
        first = self.controllers[0]
        changes = [it[controller].good_ratio - it[first].good_ratio for it in self.answers]
        return sum(it > SAME for it in changes), sum(it < -SAME for it in changes)


def of_scenario(scenario: Scenario, controllers: Sequence[str]) -> Answer:
    """What the videos of a scenario get under each controller."""
    answer = {}
    for text in _weir.run([scenario], list(controllers), [1], 0, None).json():
        run = json.loads(text)
        videos = [flow for flow in run["flows"] if flow.get("good_ratio") is not None]
        if not videos:
            raise WeirError(f"{scenario.id}: no video was seen")
        answer[run["controller"]] = Outcome(
            sum(1e3 * it["rate_mbps"]["mean"] for it in videos),
            statistics.fmean(it["good_ratio"] + it["bad_picture_ratio"] for it in videos),
            max(it["queuing_delay_ms"]["p95"] for it in videos),
        )
    return answer


def scenario_of(source: str) -> Scenario:
    """The network that the call of a dump met. Raises `WeirError` if the dump is not there any more, or has none."""
    return Scenario(_weir.fleet_scenario(source, kept_content(source)), id="estimated")


def of_calls(
    db: Any,
    count: int,
    controllers: str = CONTROLLERS,
    progress: Callable[[int, int], None] | None = None,
) -> WhatIf:
    """Simulates the networks of so many calls of a lake under each controller. Raises `WeirError`."""
    if not 0 < count <= CALLS_MAX:
        raise WeirError(f"--what-if takes 1 to {CALLS_MAX} calls, not {count}")
    found = WhatIf(_weir.choose(controllers), [], [])
    sources = [row[0] for row in db.execute(SAMPLE.format(count=count)).fetchall()]
    for place, source in enumerate(sources):
        try:
            found.answers.append(of_scenario(scenario_of(source), found.controllers))
        except WeirError as error:
            found.failed.append((source, str(error)))
        if progress is not None:
            progress(place + 1, len(sources))
    return found
