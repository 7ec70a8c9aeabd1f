"""Members of archives, read forwards and with bounds, whatever an archive says of itself."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from .fleet_zip_names import with_readable_names

TAR_ENDINGS = (".tar", ".tar.gz", ".tgz")
ZIP_ENDING = ".zip"
#: Between an archive's name and that of a member.
IN_ARCHIVE = "!"
#: A larger member of an archive, or file of a store, is not read.
MEMBER_BYTES_MAX = 64 << 20
#: Bytes of headers before one member of a tar archive, which Python holds in memory.
HEADER_BYTES_MAX = 1 << 20
#: Bytes that are unpacked at once.
AT_ONCE = 64 << 10
#: The same of ways to pack of which one byte may become thousands.
AT_ONCE_DENSE = 4 << 10
#: First bytes of packed files, and what unpacks them.
UNPACKERS: tuple[tuple[bytes, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b", lambda opened: gzip.GzipFile(fileobj=opened)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ", lzma.LZMAFile),
)


@dataclass
class Member:
    """What an archive tells of a file in it."""

    name: str
    size: int
    #: What tells its content from an older one: the time of its change in ns since 1970, or its checksum.
    version_ns: Callable[[], int]
    read: Callable[[], bytes]
    #: Whether the others can be read if this one is damaged.
    stands_alone: bool


def is_archive(name: str) -> bool:
    """Whether the name is that of an archive."""
    return name.lower().endswith((*TAR_ENDINGS, ZIP_ENDING))


def parts_of(source: str) -> tuple[str, str | None]:
    """The name of a file, and that of the member in it if the file is an archive."""
    end = source.find(IN_ARCHIVE)
    while end >= 0:
        if is_archive(source[:end]):
            return source[:end], source[end + 1 :]
        end = source.find(IN_ARCHIVE, end + 1)
    return source, None


def members_of(name: str, opened: IO[bytes]) -> Iterator[Member]:
    """The files in an archive, each of which is read before the next one.

    A damaged archive raises whatever Python's modules raise, behind the members that came before.
    """
    return _of_zip(opened) if name.lower().endswith(ZIP_ENDING) else _of_tar(opened)


def why(error: BaseException) -> str:
    """An error of a module that unpacks, in one line."""
    if isinstance(error, MemoryError):
        return "this needs more memory than there is"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


class _Tape:
    """What a tar archive is read from: forwards, and no further than a caller allows.

    A header may name any number of bytes that belong to it, and `tarfile` would hold them in memory.
    """

    def __init__(self, opened: IO[bytes]):
        whole: Any = opened if hasattr(opened, "peek") else io.BufferedReader(opened)  # type: ignore[arg-type]
        first = whole.peek(8)
        for begin, unpacker in UNPACKERS:
            if first.startswith(begin):
                whole = unpacker(whole)
                break
        self._from = whole
        self._left = 0

    def allow(self, size: int) -> None:
        """Allows a member of this size, and the headers of the next one."""
        blocks = -(-max(size, 0) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        self._left = blocks + HEADER_BYTES_MAX + AT_ONCE

    def read(self, size: int) -> bytes:
        """The next bytes, at most so many."""
        part: bytes = self._from.read1(size)
        self._left -= len(part)
        if self._left < 0:
            raise tarfile.ReadError(f"a header has more than {HEADER_BYTES_MAX >> 20} MiB")
        return part


class _Header(tarfile.TarInfo):
    """A header. `tarfile` takes a damaged one for the end of the archive, so it is kept."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> tarfile.TarInfo:  # type: ignore[override]
        try:
            return super().fromtarfile(tarfile_)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            tarfile_.damage = error  # type: ignore[attr-defined]
            raise


def _of_tar(opened: IO[bytes]) -> Iterator[Member]:
    tape = _Tape(opened)
    tape.allow(0)
    with tarfile.open(
        fileobj=tape,  # type: ignore[arg-type]
        mode="r|",
        bufsize=AT_ONCE,
        tarinfo=_Header,
    ) as archive:
        for member in archive:
            tape.allow(member.size)
            if member.isfile():
                yield _tar_member(archive, member)
        damage = getattr(archive, "damage", None)
        if damage is not None:
            raise tarfile.ReadError(f"damaged behind {archive.offset} bytes: {damage}")


def _tar_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Member:
    def read() -> bytes:
        content = archive.extractfile(member)
        assert content is not None, "only files are read"
        return content.read()

    # A header may hold any number, also one that is no time.
    return Member(member.name, member.size, lambda: int(member.mtime * 1e9), read, False)


def _of_zip(opened: IO[bytes]) -> Iterator[Member]:
    wrong: set[int] = set()
    try:
        archive = zipfile.ZipFile(opened)
    except UnicodeDecodeError:
        wrong, readable = with_readable_names(opened)
        archive = zipfile.ZipFile(readable)
    with archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            member = _zip_member(archive, info)
            if info.header_offset in wrong:
                member.name = info.filename.encode("cp437").decode("utf-8", "surrogateescape")
            yield member


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Member:
    is_dense = member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

    def read() -> bytes:
        # Not `read()`, which may unpack more than the size that the archive tells.
        content = bytearray()
        with archive.open(member) as packed:
            while part := packed.read(AT_ONCE_DENSE if is_dense else AT_ONCE):
                content += part
        return bytes(content)

    # The time has two seconds' steps; the checksum tells more.
    return Member(member.filename, member.file_size, lambda: member.CRC, read, True)
