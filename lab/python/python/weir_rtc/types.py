"""Types of arguments and results, for annotations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, runtime_checkable

if TYPE_CHECKING:
    from ._weir import Scenario
    from .controller import Controller

__all__ = ["ArrowTable", "Buildable", "ControllerLike", "Judgement", "Progress", "ScenarioLike"]

#: What `weir_rtc.scenarios` understands.
ScenarioLike: TypeAlias = (
    "Scenario | Buildable | Mapping[str, Any] | str | os.PathLike[str] | Iterable[ScenarioLike]"
)
#: A name, names such as `"gcc,nada"`, `"library"`, `"all"`, a subclass of `Controller`, or an iterable of these.
ControllerLike: TypeAlias = "str | type[Controller] | Iterable[str | type[Controller]]"
#: Called with the numbers of finished and of all runs.
Progress: TypeAlias = "Callable[[int, int], object]"


@runtime_checkable
class Buildable(Protocol):
    """What makes a scenario, as `weir_rtc.Builder` does."""

    def build(self) -> Scenario: ...


class ArrowTable(Protocol):
    """Any Arrow table: it has the Arrow PyCapsule interface."""

    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Judgement(TypedDict):
    """What a scenario expects of a controller, and what came of it."""

    scenario: str
    controller: str
    text: str
    #: Such as `"holds"` or `"known miss"`.
    outcome: str
    #: `None` if there is no value.
    measured: float | None
