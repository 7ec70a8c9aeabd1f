"""The reports of single calls that a fleet's report shows."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from . import _weir
from ._weir import WeirError
from .fleet_archives import parts_of
from .fleet_sources import kept_content


@dataclass(frozen=True)
class Page:
    """The report of one call."""

    #: Where it is, as seen from the fleet's report. `None` if it could not be written.
    link: str | None
    why_not: str | None


class Pages:
    """Reports of calls in a folder, each written once."""

    def __init__(self, folder: Path, report: Path) -> None:
        self.folder = folder
        # A browser finds them from where the fleet's report is, wherever both are moved together.
        self.beside = os.path.relpath(folder.resolve(), report.resolve().parent)
        self.written: dict[str, Page] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def of(self, call_id: str, source: str) -> Page:
        """The report of a call. A dump that is gone, or has no stream, has none."""
        if call_id not in self.written:
            self.written[call_id] = self._write(call_id, source)
        return self.written[call_id]

    def _write(self, call_id: str, source: str) -> Page:
        # The name of a call is a hash of its dump, so it is a name for a file as well.
        name = f"{call_id}.html"
        try:
            with tempfile.TemporaryDirectory() as records:
                is_written = _weir.fleet_call_report(
                    source, kept_content(source), Path(records), self.folder / name
                )
        except WeirError as error:
            return Page(None, str(error))
        if not is_written:
            return Page(None, "its dump has no stream of video or audio")
        return Page(quote(f"{Path(self.beside).as_posix()}/{name}"), None)


#: The report that a command writes.
REPORT = "call.html"


def command(source: str) -> str:
    """What opens the one-call report of a dump."""
    file, member = parts_of(source)
    if member is None:
        return _weir.command_line("weir analyze", [file], paths=[("-o", REPORT)])
    return _weir.unpacking(file, member, REPORT)
