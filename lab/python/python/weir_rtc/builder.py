"""Builds scenarios step by step, instead of as a text or a dict."""

from __future__ import annotations

import copy
import json
import tomllib
from typing import TYPE_CHECKING, Any

from . import _weir
from ._weir import Scenario
from .space import changed

if TYPE_CHECKING:
    from .types import ScenarioLike


class Builder:
    """A scenario that is made or changed step by step; each step returns a new builder.

    >>> import weir_rtc
    >>> call = (
    ...     weir_rtc.Builder("a slow uplink", duration="10s")
    ...     .up(capacity="1Mbps", delay="25ms", queue="300ms")
    ...     .down(delay="25ms")
    ...     .flow(max_bitrate="2500kbps")
    ... )
    >>> len(weir_rtc.run(call, "gcc"))
    1
    >>> farther = weir_rtc.Builder.of("lund/rmcat-ns3").set("network.up.delay", "150ms")
    >>> farther.build().id
    'lund/rmcat-ns3'

    Keys and values are those of the scenario's file. A wrong one is a `WeirError` of `build`.
    """

    def __init__(
        self, title: str, *, duration: str = "60s", id: str = "python", **keys: Any
    ) -> None:
        self._id = id
        # Read from the current folder.
        self._traces: dict[str, str] | None = None
        self._document = {
            "title": title,
            "source": "weir_rtc.Builder",
            "description": title,
            "duration": duration,
            **keys,
        }

    @classmethod
    def of(cls, scenario: ScenarioLike) -> Builder:
        """The builder of a scenario that is there. See `weir_rtc.scenarios`; it must mean one."""
        from . import WeirError, scenarios

        found = scenarios(scenario)
        if len(found) != 1:
            raise WeirError(f"{scenario} means {len(found)} scenarios, not one")
        made = cls("")
        made._id, made._document = found[0].id, tomllib.loads(found[0].whole_text())
        made._traces = found[0].traces or None
        return made

    def set(self, path: str, value: Any) -> Builder:
        """Sets the key at a path, such as `network.up.delay` or `flow.0.max_bitrate`."""
        made = copy.copy(self)
        made._document = changed(self._document, {path: value})
        return made

    def up(self, **keys: Any) -> Builder:
        """Keys of the network on the way from the first peer to the second."""
        return self._direction("up", keys)

    def down(self, **keys: Any) -> Builder:
        """Keys of the network on the way back."""
        return self._direction("down", keys)

    def flow(self, **keys: Any) -> Builder:
        """One more flow."""
        return self._more("flow", keys)

    def section(self, name: str, start: str, end: str) -> Builder:
        """A part of the run that has metrics of its own."""
        return self._more("section", {"name": name, "from": start, "to": end})

    def build(self) -> Scenario:
        """The scenario. Raises `WeirError` with the line of what is wrong."""
        return Scenario(self.toml(), self._id, traces=self._traces)

    def toml(self) -> str:
        """The text of its file."""
        return _weir.toml_of_json(json.dumps(self._document))

    def _direction(self, name: str, keys: dict[str, Any]) -> Builder:
        made = self
        for key, value in keys.items():
            made = made.set(f"network.{name}.{key}", value)
        return made

    def _more(self, name: str, keys: dict[str, Any]) -> Builder:
        made = copy.copy(self)
        made._document = copy.deepcopy(self._document)
        made._document.setdefault(name, []).append(keys)
        return made
