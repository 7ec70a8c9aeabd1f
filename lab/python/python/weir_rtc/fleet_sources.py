"""Where dumps come from: files, folders, patterns and archives, of this machine or of a store.

A name with `://` is that of a store that fsspec knows, such as `s3://bucket/dumps/**`.
"""

from __future__ import annotations

import glob
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ._weir import WeirError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

TAR_ENDINGS = (".tar", ".tar.gz", ".tgz")
ZIP_ENDING = ".zip"
#: Between an archive's name and that of a member.
IN_ARCHIVE = "!"
#: A larger member of an archive, or file of a store, is not read.
MEMBER_BYTES_MAX = 64 << 20
#: In the name of a store.
STORE = "://"
#: Files of a store that are fetched at the same time.
FETCHED = 32

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


@dataclass(frozen=True)
class LocalFile:
    """A file of this machine."""

    path: Path

    def name(self) -> str:
        return str(self.path)

    def about(self) -> tuple[int, int]:
        """Size in bytes, and time of the last change in ns since 1970."""
        about = self.path.stat()
        return about.st_size, about.st_mtime_ns

    def open(self) -> IO[bytes]:
        return self.path.open("rb")


@dataclass(frozen=True)
class StoredFile:
    """A file of a store."""

    store: AbstractFileSystem
    path: str
    #: What the store tells of it.
    told: dict[str, Any]

    def name(self) -> str:
        return self.store.unstrip_protocol(self.path)

    def about(self) -> tuple[int, int]:
        """Size in bytes, and time of the last change in ns since 1970; 0 if the store does not tell it."""
        size = int(self.told.get("size") or 0)
        for key in ("LastModified", "mtime", "modified", "created"):
            when = self.told.get(key)
            if isinstance(when, datetime):
                return size, int(when.timestamp() * 1e9)
            if isinstance(when, (int, float)):
                return size, int(when * 1e9)
        return size, 0

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
        try:
            size, modified_ns = file.about()
        except OSError as error:
            yield Dump(file.name(), 0, 0, error=f"{file.name()}: {error.strerror}")
            continue
        dump = Dump(file.name(), size, modified_ns)
        lower = file.name().lower()
        try:
            if lower.endswith(TAR_ENDINGS):
                yield from _of_tar(file, is_known)
            elif lower.endswith(ZIP_ENDING):
                yield from _of_zip(file, is_known)
            elif is_known(dump.mark()):
                yield None
            elif isinstance(file, LocalFile):
                yield dump
            else:
                waiting.append((file, dump))
        except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, ValueError) as error:
            # What came before the broken place is there; the archive itself is a row with the error.
            dump.error = f"{file.name()}: {error}"
            yield None if is_known(dump.mark()) else dump
        if len(waiting) == FETCHED:
            yield from _fetched(waiting)
            waiting = []
    yield from _fetched(waiting)


def content_of(source: str) -> bytes:
    """What is in a member of an archive or a file of a store, by the name of a dump.

    Raises what the archive or the store raises if it is not there any more.
    """
    archive, mark, member = source.partition(IN_ARCHIVE)
    [file] = files_of([archive])
    with file.open() as opened:
        if not mark:
            return opened.read()
        if archive.lower().endswith(ZIP_ENDING):
            with zipfile.ZipFile(opened) as read:
                return read.read(member)
        with tarfile.open(fileobj=opened, mode="r:*") as packed:
            content = packed.extractfile(member)
            if content is None:
                raise KeyError(f"{source} is no file")
            return content.read()


def kept_content(source: str) -> bytes | None:
    """The same, and nothing of a plain file, which is read by its name. Raises `WeirError` if it is not there."""
    if IN_ARCHIVE not in source and STORE not in source:
        return None
    try:
        return content_of(source)
    except (OSError, KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise WeirError(f"{source}: {error}") from None


def _fetched(files: list[tuple[StoredFile, Dump]]) -> Iterator[Dump]:
    """The dumps with their contents, which are fetched together: a store takes long to answer."""
    wanted: dict[int, tuple[AbstractFileSystem, list[tuple[str, Dump]]]] = {}
    for file, dump in files:
        if dump.size > MEMBER_BYTES_MAX:
            dump.error = f"{dump.source}: larger than {MEMBER_BYTES_MAX >> 20} MiB: fetch it first"
        else:
            wanted.setdefault(id(file.store), (file.store, []))[1].append((file.path, dump))
    for store, some in wanted.values():
        contents = store.cat([path for path, _ in some], on_error="return")
        for path, dump in some:
            content = contents if isinstance(contents, bytes) else contents.get(path)
            if isinstance(content, bytes):
                dump.content = content
            else:
                dump.error = f"{dump.source}: {content or 'is not there any more'}"
    for _, dump in files:
        yield dump


def _of_tar(
    file: LocalFile | StoredFile, is_known: Callable[[Mark], bool]
) -> Iterator[Dump | None]:
    with file.open() as opened, tarfile.open(fileobj=opened, mode="r|*") as archive:
        for member in archive:
            if not member.isfile():
                continue
            source = f"{file.name()}{IN_ARCHIVE}{member.name}"
            dump = Dump(source, member.size, int(member.mtime * 1e9))
            if is_known(dump.mark()):
                yield None
                continue
            content = archive.extractfile(member)
            if member.size > MEMBER_BYTES_MAX or content is None:
                dump.error = f"{dump.source}: larger than {MEMBER_BYTES_MAX >> 20} MiB: unpack it"
            else:
                dump.content = content.read()
            yield dump


def _of_zip(
    file: LocalFile | StoredFile, is_known: Callable[[Mark], bool]
) -> Iterator[Dump | None]:
    with file.open() as opened, zipfile.ZipFile(opened) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            # The time has two seconds' steps; the checksum tells more.
            source = f"{file.name()}{IN_ARCHIVE}{member.filename}"
            dump = Dump(source, member.file_size, member.CRC)
            if is_known(dump.mark()):
                yield None
                continue
            if member.file_size > MEMBER_BYTES_MAX:
                dump.error = f"{dump.source}: larger than {MEMBER_BYTES_MAX >> 20} MiB: unpack it"
            else:
                try:
                    dump.content = archive.read(member)
                except (OSError, RuntimeError, zipfile.BadZipFile, NotImplementedError) as error:
                    dump.error = f"{dump.source}: {error}"
            yield dump
