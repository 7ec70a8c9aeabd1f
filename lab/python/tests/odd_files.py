"""Files and archives that are odd in one way each, with good dumps beside what is odd. All of them are harmless."""

import gzip
import io
import os
import socket
import struct
import tarfile
import zipfile
from pathlib import Path

DUMPS = Path(__file__).parents[3] / "lab/analyze/tests/dumps"
TEXT = gzip.decompress((DUMPS / "free.rtcstats.gz").read_bytes())
#: Times that are no time, or none that fits: years 2300 and 30 000, and what a float cannot hold.
YEAR_2300_S = 10_413_792_000


def dump(number):
    """A dump like no other."""
    return TEXT + f'["note",null,{number},1]\n'.encode()


class Numbers:
    """Numbers of dumps that are all different."""

    def __init__(self):
        self.last = 0

    def dump(self):
        self.last += 1
        return dump(self.last)


def make(folder):
    """Writes the corpus. Returns how many dumps of it are good."""
    folder.mkdir()
    numbers = Numbers()
    for write in (plain_files, special_files, tars, damaged_tars, zips, damaged_zips):
        write(folder, numbers)
    return numbers.last


def plain_files(folder, numbers):
    (folder / "good").write_bytes(numbers.dump())
    (folder / "before-1970").write_bytes(numbers.dump())
    os.utime(folder / "before-1970", (-86_400, -86_400))
    (folder / "odd-2300").write_bytes(TEXT)
    os.utime(folder / "odd-2300", (YEAR_2300_S, YEAR_2300_S))
    (folder / os.fsdecode(b"odd-\xff\xfe.gz")).write_bytes(TEXT)
    (folder / "odd-empty").write_bytes(b"")
    (folder / "odd-cut.gz").write_bytes(gzip.compress(TEXT)[:300])
    # A dump is read as far as it can be unpacked.
    packed = gzip.compress(numbers.dump())
    (folder / "good-checksum.gz").write_bytes(packed[:-8] + b"\0" * 8)
    packed = gzip.compress(numbers.dump())
    (folder / "good-rest.gz").write_bytes(packed + b"what follows is no gzip")
    inner = folder / os.fsdecode(b"odd-folder-\xe9")
    inner.mkdir()
    (inner / "odd").write_bytes(TEXT)
    with tarfile.open(folder / os.fsdecode(b"odd-\xe9.tar"), "w") as archive:
        add(archive, "member", TEXT)


def special_files(folder, _numbers):
    os.mkfifo(folder / "odd-pipe")
    os.mkfifo(folder / "odd-pipe.tar.gz")
    (folder / "odd-endless").symlink_to("/dev/zero")
    (folder / "odd-endless.zip").symlink_to("/dev/zero")
    (folder / "odd-nowhere").symlink_to("no-such-file")
    (folder / "odd-circle").symlink_to("odd-circle")
    listening = socket.socket(socket.AF_UNIX)
    # The path of a socket is short, so it is bound where it is.
    before = Path.cwd()
    os.chdir(folder)
    listening.bind("odd-socket")
    os.chdir(before)
    listening.close()


def add(archive, name, content, **about):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in about.items():
        setattr(member, key, value)
    archive.addfile(member, io.BytesIO(content))


