"""Dumps of many calls: reads them once each, and keeps what was found as Parquet files.

A lake is a folder with the tables `calls`, `streams` and `findings`, and `seconds` on request
(docs/reference/fleet-schema.md), each a folder of Parquet files. A part of the lake is three or four files of one name.
That of the calls is written last: parts without it do not count, so whatever ends the program leaves a whole lake.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from . import _weir
from ._weir import WeirError, __version__
from .fleet_archives import why
from .fleet_sources import Dump, LocalFile, Mark, check_name, dumps_of, files_of
from .pool import AHEAD, cores, hands_of

if TYPE_CHECKING:
    import pyarrow

#: Version of the tables. It grows when a column changes its meaning or goes; new ones may come without.
SCHEMA = "1"
#: Keys of a file's metadata.
SCHEMA_KEY, PROGRAM_KEY = b"weir.fleet.schema", b"weir.program"
TABLES = ("calls", "streams", "findings")
#: The table that is made on request.
SECONDS = "seconds"
#: Columns of each table with their Arrow types.
COLUMNS = {
    "calls": {
        "source": "string",
        "source_bytes": "int64",
        "source_modified_ns": "int64",
        "call_id": "string",
        "status": "string",
        "error": "string",
        "format": "string",
        "browser": "string",
        "duration_s": "double",
        "verdict": "string",
        "main_cause": "string",
        "bad_s": "double",
        **{f"bad_{cause}_s": "double" for cause in _weir.fleet_causes()},
        "connection_failed": "bool",
        "relay_or_tcp": "bool",
        "connections": "uint64",
        "streams": "uint64",
        "good_ratio": "double",
        "no_picture_ratio": "double",
        "late_ratio": "double",
        "freezes": "uint64",
        "frozen_s": "double",
        "concealed_ratio": "double",
        "base_rtt_ms": "double",
        "uplink_capacity_kbps": "double",
        "downlink_capacity_kbps": "double",
    },
    "streams": {
        "call_id": "string",
        "stream": "string",
        "direction": "string",
        "kind": "string",
        "duration_s": "double",
        "rate_kbps": "double",
        "target_kbps": "double",
        "rtt_ms": "double",
        "loss_ratio": "double",
        "frames_per_second": "double",
        "height_px": "uint64",
        "jitter_buffer_ms": "double",
        "concealed_ratio": "double",
    },
    "findings": {
        "call_id": "string",
        "rank": "uint64",
        "stream": "string",
        "part": "string",
        "rule": "string",
        "cause": "string",
        "from_s": "double",
        "to_s": "double",
        "says": "string",
        "rate_kbps": "double",
        "rtt_ms": "double",
        "loss_ratio": "double",
    },
    SECONDS: {
        "call_id": "string",
        "stream": "string",
        "second": "uint64",
        "rate_kbps": "double",
        "target_kbps": "double",
        "estimate_kbps": "double",
        "rtt_ms": "double",
        "loss_ratio": "double",
        "frames_per_second": "double",
        "height_px": "uint64",
        "jitter_buffer_ms": "double",
        "frozen_s": "double",
    },
}
#: Columns of a call that a duplicate keeps.
OWN = ("source", "source_bytes", "source_modified_ns", "call_id", "status")
#: Dumps that are analyzed together, and the bytes of members among them. Two such batches are in memory.
BATCH_DUMPS, BATCH_BYTES = 64, 24 << 20
#: Bytes of a batch that is sent to another machine, and of all that are there.
SENT_BYTES, SENT_BYTES_MAX = 4 << 20, 256 << 20
#: How often a batch is tried again after a worker was lost.
RETRIES = 3
#: Calls of a part, and seconds after which a smaller one is written.
PART_CALLS, PART_S = 5000, 15.0
#: How often it is looked whether a signal came, and how long the dumps under way may take after one. A program that is
#: told to end must do so within a second.
LOOK_S, GRACE_S = 0.05, 0.4
UNFINISHED = ".unfinished"
LOCK = ".lock"


@dataclass
class Counts:
    """What a run of `analyze` did."""

    analyzed: int = 0
    failed: int = 0
    duplicate: int = 0
    #: Captures that are sound and have no call.
    no_call: int = 0
    #: Dumps that the lake had before.
    kept: int = 0
    took_s: float = 0.0
    is_stopped: bool = False
    #: Whether a thread was left behind when it was stopped.
    is_given_up: bool = False

    def words(self) -> str:
        new = self.analyzed + self.failed + self.duplicate + self.no_call
        rate = new / self.took_s if self.took_s > 0 else 0.0
        return (
            f"{new} new dumps in {self.took_s:.1f} s ({rate:.0f}/s): {self.analyzed} analyzed, {self.failed} failed, "
            f"{self.duplicate} duplicate, {self.no_call} without a call; {self.kept} were there before"
        )


def tables_with(has_seconds: bool) -> tuple[str, ...]:
    """The tables of a lake, that of the calls first."""
    return (*TABLES, SECONDS) if has_seconds else TABLES


def schema(table: str) -> pyarrow.Schema:
    """The columns of a table."""
    import pyarrow

    fields = [(name, pyarrow.type_for_alias(kind)) for name, kind in COLUMNS[table].items()]
    return pyarrow.schema(fields, metadata={SCHEMA_KEY: SCHEMA, PROGRAM_KEY: f"weir {__version__}"})


@dataclass
class _Batch:
    dumps: list[Dump] = field(default_factory=list)
    kept: int = 0


def _next_batch(dumps: Iterator[Dump | None], bytes_max: int = BATCH_BYTES) -> _Batch:
    """Some dumps, none at the end."""
    batch, size = _Batch(), 0
    while len(batch.dumps) < BATCH_DUMPS and size < bytes_max:
        try:
            dump = next(dumps)
        except StopIteration:
            break
        if dump is None:
            batch.kept += 1
            continue
        batch.dumps.append(dump)
        size += len(dump.content or b"")
    return batch


class Lake:
    """The tables in a folder."""

    def __init__(self, folder: Path, has_seconds: bool = False):
        self.folder = folder
        self.names = tables_with(has_seconds)
        self._tables: dict[str, list[pyarrow.Table]] = {table: [] for table in self.names}
        self._calls = 0
        self._since = time.monotonic()
        self._marks: set[int] = set()
        self._ids: set[int] = set()
        self._next = 1
        self._lock = threading.RLock()
        self._is_closed = False

    def open(self) -> None:
        """Removes what is not finished, and reads which dumps are there."""
        import pyarrow.parquet

        for table in self.names:
            (self.folder / table).mkdir(parents=True, exist_ok=True)
        calls = {file.name for file in (self.folder / "calls").glob("*.parquet")}
        for table in self.names:
            for file in (self.folder / table).iterdir():
                is_orphan = file.suffix == ".parquet" and file.name not in calls
                # Another program may write by now, if this one was stopped.
                if (is_orphan or file.name.endswith(UNFINISHED)) and not self._is_closed:
                    file.unlink()
        for file in sorted((self.folder / "calls").glob("*.parquet")):
            check_version(file)
            names = ["source", "source_bytes", "source_modified_ns", "call_id", "status"]
            for row in pyarrow.parquet.read_table(file, columns=names).to_pylist():
                self._marks.add(
                    hash((row["source"], row["source_bytes"], row["source_modified_ns"]))
                )
                if row["status"] == "analyzed":
                    self._ids.add(int(row["call_id"], 16))
            with contextlib.suppress(ValueError):
                self._next = max(self._next, int(file.stem.rpartition("-")[2]) + 1)

    def is_known(self, mark: Mark) -> bool:
        return hash(mark) in self._marks

    def add(self, dumps: list[Dump], found: list[pyarrow.Table], counts: Counts) -> None:
        """Keeps the rows of these dumps."""
        with self._lock:
            if not self._is_closed:
                self._add(dumps, found, counts)

    def _add(self, dumps: list[Dump], found: list[pyarrow.Table], counts: Counts) -> None:
        tables = dict(zip(self.names, found, strict=True))
        calls, repeated = self._without_repeated(tables["calls"])
        for status in calls.column("status").to_pylist():
            setattr(counts, status, getattr(counts, status) + 1)
        self._tables["calls"].append(calls)
        for table in self.names[1:]:
            self._tables[table].append(_not_of(tables[table], repeated))
        self._marks.update(hash(dump.mark()) for dump in dumps)
        self._calls += len(dumps)
        if self._calls >= PART_CALLS or time.monotonic() - self._since > PART_S:
            self.flush()

    def _without_repeated(self, calls: pyarrow.Table) -> tuple[pyarrow.Table, list[str]]:
        """Marks dumps whose content an earlier batch had as duplicates."""
        import pyarrow

        rows, repeated = calls.to_pylist(), []
        for row in rows:
            if row["status"] != "analyzed":
                continue
            number = int(row["call_id"], 16)
            if number in self._ids:
                repeated.append(row["call_id"])
                row["status"] = "duplicate"
                row.update({name: None for name in row if name not in OWN})
            self._ids.add(number)
        if not repeated:
            return calls, repeated
        return pyarrow.Table.from_pylist(rows, schema=calls.schema), repeated

    def close(self) -> None:
        """Writes what is kept. What comes later is not added."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self.flush()

    def flush(self) -> None:
        """Writes what is kept as a part."""
        if self._calls:
            name = f"part-{self._next:06}.parquet"
            try:
                self._write(name)
            except BaseException:
                # On a full disk, the space of what is not finished is needed.
                for table in self.names:
                    self._unfinished(table, name).unlink(missing_ok=True)
                raise
            self._next += 1
        self._tables = {table: [] for table in self.names}
        self._calls, self._since = 0, time.monotonic()

    def _unfinished(self, table: str, name: str) -> Path:
        return self.folder / table / f".{name}{UNFINISHED}"

    def _write(self, name: str) -> None:
        import pyarrow
        import pyarrow.parquet

        for table in reversed(self.names):
            whole = pyarrow.concat_tables(self._tables[table])
            pyarrow.parquet.write_table(whole, self._unfinished(table, name), compression="zstd")
        for table in reversed(self.names):
            self._unfinished(table, name).rename(self.folder / table / name)


