"""Odd files among good ones: each is a row with its reason, and no good one is lost."""

import contextlib
import gzip
import io
import os
import re
import resource
import signal
import subprocess
import sys
import tarfile

import duckdb
import pytest
from odd_files import TEXT, add, dump, make
from weir_rtc import WeirError, fleet
from weir_rtc.fleet_report import Asked, write
from weir_rtc.fleet_sources import content_of


def rows_of(lake, columns="source, status, error"):
    return duckdb.sql(f"select {columns} from '{lake}/calls/*.parquet' order by source").fetchall()


def command(*words):
    return [sys.executable, "-m", "weir_rtc", "fleet", *words]


def is_odd(source):
    return re.split("[/!]", source)[-1].startswith("odd")


def test_each_odd_file_is_a_row_with_its_reason_and_all_others_are_read(tmp_path):
    good = make(tmp_path / "in")
    lake = tmp_path / "lake"
    counts = fleet.analyze([tmp_path / "in"], lake)
    rows = rows_of(lake)
    read = [source for source, status, _ in rows if status == "analyzed"]
    assert [it for it in read if is_odd(it)] == []
    assert len(read) == good == counts.analyzed, rows
    failed = [(source, error) for source, status, error in rows if status == "failed"]
    assert len(failed) == counts.failed > 30 and counts.duplicate == 0
    for source, error in failed:
        assert is_odd(source), (source, error)
        assert re.fullmatch(r":? \S.+", error.removeprefix(source)), (source, error)
    assert len({source for source, _ in failed}) == len(failed)
    # What is in a member is found again by its name.
    for source in read:
        if "!" in source:
            assert content_of(source).startswith(TEXT), source
    again = fleet.analyze([tmp_path / "in"], lake)
    assert (again.analyzed, again.failed, again.duplicate) == (0, 0, 0)
    assert again.kept == len(rows)
    write(Asked(lake, tmp_path / "fleet.html"))


def test_a_dangling_link_is_one_row_and_is_read_when_it_leads_somewhere(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/link").symlink_to(tmp_path / "dump")
    lake = tmp_path / "lake"
    assert fleet.analyze([tmp_path / "in"], lake).failed == 1
    again = fleet.analyze([tmp_path / "in"], lake)
    assert (again.failed, again.kept) == (0, 1)
    (tmp_path / "dump").write_bytes(TEXT)
    assert fleet.analyze([tmp_path / "in"], lake).analyzed == 1
    assert fleet.analyze([tmp_path / "in"], lake).kept == 1


def started(folder, *words):
    return subprocess.Popen(
        command(*words), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_fleet_that_waits_for_a_disk(tmp_path, number):
    # A file system that never answers is hard to have, so the read itself waits.
    (tmp_path / "first").write_bytes(TEXT)
    (tmp_path / "second.tar").write_bytes(b"x")
    script = tmp_path / "waits.py"
    script.write_text(
        "import sys, threading\n"
        "from weir_rtc import __main__, fleet_sources\n"
        "def waits(file):\n"
        "    print('waiting', flush=True)\n"
        "    threading.Event().wait()\n"
        "fleet_sources.LocalFile.open = waits\n"
        "sys.exit(__main__.main())\n"
    )
    words = [sys.executable, script, "fleet", "analyze", "first", "second.tar", "--out", "lake"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"waiting\n"
    process.send_signal(number)
    try:
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130 and b"the same command goes on" in error, error
    assert b"Traceback" not in error


def test_pipes_and_devices_are_named_and_nothing_waits_for_them(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    words = command("analyze", "pipe", "endless", "--out", "lake")
    done = subprocess.run(
        words, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "") and "2 failed" in done.stdout, done
    found = [error for _, _, error in rows_of(tmp_path / "lake")]
    assert found == ["endless: no regular file", "pipe: no regular file"]


def test_an_archive_that_unpacks_to_gigabytes_costs_no_memory(tmp_path):
    zeros = bytes(1 << 20)
    with gzip.open(tmp_path / "large.tar.gz", "wb", 1) as packed:
        for name, mebibytes in (("large", 2_400), ("small", 60)):
            member = tarfile.TarInfo(name)
            member.size = mebibytes << 20
            packed.write(member.tobuf())
            for _ in range(mebibytes):
                packed.write(zeros)
        packed.write(bytes(10_240))
    inner = io.BytesIO()
    with gzip.open(inner, "wb", 1) as packed:
        for _ in range(2_400):
            packed.write(zeros)
    with tarfile.open(tmp_path / "nested.tar", "w") as archive:
        add(archive, "odd.gz", inner.getvalue())
        add(archive, "good", TEXT)
    words = command("analyze", "large.tar.gz", "nested.tar", "--out", "lake")
    done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0 and "1 analyzed, 3 failed" in done.stdout, done
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1 << 20


def fill(file):
    """Writes until the disk is full."""
    with contextlib.suppress(OSError), file.open("wb", 0) as opened:
        while opened.write(bytes(1 << 10)):
            pass


def test_a_full_disk_is_one_line_and_the_next_call_goes_on(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "in").mkdir()
    for number in range(20):
        (tmp_path / f"in/{number}").write_bytes(dump(number))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "weir", disk], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        filler = disk / "filler"
        filler.write_bytes(bytes(252 << 10))
        words = command("analyze", tmp_path / "in", "--out", disk / "lake")
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done
        assert "No space left on device" in done.stderr
        assert list((disk / "lake").glob("*/*part*")) == []
        filler.unlink()
        counts = fleet.analyze([tmp_path / "in"], disk / "lake")
        assert (counts.analyzed, counts.kept) == (20, 0)
        fill(filler)
        words = command("report", disk / "lake", "-o", disk / "fleet.html")
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done
        assert list(disk.glob("*fleet.html*")) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_two_fleets_on_one_lake_lose_nothing_and_double_nothing(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(300):
        (tmp_path / f"in/{number:03}").write_bytes(dump(number))
    both = [started(tmp_path, "analyze", "in", "--out", "lake") for _ in range(2)]
    ends = [(process.communicate(), process.returncode) for process in both]
    for (_, error), code in ends:
        assert code == 0 or (code == 2 and "another program writes into lake" in error), ends
    assert 0 in [code for _, code in ends]
    assert (
        "; 300 were there" in started(tmp_path, "analyze", "in", "--out", "lake").communicate()[0]
    )
    query = f"select count(*), count(distinct call_id) from '{tmp_path}/lake/calls/*.parquet'"
    assert duckdb.sql(query).fetchall() == [(300, 300)]


def test_names_that_are_no_utf_8_on_the_command_line_are_one_line(tmp_path):
    (tmp_path / "dump").write_bytes(TEXT)
    wrong = os.fsdecode(b"\xff")
    for words in (["analyze", "dump", "--out", wrong], ["analyze", f"no-{wrong}", "--out", "lake"]):
        done = subprocess.run(command(*words), cwd=tmp_path, check=False, capture_output=True)
        assert done.returncode == 2 and done.stderr.count(b"\n") == 1, done
    with pytest.raises(WeirError, match="UTF-8"):
        write(Asked(tmp_path / wrong, tmp_path / "a.html"))