def tars(folder, numbers):
    odd = {
        "odd-late": {"mtime": YEAR_2300_S},
        "odd-later": {"mtime": 1 << 62},
        "odd-infinite": {"mtime": 0, "pax_headers": {"mtime": "inf"}},
        "odd-no-number": {"mtime": 0, "pax_headers": {"mtime": "nan"}},
        "odd-large": {"mtime": 0, "pax_headers": {"mtime": "9" * 400}},
    }
    with tarfile.open(folder / "times.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, about in odd.items():
            add(archive, name, TEXT, **about)
            add(archive, f"good-{numbers.last}", numbers.dump())
    with tarfile.open(folder / "gnu-times.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        add(archive, "odd-late", TEXT, mtime=1 << 80)
        add(archive, "good", numbers.dump())
    with tarfile.open(folder / "names.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        add(archive, os.fsdecode(b"odd-\xff"), TEXT)
        add(archive, "good", numbers.dump())
        add(archive, "-good", numbers.dump())
        add(archive, "../good", numbers.dump())
        add(archive, "good\nline", numbers.dump())
        add(archive, "good" * 100, numbers.dump())
    with tarfile.open(folder / "no-files.tar", "w") as archive:
        add(archive, "pipe", b"", type=tarfile.FIFOTYPE)
        add(archive, "device", b"", type=tarfile.CHRTYPE)
        add(archive, "link", b"", type=tarfile.SYMTYPE, linkname="/etc/hostname")
        add(archive, "good", numbers.dump())
    packed = tar_of({"good": numbers.dump()})
    (folder / "rest.tar.gz").write_bytes(gzip.compress(packed) + b"what follows is no gzip")


def tar_of(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members.items():
            add(archive, name, content)
    return packed.getvalue()


def damaged_tars(folder, numbers):
    """What comes before the damage is read."""
    whole = tar_of({"good": numbers.dump(), "lost": TEXT})
    (folder / "odd-cut.tar").write_bytes(whole[: len(whole) // 2 + 2_048])
    whole = tar_of({"good": numbers.dump(), "lost": TEXT})
    packed = gzip.compress(whole, 0)
    (folder / "odd-cut.tgz").write_bytes(packed[: len(packed) // 2 + 2_048])
    first = numbers.dump()
    whole = bytearray(tar_of({"good": first, "lost": TEXT}))
    header = 512 + -(-len(first) // 512) * 512
    whole[header + 148 : header + 156] = b"no sum\0\0"
    (folder / "odd-header.tar").write_bytes(whole)
    # A header that claims to go on for 100 MiB.
    long = tarfile.TarInfo("./@LongLink")
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, 100 << 20
    whole = tar_of({"good": numbers.dump()}).rstrip(b"\0")
    whole += b"\0" * (-len(whole) % 512) + long.tobuf(tarfile.GNU_FORMAT) + b"\0" * (100 << 20)
    (folder / "odd-long-header.tar.gz").write_bytes(gzip.compress(whole, 1))
    (folder / "odd-empty.tar").write_bytes(b"")
    (folder / "odd-noise.tar").write_bytes(b"noise" * 1_000)


def zips(folder, numbers):
    with zipfile.ZipFile(folder / "ways.zip", "w") as archive:
        for way in (0, 8, 12, 14):
            archive.writestr(f"good-{way}", numbers.dump(), compress_type=way)
        archive.writestr("-good", numbers.dump())
        archive.writestr("good\nline", numbers.dump())
    # "odd-é" in Latin-1, where the archive says that its names are UTF-8.
    with zipfile.ZipFile(folder / "names.zip", "w") as archive:
        archive.writestr("odd-¡", TEXT)
        archive.writestr("good", numbers.dump())
    wrong = (folder / "names.zip").read_bytes().replace("odd-¡".encode(), b"odd-\xe9-")
    (folder / "names.zip").write_bytes(wrong)


def damaged_zips(folder, numbers):
    """Each has one member that cannot be read, between two that can."""

    def zipped(name, change, way=zipfile.ZIP_DEFLATED):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", way) as archive:
            archive.writestr("good-1", numbers.dump())
            archive.writestr("odd", TEXT + b"odd")
            archive.writestr("good-2", numbers.dump())
            info = archive.getinfo("odd")
        content = bytearray(packed.getvalue())
        change(content, info, content.rfind(b"PK\x01\x02", 0, content.rfind(b"PK\x01\x02")))
        (folder / name).write_bytes(content)

    def data(content, info, _entry):
        begin = info.header_offset + 33
        content[begin + 200 : begin + 300] = b"\xff" * 100

    def no_block(content, info, _entry):
        content[info.header_offset + 33] = 0xFF

    def checksum(content, info, entry):
        struct.pack_into("<L", content, entry + 16, info.CRC ^ 1)
        struct.pack_into("<L", content, info.header_offset + 14, info.CRC ^ 1)

    def encrypted(content, info, entry):
        content[entry + 8] |= 1
        content[info.header_offset + 6] |= 1

    def unknown_way(content, info, entry):
        struct.pack_into("<H", content, entry + 10, 99)
        struct.pack_into("<H", content, info.header_offset + 8, 99)

    def local_header(content, info, _entry):
        content[info.header_offset] = 0

    def large(content, _info, entry):
        struct.pack_into("<L", content, entry + 24, 0xFFFF_FFF0)

    for change in (data, no_block, checksum, encrypted, unknown_way, local_header, large):
        zipped(f"one-{change.__name__}.zip", change)
    zipped("one-data-bzip2.zip", data, zipfile.ZIP_BZIP2)
    zipped("one-data-lzma.zip", data, zipfile.ZIP_LZMA)
    (folder / "odd-cut.zip").write_bytes((folder / "ways.zip").read_bytes()[:-100])
    (folder / "odd-noise.zip").write_bytes(b"PK\x05\x06" + b"noise" * 100)