def tables_of(dumps: list[Dump], jobs: int = 1, has_seconds: bool = False) -> list[pyarrow.Table]:
    """The rows of the dumps in each table, analyzed on this many threads."""
    import pyarrow

    readable = [it for it in dumps if it.error is None]
    made = _weir.fleet_tables([(it.source, it.content) for it in readable], jobs, has_seconds)
    tables = [pyarrow.table(it) for it in made]
    broken = [it for it in dumps if it.error is not None]
    if tables[0].num_columns:
        for place, (name, values) in enumerate(_own_columns(readable)):
            tables[0] = tables[0].add_column(place, name, pyarrow.array(values))
    names = tables_with(has_seconds)
    found = [_as_in(table, name) for table, name in zip(tables, names, strict=True)]
    if broken:
        rows = {name: pyarrow.array(values) for name, values in _own_columns(broken)}
        rows |= {"status": pyarrow.array(["failed"] * len(broken))}
        rows |= {"error": pyarrow.array([it.error for it in broken])}
        found[0] = pyarrow.concat_tables([found[0], _as_in(pyarrow.table(rows), "calls")])
    return found


def _own_columns(dumps: list[Dump]) -> list[tuple[str, list]]:
    return [
        ("source", [it.source for it in dumps]),
        ("source_bytes", [it.size for it in dumps]),
        ("source_modified_ns", [it.modified_ns for it in dumps]),
    ]


