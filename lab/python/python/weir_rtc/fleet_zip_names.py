"""Zip archives with names that claim to be UTF-8 and are not, which `zipfile` does not open.

The numbers are those of the format: APPNOTE.TXT of PKWARE, 4.3.7 (local header), 4.3.12 (central directory) and 4.3.16
(end of it).
"""

from __future__ import annotations

import bisect
import io
import struct
import zipfile
from typing import IO

END, END_BYTES = b"PK\x05\x06", 22
ENTRY, ENTRY_BYTES = b"PK\x01\x02", 46
#: Longest comment behind the end.
COMMENT_BYTES_MAX = 0xFFFF
#: The bit of "names are UTF-8" in the upper byte of the flags, and where that byte is in each header.
IS_UTF8 = 0x08
FLAGS_IN_ENTRY, FLAGS_IN_LOCAL = 9, 7


def with_readable_names(opened: IO[bytes]) -> tuple[set[int], IO[bytes]]:
    """The archive in which no wrong name claims to be UTF-8, and where the members with such names begin."""
    entries, begin = _directory(opened)
    wrong: set[int] = set()
    changes: dict[int, int] = {}
    at, before = 0, begin - _told_begin(opened)
    while entries[at : at + 4] == ENTRY and at + ENTRY_BYTES <= len(entries):
        name_length, extra_length, comment_length = struct.unpack_from("<3H", entries, at + 28)
        (member,) = struct.unpack_from("<L", entries, at + 42)
        name = entries[at + ENTRY_BYTES : at + ENTRY_BYTES + name_length]
        flags = entries[at + FLAGS_IN_ENTRY]
        if flags & IS_UTF8 and not _is_utf8(name):
            wrong.add(member + before)
            changes[begin + at + FLAGS_IN_ENTRY] = flags & ~IS_UTF8
            changes[member + before + FLAGS_IN_LOCAL] = flags & ~IS_UTF8
        at += ENTRY_BYTES + name_length + extra_length + comment_length
    return wrong, io.BufferedReader(_Changed(opened, changes))


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _end(opened: IO[bytes]) -> tuple[int, bytes]:
    """Where the end of the central directory is, and what it says."""
    size = opened.seek(0, io.SEEK_END)
    tail_at = max(0, size - END_BYTES - COMMENT_BYTES_MAX)
    opened.seek(tail_at)
    tail = opened.read()
    at = tail.rfind(END)
    if at < 0:
        raise zipfile.BadZipFile("it has no end of a directory")
    return tail_at + at, tail[at : at + END_BYTES]


def _told_begin(opened: IO[bytes]) -> int:
    """Where the directory says that it begins. What stands before the archive is not counted."""
    (told,) = struct.unpack_from("<L", _end(opened)[1], 16)
    return int(told)


def _directory(opened: IO[bytes]) -> tuple[bytes, int]:
    """The central directory, and where it begins."""
    end_at, end = _end(opened)
    (size,) = struct.unpack_from("<L", end, 12)
    begin = end_at - size
    if begin < 0:
        raise zipfile.BadZipFile("its directory is larger than it")
    opened.seek(begin)
    return opened.read(size), begin


class _Changed(io.RawIOBase):
    """A file with some bytes changed."""

    def __init__(self, opened: IO[bytes], changes: dict[int, int]):
        super().__init__()
        self._opened = opened
        self._changes = changes
        self._places = sorted(changes)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._opened.seek(offset, whence)

    def tell(self) -> int:
        return self._opened.tell()

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        begin = self._opened.tell()
        part = self._opened.read(len(buffer))
        buffer[: len(part)] = part
        place = bisect.bisect_left(self._places, begin)
        while place < len(self._places) and self._places[place] < begin + len(part):
            at = self._places[place]
            buffer[at - begin] = self._changes[at]
            place += 1
        return len(part)
