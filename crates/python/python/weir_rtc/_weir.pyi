"""The compiled part of `weir_rtc`."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, final

__version__: str

class WeirError(Exception):
    """What the program `weir` would say in one line."""

class ArrowTable:
    """Any Arrow table: it has the Arrow PyCapsule interface."""

    num_rows: int
    column_names: list[str]
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Scenario:
    """A scenario: the network, the flows, and what is expected of them."""

    id: str
    text: str
    duration_s: float
    flows: list[str]
    def __init__(self, text: str, id: str = "python") -> None: ...

@final
class Runs:
    """The results of some runs."""

    series: ArrowTable
    events: ArrowTable
    summaries: ArrowTable
    def judgements(self) -> list[tuple[str, str, str, str, float | None]]: ...
    def json(self) -> list[str]: ...
    def __len__(self) -> int: ...

@final
class Observation:
    """What a sender knows at the end of an interval. Unknown times are -1."""

    time_us: int
    target_bps: float
    sent_bps: float
    received_bps: float
    queuing_delay_us: int
    rtt_us: int
    loss_ratio: float
    mark_ratio: float
    reports: int

@final
class Session:
    """A simulated call whose first media flow gets its bitrate step by step."""

    limits_bps: tuple[int, int]
    def __init__(self, scenario: Scenario, seed: int, interval_ms: int, others: str) -> None: ...
    def step(self, bitrate_bps: float | None = None) -> Observation | None: ...
    def result(self) -> Runs: ...
    def close(self) -> None: ...

def controllers() -> list[str]: ...
def catalogue() -> list[str]: ...
def series_columns() -> list[tuple[str, str, str]]: ...
def find(name: str) -> list[Scenario]: ...
def toml_of_json(json: str) -> str: ...
def run(
    scenarios: Sequence[Scenario],
    controllers: Sequence[str | type],
    seeds: Sequence[int],
    jobs: int,
    out: PathLike | None,
) -> Runs: ...
def report(folders: Sequence[str | PathLike], file: str | PathLike) -> None: ...
def sweep_report(json: str, file: str | PathLike) -> None: ...
def compare(before: Runs | str | PathLike, after: Runs | str | PathLike) -> list[str]: ...
def metric(path: str) -> tuple[str, str, str] | None: ...
def check_controller(controller: Any, scripts: int, seed: int) -> None: ...
