"""The Parquet files of a sweep: what they must contain, and how they are read.

A folder may come from someone else, or contain what no sweep wrote. What names a file or becomes a path is checked here.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from . import _weir
from ._weir import WeirError, __version__

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

#: Key of a file's metadata: the text of its scenario, before parameters changed it.
SCENARIO = b"weir.scenario"
#: Key of a file's metadata: hashes of the trace files that the scenario names, as JSON.
TRACES = b"weir.traces"
#: Key of a file's metadata: the program that made its runs.
PROGRAM = b"weir.program"
#: Folder of these trace files, below that of the sweep; their names are their hashes.
TRACE_FILES = "traces"
#: Folder of the series, beside the results of a scenario.
SERIES = "series"
#: Columns that say which run and flow a row is of, with their types.
COLUMNS = {
    "scenario": "string",
    "controller": "string",
    "seed": "uint64",
    "flow": "string",
    "kind": "string",
    "section": "string",
    "key": "string",
}
#: A run's key, and the name of a trace file.
HASH = re.compile("[0-9a-f]{32}")
#: What a user may write of a key.
KEY_BEGIN = re.compile("[0-9a-f]{1,32}")
#: Digits of the program's hash that are shown.
PROGRAM_SHOWN = 12
#: The program of files from before they named it.
UNNAMED = "an earlier weir"


def hash_of(text: str) -> str:
    """Hash of a trace file."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@functools.cache
def program() -> str:
    """Hash of the compiled simulator."""
    return hashlib.sha256(Path(_weir.__file__).read_bytes()).hexdigest()


def program_name(binary: str) -> str:
    """The program with this hash, as a file names it: two builds of one version are two programs."""
    return f"weir {__version__} ({binary[:PROGRAM_SHOWN]})"


def result_files(folder: Path) -> list[Path]:
    """The Parquet files of the results. The folder's name is no pattern."""
    return sorted(Path(folder).glob("*/*.parquet"))


def opened(file: Path, columns: Iterable[str] = COLUMNS) -> ParquetFile:
    """The file, which has these columns. Raises `WeirError` for one that no sweep wrote."""
    import pyarrow.parquet

    try:
        found = pyarrow.parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _foreign(file, _first_line(error)) from None
    schema = found.schema_arrow
    for name in columns:
        # A column that is there twice is none, either.
        kinds = [str(it.type) for it in schema if it.name == name]
        if kinds != [COLUMNS[name]]:
            raise _foreign(file, f"it has no column {name} of type {COLUMNS[name]}")
    return found


def read(file: Path, columns: list[str] | None = None) -> pyarrow.Table:
    """The file's rows. Raises `WeirError`."""
    import pyarrow

    found = opened(file, columns or COLUMNS)
    try:
        return found.read(columns)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _foreign(file, _first_line(error)) from None


def keys(files: Iterable[Path]) -> set[str]:
    """Keys of the runs that these files contain."""
    found: set[str] = set()
    for file in files:
        of_file = read(file, ["key"]).column("key").unique().to_pylist()
        found.update(key for key in of_file if key is not None)
    return found


def programs(files: Iterable[Path]) -> dict[str, Path]:
    """The programs that made these files, each with one of its files."""
    found: dict[str, Path] = {}
    for file in files:
        metadata = opened(file).schema_arrow.metadata or {}
        name = metadata.get(PROGRAM, UNNAMED.encode()).decode(errors="replace")
        found.setdefault(name, file)
    return found


def traces_of(folder: Path, metadata: dict[bytes, bytes]) -> dict[str, str]:
    """The trace files that a result names: contents by name.

    Raises `WeirError` for a file that is not the one whose hash the result has, so that a folder from someone else
    reads no other file of this machine.
    """
    try:
        hashes = json.loads(metadata.get(TRACES, b"{}"))
    except ValueError:
        hashes = None
    if not isinstance(hashes, dict):
        raise WeirError("the hashes of its trace files are no table")
    traces = {}
    for name, its_hash in hashes.items():
        if not isinstance(its_hash, str) or not HASH.fullmatch(its_hash):
            raise WeirError(f"the trace file {name!r} has no hash, but {its_hash!r}")
        file = folder / TRACE_FILES / its_hash
        content: str | None = None
        with contextlib.suppress(OSError, UnicodeDecodeError):
            # As bytes: a text would lose the ends of lines of other systems.
            content = file.read_bytes().decode()
        if content is None or hash_of(content) != its_hash:
            raise WeirError(f"{file} is missing or not the trace file {name!r} of the sweep")
        traces[name] = content
    return traces


def _foreign(file: Path, why: str) -> WeirError:
    return WeirError(f"{file} is no result of a sweep ({why}): remove it")


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