def _as_in(table: pyarrow.Table, name: str) -> pyarrow.Table:
    """The table with all columns of its schema, in their order; missing ones are null."""
    import pyarrow

    wanted = schema(name)
    if not table.num_rows:
        return wanted.empty_table()
    unknown = set(table.column_names) - set(wanted.names)
    assert not unknown, f"columns that the schema of {name} lacks: {unknown}"
    columns = [
        table.column(it.name).cast(it.type)
        if it.name in table.column_names
        else pyarrow.nulls(table.num_rows, it.type)
        for it in wanted
    ]
    return pyarrow.table(columns, schema=wanted)


def _not_of(table: pyarrow.Table, calls: list[str]) -> pyarrow.Table:
    import pyarrow
    import pyarrow.compute

    if not calls:
        return table
    known = pyarrow.compute.is_in(table.column("call_id"), pyarrow.array(calls))
    return table.filter(pyarrow.compute.invert(known))


def check_version(file: Path) -> None:
    """Raises `WeirError` if a file is not of this version of the tables."""
    import pyarrow
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_schema(file).metadata or {}
    except pyarrow.ArrowInvalid as error:
        raise WeirError(f"{file}: no Parquet file: {error}") from None
    found = metadata.get(SCHEMA_KEY, b"none").decode(errors="replace")
    if found != SCHEMA:
        raise WeirError(
            f"{file} has tables of version {found}, and this is version {SCHEMA}: analyze into another folder"
        )


def analyze(
    files: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    seconds: bool = False,
    progress: Callable[[Counts], None] | None = None,
) -> Counts:
    """Analyzes the dumps of files, folders, patterns and archives into the lake `out`, each once.

    `workers`: threads of this machine. `scheduler`: address of a Dask scheduler such as `tcp://10.0.0.1:8786`, whose
    workers analyze instead; they have the same wheel, and get the dumps through the scheduler. `seconds`: also a row for each
    second of each stream. `progress` is called by another thread. A dump that cannot be read is a row with its error.
    Ctrl-C and SIGTERM end within a second, and the next call goes on.
    Raises `WeirError` if a name means no file, if the folder has tables of another version, or if another program
    writes into it.
    """
    begin, counts, lake = time.monotonic(), Counts(), Lake(Path(out), seconds)
    check_name(lake.folder)
    found = list(files_of(files)) if not isinstance(files, str) else list(files_of([files]))
    lake.folder.mkdir(parents=True, exist_ok=True)
    with _alone(lake.folder), _stops() as is_stopped:
        drive = _Drive(lake, counts, begin, seconds, progress, is_stopped)

        def work() -> None:
            lake.open()
            dumps = dumps_of(found, lake.is_known)
            if scheduler is None:
                drive.here(dumps, workers or cores())
            else:
                drive.elsewhere(_with_content(dumps), scheduler)

        try:
            counts.is_given_up = not _done_or_given_up(work, is_stopped)
        except Exception:
            # What is known is kept, so that the next call goes on behind it.
            lake.close()
            raise
        lake.close()
        counts.is_stopped = is_stopped()
    counts.took_s = time.monotonic() - begin
    return counts


