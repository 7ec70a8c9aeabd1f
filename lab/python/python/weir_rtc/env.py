"""A training environment for gymnasium: `weir_rtc/Rtc-v0`.

>>> import gymnasium, weir_rtc.env
>>> env = gymnasium.make("weir_rtc/Rtc-v0", scenario="demo/first-call")
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt

from . import Observation, ScenarioLike, Session, scenarios
from ._weir import Runs as RawRuns

#: The range of the action, on a logarithmic scale [AlphaRTC].
MIN_BPS, MAX_BPS = 10_000.0, 8_000_000.0
#: The largest factor by which an action that is a change raises or lowers the bitrate.
CHANGE_MAX = 2.0
#: Queuing delay and round-trip time that the observation shows as 1.
DELAY_MAX_US = 1_000_000.0

#: Values of an action or an observation.
Values: TypeAlias = npt.NDArray[np.float32]


def to_bps(action: float) -> float:
    """The bitrate in bit/s of an action in 0..1."""
    return MIN_BPS * (MAX_BPS / MIN_BPS) ** min(max(action, 0.0), 1.0)


def to_unit(bps: float) -> float:
    """The action in 0..1 of a bitrate in bit/s."""
    return min(max(math.log(max(bps, MIN_BPS) / MIN_BPS) / math.log(MAX_BPS / MIN_BPS), 0.0), 1.0)


def literature_reward(received: float, delay: float, loss: float) -> float:
    """Received rate minus a fifth of the loss ratio [AlphaRTC's example]; all are in 0..1."""
    return received - 0.2 * loss


class Rtc(gymnasium.Env[Values, Values]):
    """One media flow of a simulated scenario, whose bitrate is the action.

    Action: `Box(0, 1, (1,))`, the bitrate from 10 kbit/s to 8 Mbit/s on a logarithmic scale; with
    `action="change"` `Box(-1, 1, (1,))`, the change of the bitrate in force, from its half to its
    double on a logarithmic scale. The scenario's own limits hold too.

    Observation: `Box(0, 1, (6,))`, what a sender knows at the end of the interval:
    0 received rate (scale of the action), 1 mean queuing delay / 1 s, 2 loss ratio, 3 the bitrate in
    force (scale of the action), 4 feedback response time / 1 s, 5 sent rate (scale of the action).

    Reward: `reward(received, delay, loss)` with the observations 0, 1 and 2.

    Equal seeds and actions give equal episodes, to the byte.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        scenario: ScenarioLike = "demo/first-call",
        interval_ms: int = 60,
        others: str = "gcc",
        reward: Callable[[float, float, float], float] = literature_reward,
        action: str = "rate",
    ) -> None:
        if action not in ("rate", "change"):
            raise ValueError(f'action is "rate" or "change", not {action!r}')
        self._scenarios = scenarios(scenario)
        if not self._scenarios:
            raise ValueError("an environment needs a scenario")
        self._interval_ms = interval_ms
        self._others = others
        self._reward = reward
        self._session: Session | None = None
        self._changes = action == "change"
        lowest = -1.0 if self._changes else 0.0
        self.action_space = gymnasium.spaces.Box(lowest, 1.0, (1,), np.float32)
        self._bps = MIN_BPS
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (6,), np.float32)
        self._last = np.zeros(6, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Values, dict[str, Any]]:
        """Starts a call with a seed and a scenario that the environment's own random stream draws."""
        super().reset(seed=seed)
        self.close()
        scenario = self._scenarios[int(self.np_random.integers(len(self._scenarios)))]
        run_seed = int(self.np_random.integers(2**32))
        self._session = Session(scenario, run_seed, self._interval_ms, self._others)
        first = self._session.step()
        if first is None:
            raise ValueError(f"{scenario.id} is shorter than interval_ms")
        self._last = self.observe(first)
        self._bps = first.target_bps
        return self._last, {"scenario": scenario.id, "seed": run_seed}

    def step(self, action: Values) -> tuple[Values, float, bool, bool, dict[str, Any]]:
        """Sets the bitrate of the next interval."""
        if self._session is None:
            raise gymnasium.error.ResetNeeded("call reset() first")
        chosen = float(action[0])
        bps = (
            self._bps * CHANGE_MAX ** min(max(chosen, -1.0), 1.0)
            if self._changes
            else to_bps(chosen)
        )
        seen = self._session.step(bps)
        if seen is None:
            return self._last, 0.0, False, True, {}
        self._last = self.observe(seen)
        self._bps = seen.target_bps
        received, delay, loss = (float(value) for value in self._last[:3])
        return (
            self._last,
            float(self._reward(received, delay, loss)),
            False,
            False,
            {"time_us": seen.time_us},
        )

    def close(self) -> None:
        """Ends the call."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def result(self) -> RawRuns:
        """The measured run of an episode that has ended: Arrow tables `series`, `events`, `summaries`."""
        if self._session is None:
            raise gymnasium.error.ResetNeeded("call reset() first")
        return self._session.result()

    @staticmethod
    def observe(seen: Observation) -> Values:
        """The observation of what a session saw in an interval."""
        values = (
            to_unit(seen.received_bps),
            min(max(seen.queuing_delay_us, 0) / DELAY_MAX_US, 1.0),
            seen.loss_ratio,
            to_unit(seen.target_bps),
            min(max(seen.rtt_us, 0) / DELAY_MAX_US, 1.0),
            to_unit(seen.sent_bps),
        )
        return np.array(values, np.float32)


gymnasium.register(id="weir_rtc/Rtc-v0", entry_point=Rtc)
