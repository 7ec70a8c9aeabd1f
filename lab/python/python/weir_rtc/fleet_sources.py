"""Where dumps come from: files, folders, patterns and archives, of this machine or of a store.

A name with `://` is that of a store that fsspec knows, such as `s3://bucket/dumps/**`.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ._weir import WeirError
from .fleet_archives import (
    IN_ARCHIVE,
    MEMBER_BYTES_MAX,
    Member,
    is_archive,
    members_of,
    parts_of,
    why,
)

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

#: In the name of a store.
STORE = "://"
#: Files of a store that are fetched at the same time.
FETCHED = 32
#: Numbers that a table can hold.
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
#: The time of a dump that tells one that no table can hold.
NO_TIME = 0

#: What tells that a dump was read before: name, size, time of change.
Mark = tuple[str, int, int]


@dataclass
class Dump:
    """A dump that is not read yet."""

    source: str
    size: int
    modified_ns: int
    #: Of a member of an archive.
    content: bytes | None = None
    #: Why it cannot be read.
    error: str | None = None

    def mark(self) -> Mark:
        return (self.source, self.size, self.modified_ns)

    def fail(self, reason: str) -> Dump:
        """The same with this error, if it has none."""
        if self.error is None:
            self.error = f"{self.source}: {shown_name(reason)}"
        return self


def told_dump(name: str, size: int, modified_ns: Callable[[], int]) -> Dump:
    """A dump as a file or an archive tells of it. What a table cannot hold is its error."""
    shown = shown_name(name)
    dump = Dump(shown, min(max(size, INT64_MIN), INT64_MAX), NO_TIME)
    if shown != name:
        dump.fail("its name is not UTF-8: rename it")
    try:
        number = modified_ns()
    except (OverflowError, ValueError):
        return dump.fail("the time of its change is no time that a table can hold")
    if not INT64_MIN <= number <= INT64_MAX:
        return dump.fail(
            "the time of its change is beyond what a table can hold, the years 1678 to 2261"
        )
    dump.modified_ns = number
    return dump


def shown_name(name: str) -> str:
    """The name as text that every table and page can hold: a byte that is not UTF-8 becomes `\\xff`."""
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        # Halves of a pair that no byte became.
        return name.encode("utf-8", "backslashreplace").decode("utf-8")


def check_name(path: Path) -> None:
    """Raises `WeirError` for a name that neither a table nor a page can hold."""
    shown = shown_name(str(path))
    if shown != str(path):
        raise WeirError(f"{shown}: its name is not UTF-8: name another one")


@dataclass(frozen=True)
class LocalFile:
    """A file of this machine."""

    path: Path

    def name(self) -> str:
        return str(self.path)

    def dump(self) -> Dump:
        """What is known of it before it is read."""
        try:
            about = self.path.stat()
        except (OSError, ValueError) as error:
            return self._itself().fail(why(error))
        if not stat.S_ISREG(about.st_mode):
            # A pipe would wait for another program, and a device may have no end.
            return self._itself().fail("no regular file")
        return told_dump(self.name(), about.st_size, lambda: about.st_mtime_ns)

    def _itself(self) -> Dump:
        """A name that leads to no file, such as a link without its end."""
        try:
            about = self.path.lstat()
        except (OSError, ValueError):
            return told_dump(self.name(), 0, lambda: NO_TIME)
        return told_dump(self.name(), about.st_size, lambda: about.st_mtime_ns)

    def open(self) -> IO[bytes]:
        """Opens it. Raises `OSError` if it is no regular file, and never waits for another program."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        opened = os.fdopen(descriptor, "rb")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            opened.close()
            raise OSError("no regular file")
        return opened

    def read(self) -> bytes:
        """What is in it. Raises `OSError`, and `ValueError` if it is too large."""
        with self.open() as opened:
            content = opened.read(MEMBER_BYTES_MAX + 1)
        if len(content) > MEMBER_BYTES_MAX:
            raise ValueError(f"larger than {MEMBER_BYTES_MAX >> 20} MiB")
        return content


@dataclass(frozen=True)
class StoredFile:
    """A file of a store."""

    store: AbstractFileSystem
    path: str
    #: What the store tells of it.
    told: dict[str, Any]

    def name(self) -> str:
        return self.store.unstrip_protocol(self.path)

    def dump(self) -> Dump:
        """What is known of it before it is read."""
        return told_dump(self.name(), int(self.told.get("size") or 0), self._modified_ns)

    def _modified_ns(self) -> int:
        """Time of the last change in ns since 1970; 0 if the store does not tell it."""
        for key in ("LastModified", "mtime", "modified", "created"):
            when = self.told.get(key)
            if isinstance(when, datetime):
                return int(when.timestamp() * 1e9)
            if isinstance(when, (int, float)):
                return int(when * 1e9)
        return 0

    def open(self) -> IO[bytes]:
        return self.store.open(self.path, "rb")


def files_of(given: Iterable[str | os.PathLike[str]]) -> Iterator[LocalFile | StoredFile]:
    """The files that names, folders and patterns mean, each once."""
    seen: set[str] = set()
    for one in given:
        text = os.fspath(one)
        for file in _stored(text) if STORE in text else _local(text):
            if file.name() not in seen:
                seen.add(file.name())
                yield file