def _done_or_given_up(work: Callable[[], None], is_stopped: Callable[[], bool]) -> bool:
    """Does the work, and returns whether it came to its end.

    It has a thread of its own, which a signal leaves alone with what takes too long, such as a file on a disk that
    does not answer.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive() and not is_stopped():
        thread.join(LOOK_S)
    if is_stopped():
        thread.join(GRACE_S)
    if errors:
        raise errors[0]
    return not thread.is_alive()


class _Ahead:
    """Unpacks the next batch while this one is analyzed."""

    def __init__(self, dumps: Iterator[Dump | None]):
        self._dumps = dumps
        self._made: queue.SimpleQueue[_Batch | BaseException] = queue.SimpleQueue()

    def start(self) -> None:
        # Nobody waits for a thread that is given up.
        threading.Thread(target=self._make, daemon=True).start()

    def _make(self) -> None:
        try:
            self._made.put(_next_batch(self._dumps))
        except BaseException as error:  # noqa: BLE001 - raised by `wait`
            self._made.put(error)

    def wait(self) -> _Batch:
        """The batch that was begun. Raises what was raised while it was made."""
        made = self._made.get()
        if isinstance(made, BaseException):
            raise made
        return made


@dataclass
class _Drive:
    """Analyzes batch after batch into a lake."""

    lake: Lake
    counts: Counts
    begin: float
    has_seconds: bool
    progress: Callable[[Counts], None] | None
    is_stopped: Callable[[], bool]

    def here(self, dumps: Iterator[Dump | None], threads: int) -> None:
        """On threads of this process. One more unpacks the next batch while this one is analyzed."""
        coming = _Ahead(dumps)
        coming.start()
        while True:
            batch = coming.wait()
            self.counts.kept += batch.kept
            if not batch.dumps or self.is_stopped():
                return
            coming.start()
            self._add(batch.dumps, tables_of(batch.dumps, threads, self.has_seconds))

    def elsewhere(self, dumps: Iterator[Dump | None], scheduler: str) -> None:
        """By the workers of a Dask scheduler, with a bounded number of bytes under way."""
        sent: dict[int, int] = {}
        is_read = False
        work = functools.partial(tables_of, has_seconds=self.has_seconds)
        with hands_of(work, scheduler, None, RETRIES) as hands:
            while True:
                while (
                    not is_read
                    and len(sent) < AHEAD * hands.threads()
                    and sum(sent.values()) < SENT_BYTES_MAX
                ):
                    batch = _next_batch(dumps, SENT_BYTES)
                    self.counts.kept += batch.kept
                    is_read = not batch.dumps or self.is_stopped()
                    if not is_read:
                        sent[id(batch.dumps)] = sum(len(it.content or b"") for it in batch.dumps)
                        hands.submit(batch.dumps)
                if not sent:
                    return
                done, tables = hands.next()
                del sent[id(done)]
                self._add(done, tables)

    def _add(self, dumps: list[Dump], tables: list[pyarrow.Table]) -> None:
        self.lake.add(dumps, tables, self.counts)
        self.counts.took_s = time.monotonic() - self.begin
        if self.progress is not None:
            self.progress(self.counts)


def _with_content(dumps: Iterator[Dump | None]) -> Iterator[Dump | None]:
    """The dumps with what is in their files: a worker on another machine cannot open them."""
    for dump in dumps:
        if dump is not None and dump.content is None and dump.error is None:
            try:
                dump.content = LocalFile(Path(dump.source)).read()
            except (OSError, ValueError) as error:
                dump.fail(why(error))
        yield dump


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the folder. The lock ends with the process, however that ends."""
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WeirError(
                f"another program writes into {folder}: wait until it has ended"
            ) from None
        yield


@contextlib.contextmanager
def _stops() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM came meanwhile. The second one ends at once."""
    came = []

    def note(number: int, _frame: object) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {}
    # Only the main thread may set handlers.
    with contextlib.suppress(ValueError):
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, note)
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