def _local(text: str) -> Iterator[LocalFile]:
    found: Iterable[str] = [text]
    if not os.path.exists(text):
        found = sorted(glob.glob(text, recursive=True))
        if not found:
            raise WeirError(f"{text}: no such file, folder or pattern with a match")
    for name in found:
        for path in _below(Path(name)):
            yield LocalFile(path)


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(it for it in folders if not it.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(folder) / name


def _stored(text: str) -> Iterator[StoredFile]:
    try:
        import fsspec
    except ImportError:
        raise WeirError(f"{text} needs fsspec: pip install 'weir-rtc[store]'") from None
    try:
        store, path = fsspec.core.url_to_fs(text)
        if any(it in path for it in "*?["):
            found = store.glob(path, detail=True)
        else:
            found = store.find(path, detail=True)
    # Each store has errors of its own.
    except Exception as error:  # noqa: BLE001
        raise WeirError(f"{text}: {error or type(error).__name__}") from None
    files = {name: told for name, told in sorted(found.items()) if told["type"] == "file"}
    if not files:
        raise WeirError(f"{text}: no such file, folder or pattern with a match")
    for name, told in files.items():
        if not any(part.startswith(".") for part in name[len(path.split("*")[0]) :].split("/")):
            yield StoredFile(store, name, told)


def dumps_of(
    files: Iterable[LocalFile | StoredFile], is_known: Callable[[Mark], bool]
) -> Iterator[Dump | None]:
    """The dumps of the files and of the archives among them; `None` for each one that is known."""
    waiting: list[tuple[StoredFile, Dump]] = []
    for file in files:
        dump = file.dump()
        if dump.error is None and is_archive(dump.source):
            yield from _of_archive(file, dump, is_known)
        elif is_known(dump.mark()):
            yield None
        elif dump.error is not None or isinstance(file, LocalFile):
            yield dump
        else:
            waiting.append((file, dump))
        if len(waiting) == FETCHED:
            yield from _fetched(waiting)
            waiting = []
    yield from _fetched(waiting)


def _of_archive(
    file: LocalFile | StoredFile, whole: Dump, is_known: Callable[[Mark], bool]
) -> Iterator[Dump | None]:
    """The dumps in an archive. If it is damaged, what came before is there, and it is a row itself."""
    try:
        with file.open() as opened:
            for member in members_of(whole.source, opened):
                dump = told_dump(
                    f"{whole.source}{IN_ARCHIVE}{member.name}", member.size, member.version_ns
                )
                yield None if is_known(dump.mark()) else _read(dump, member)
    # The modules that unpack raise errors of many kinds for what is damaged.
    except Exception as error:  # noqa: BLE001
        yield None if is_known(whole.mark()) else whole.fail(why(error))


def _read(dump: Dump, member: Member) -> Dump:
    """The dump with its content."""
    if dump.error is not None:
        return dump
    if member.size > MEMBER_BYTES_MAX:
        return dump.fail(f"larger than {MEMBER_BYTES_MAX >> 20} MiB: unpack it")
    try:
        dump.content = member.read()
    except Exception as error:
        if not member.stands_alone:
            # The rest of the archive cannot be read. When it is whole, this member is to be read again.
            raise
        return dump.fail(why(error))
    return dump


def content_of(source: str) -> bytes:
    """What is in a member of an archive or a file of a store, by the name of a dump. Raises `WeirError`."""
    archive, wanted = parts_of(source)
    file: LocalFile | StoredFile = LocalFile(Path(archive))
    try:
        if STORE in archive:
            [file] = files_of([archive])
        with file.open() as opened:
            if wanted is None:
                return opened.read(MEMBER_BYTES_MAX)
            for member in members_of(archive, opened):
                if member.name == wanted and member.size <= MEMBER_BYTES_MAX:
                    return member.read()
    except FileNotFoundError:
        raise WeirError(f"{source}: no such file") from None
    except Exception as error:  # noqa: BLE001 - as above
        raise WeirError(f"{source}: {why(error)}") from None
    raise WeirError(f"{source}: there is no such member any more")


def kept_content(source: str) -> bytes | None:
    """The same, and nothing of a plain file, which is read by its name."""
    if parts_of(source)[1] is None and STORE not in source:
        return None
    return content_of(source)


def _fetched(files: list[tuple[StoredFile, Dump]]) -> Iterator[Dump]:
    """The dumps with their contents, which are fetched together: a store takes long to answer."""
    wanted: dict[int, tuple[AbstractFileSystem, list[tuple[str, Dump]]]] = {}
    for file, dump in files:
        if dump.size > MEMBER_BYTES_MAX:
            dump.fail(f"larger than {MEMBER_BYTES_MAX >> 20} MiB: fetch it first")
        else:
            wanted.setdefault(id(file.store), (file.store, []))[1].append((file.path, dump))
    for store, some in wanted.values():
        contents = store.cat([path for path, _ in some], on_error="return")
        for path, dump in some:
            content = contents if isinstance(contents, bytes) else contents.get(path)
            if isinstance(content, bytes):
                dump.content = content
            else:
                dump.fail(str(content or "is not there any more"))
    for _, dump in files:
        yield dump
