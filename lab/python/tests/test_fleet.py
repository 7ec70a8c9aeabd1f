"""Dumps of many calls: each once, from folders and archives, with nothing that names people or networks."""

import gzip
import ipaddress
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow.parquet
import pytest
from weir_rtc import WeirError, fleet
from weir_rtc.fleet_report import Asked, command, cut, write

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "lab/analyze/tests"
DUMPS = CORPUS / "dumps"
#: Addresses that stand for none: they occur in every session description.
NOBODY = {"0.0.0.0", "127.0.0.1", "::", "::1"}


def calls(lake, columns="*"):
    return duckdb.sql(f"select {columns} from '{lake}/calls/*.parquet' order by source").fetchall()


def words_of(lake):
    """Every text in a lake, the sources left out."""
    found = []
    for file in lake.glob("*/*.parquet"):
        table = pyarrow.parquet.read_table(file)
        for name in table.column_names:
            if name not in ("source", "call_id"):
                found += [str(it) for it in table.column(name).to_pylist() if it is not None]
    return "\n".join(found)


def test_no_address_ssrc_or_device_of_the_corpus_is_in_the_lake(tmp_path):
    fleet.analyze([CORPUS], tmp_path / "lake", seconds=True)
    assert list((tmp_path / "lake/seconds").glob("*.parquet"))
    secrets = set()
    for file in sorted(CORPUS.rglob("*.gz")):
        text = gzip.decompress(file.read_bytes()).decode("latin-1")
        for word in set(re.findall(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])", text)):
            try:
                secrets.add(str(ipaddress.ip_address(word)))
            except ValueError:
                continue
        for word in set(re.findall(r"[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,7}", text)):
            try:
                secrets.add(str(ipaddress.ip_address(word)))
                secrets.add(word)
            except ValueError:
                continue
        secrets |= set(re.findall(r"[\w-]+\.local\b", text))
        secrets |= set(re.findall(r'"ssrc":\s*"?(\d{6,10})', text))
        secrets |= set(re.findall(r"(?:turns?|stuns?):([\w.-]+)", text))
        secrets |= set(re.findall(r'"label":"([^"]{4,})"', text))
    secrets -= NOBODY
    assert len(secrets) > 50, len(secrets)
    lake = words_of(tmp_path / "lake")
    raw = b"".join(it.read_bytes() for it in (tmp_path / "lake").glob("*/*.parquet"))
    found = [it for it in secrets if re.search(rf"(?<![\w.]){re.escape(it)}(?![\w.])", lake)]
    assert found == []
    assert [it for it in secrets if len(it) > 8 and it.encode() in raw] == []


def test_folders_and_archives_have_the_same_calls_and_each_content_counts_once(tmp_path):
    some = [DUMPS / name for name in ("drop.rtcstats.gz", "free.rtcstats.gz", "cpu.rtcstats.gz")]
    with tarfile.open(tmp_path / "dumps.tar.gz", "w:gz") as archive:
        for file in some:
            archive.add(file, f"inner/{file.name}")
    with zipfile.ZipFile(tmp_path / "dumps.zip", "w") as archive:
        archive.writestr("muted.json", gzip.decompress((DUMPS / "muted.rtcstats.gz").read_bytes()))
    lake = tmp_path / "lake"
    counts = fleet.analyze([tmp_path / "dumps.tar.gz", tmp_path / "dumps.zip"], lake)
    assert (counts.analyzed, counts.failed, counts.duplicate) == (4, 0, 0)
    # The same contents under other names.
    counts = fleet.analyze([str(DUMPS / "[cdf]*.rtcstats.gz")], lake)
    assert counts.duplicate == 3
    again = fleet.analyze([tmp_path / "dumps.tar.gz", str(DUMPS / "[cdf]*.rtcstats.gz")], lake)
    assert (again.analyzed, again.duplicate) == (0, 0)
    found = duckdb.sql(
        f"select count(*), count(distinct call_id) from '{lake}/calls/*.parquet' where status = 'analyzed'"
    ).fetchall()[0]
    assert found[0] == found[1]
    streams = duckdb.sql(
        f"select count(*), count(distinct (call_id, stream)) from '{lake}/streams/*.parquet'"
    ).fetchall()[0]
    assert streams[0] == streams[1]


def test_a_broken_file_and_a_broken_archive_are_rows_with_their_errors(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/noise.gz").write_bytes(gzip.compress(b"no dump at all"))
    (tmp_path / "in/cut.zip").write_bytes(b"PK\x03\x04")
    (tmp_path / "in/cut.tar.gz").write_bytes(gzip.compress(b"x" * 700)[:30])
    shutil.copy(DUMPS / "free.rtcstats.gz", tmp_path / "in")
    counts = fleet.analyze([tmp_path / "in"], tmp_path / "lake")
    assert (counts.analyzed, counts.failed) == (1, 3)
    for source, status, error in calls(tmp_path / "lake", "source, status, error"):
        assert (status == "failed") == (error is not None), source
    write(Asked(tmp_path / "lake", tmp_path / "fleet.html"))
    assert "none of the known formats" in (tmp_path / "fleet.html").read_text()


def test_a_capture_without_a_call_is_neither_good_nor_bad(tmp_path):
    packet = b"\x45\0\0\x20" + bytes(28)
    capture = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    capture += struct.pack("<IIII", 1_700_000_000, 0, len(packet), len(packet)) + packet
    (tmp_path / "none.pcap").write_bytes(capture)
    counts = fleet.analyze([tmp_path / "none.pcap", DUMPS / "free.rtcstats.gz"], tmp_path / "lake")
    assert (counts.analyzed, counts.failed, counts.no_call) == (1, 0, 1)
    [(error,)] = duckdb.sql(
        f"select error from '{tmp_path}/lake/calls/*.parquet' where status = 'no_call'"
    ).fetchall()
    assert "no RTP" in error
    write(Asked(tmp_path / "lake", tmp_path / "fleet.html"))
    assert "captures without a call" in (tmp_path / "fleet.html").read_text()


def test_an_interrupted_run_leaves_a_lake_with_which_the_next_one_goes_on(tmp_path, monkeypatch):
    text = gzip.decompress((DUMPS / "free.rtcstats.gz").read_bytes())
    (tmp_path / "in").mkdir()
    for number in range(1500):
        (tmp_path / f"in/{number:05}").write_bytes(text + f'["note",null,{number},1]\n'.encode())
    words = [sys.executable, "-m", "weir_rtc", "fleet", "analyze", "in", "--out", "lake"]
    terminal, its_end = pty.openpty()
    process = subprocess.Popen([*words, "--workers", "1"], cwd=tmp_path, stderr=its_end)
    os.close(its_end)
    # Its first word of progress: some calls are analyzed.
    assert b"analyzed" in os.read(terminal, 1000)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    os.close(terminal)
    query = f"select count(*) from '{tmp_path}/lake/calls/*.parquet'"
    [(before,)] = duckdb.sql(query).fetchall()
    assert 0 < before < 1500
    # What a killed program leaves: a part without its calls, and a file that is not finished.
    part = next((tmp_path / "lake/findings").glob("*.parquet"))
    shutil.copy(part, part.with_name("part-000999.parquet"))
    (tmp_path / f"lake/calls/.part-000999.parquet{fleet.UNFINISHED}").write_bytes(b"half")
    monkeypatch.chdir(tmp_path)
    counts = fleet.analyze(["in"], "lake")
    assert counts.kept == before and counts.analyzed == 1500 - before
    assert not part.with_name("part-000999.parquet").exists()


def test_a_lake_of_another_version_and_names_without_a_file_are_errors(tmp_path):
    fleet.analyze([DUMPS / "free.rtcstats.gz"], tmp_path / "lake")
    [file] = (tmp_path / "lake/calls").glob("*.parquet")
    table = pyarrow.parquet.read_table(file)
    pyarrow.parquet.write_table(table.replace_schema_metadata({fleet.SCHEMA_KEY: b"99"}), file)
    with pytest.raises(WeirError, match="tables of version 99"):
        fleet.analyze([DUMPS / "free.rtcstats.gz"], tmp_path / "lake")
    with pytest.raises(WeirError, match="no such file"):
        fleet.analyze([tmp_path / "nothing*"], tmp_path / "other")


def metadata_of(lake, file, bad_release):
    """Two releases, of which the second has the calls for which the function says so."""
    lines = ["file,user,release"]
    for number, (source, cause) in enumerate(calls(lake, "source, main_cause")):
        lines.append(f"{source},u{number % 12},{1.5 if bad_release(cause, number) else 1.4}")
    file.write_text("\n".join(lines) + "\n")


def test_a_change_is_found_where_there_is_one_and_not_where_there_is_none(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("free", "drop"):
        text = gzip.decompress((DUMPS / f"{name}.rtcstats.gz").read_bytes())
        for number in range(24):
            note = f'["note",null,{number},1]\n'.encode()
            (tmp_path / f"in/{name}-{number:03}").write_bytes(text + note)
    lake = tmp_path / "lake"
    fleet.analyze([tmp_path / "in"], lake)
    asked = Asked(
        lake, tmp_path / "a.html", tmp_path / "calls.csv", "release", "1.4", "1.5", "user"
    )
    metadata_of(lake, tmp_path / "calls.csv", lambda cause, _: cause == "uplink_capacity")
    write(asked)
    assert '<span class="worse">worse</span>' in asked.output.read_text()
    metadata_of(lake, tmp_path / "calls.csv", lambda _, number: number % 2 == 0)
    write(asked)
    assert 'class="worse">' not in asked.output.read_text()


def test_limited_time_is_plotted_over_a_column_of_times(tmp_path):
    lake = tmp_path / "lake"
    fleet.analyze([str(DUMPS / "*.rtcstats.gz")], lake)
    sources = [source for (source,) in calls(lake, "source")]
    lines = [f"{source},2026-11-{day + 1:02} 10:00" for day, source in enumerate(sources)]
    (tmp_path / "calls.csv").write_text("\n".join(["file,at", *lines]))
    asked = Asked(lake, tmp_path / "a.html", tmp_path / "calls.csv", over="at")
    write(asked)
    page = asked.output.read_text()
    assert page.count("<rect ") == len(sources) and "2026-11-02: " in page
    assert "in each day of the column at" in page
    (tmp_path / "calls.csv").write_text("\n".join(["file,at", *[f"{it},soon" for it in sources]]))
    with pytest.raises(WeirError, match="none of its values is a time"):
        write(asked)


def test_parts_of_older_weirs_lack_younger_columns_and_are_read(tmp_path):
    lake = tmp_path / "lake"
    fleet.analyze([DUMPS / "drop.rtcstats.gz"], lake)
    [file] = (lake / "calls").glob("*.parquet")
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(file).drop(["bad_air_time_s"]), file)
    write(Asked(lake, tmp_path / "old.html"))
    fleet.analyze([DUMPS / "loss.rtcstats.gz"], lake)
    write(Asked(lake, tmp_path / "both.html"))
    for name in ("old", "both"):
        page = (tmp_path / f"{name}.html").read_text()
        assert "the uplink was full" in page and "radio cell" not in page


def test_the_report_is_escaped_offline_and_opens_calls(tmp_path):
    (tmp_path / "<b>in").mkdir()
    shutil.copy(DUMPS / "drop.rtcstats.gz", tmp_path / "<b>in/a b.gz")
    fleet.analyze([tmp_path / "<b>in"], tmp_path / "lake")
    write(Asked(tmp_path / "lake", tmp_path / "fleet.html"))
    page = (tmp_path / "fleet.html").read_text()
    assert "<b>in" not in page and "http" not in page.replace("http-equiv", "")
    assert command("a b.gz") == "weir analyze 'a b.gz' -o call.html"
    assert command("x.zip!m/a.gz") == "unzip -p x.zip m/a.gz | weir analyze - -o call.html"
    assert command("x.tgz!a") == "tar -xOf x.tgz -- a | weir analyze - -o call.html"


def test_each_shown_call_has_a_link_to_its_report_which_is_as_analyze_writes_it(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("drop.rtcstats.gz", "muted.log.gz", "loss.rtcstats.gz"):
        shutil.copy(DUMPS / name, tmp_path / "in")
    with tarfile.open(tmp_path / "in/more.tar.gz", "w:gz") as archive:
        archive.add(DUMPS / "delay.rtcstats.gz", "m/delay.gz")
    lake = tmp_path / "lake"
    fleet.analyze([tmp_path / "in"], lake)
    # Its dump is gone, but what is known of it is still shown.
    (tmp_path / "in/loss.rtcstats.gz").unlink()
    asked = Asked(lake, tmp_path / "pages/fleet.html", calls=tmp_path / "pages/the calls")
    asked.output.parent.mkdir()
    write(asked)
    page = asked.output.read_text()
    links = [unquote(it) for it in re.findall(r'href="([^"]+)"', page)]
    # Four calls are the worst, and none of them is shown again as a typical one.
    assert len(links) == 3 and len(set(links)) == 3, links
    assert page.count("no report: ") == 1 and "No such file" in page
    for link in set(links):
        report = (tmp_path / "pages" / link).read_text()
        assert "Weir report" in report and "weir analyze" in report
    verdict = calls(lake, "call_id, verdict")[0]
    assert verdict[0] in "".join(links)
    asked.calls = None
    write(asked)
    assert "href=" not in asked.output.read_text() and "--calls FOLDER" in asked.output.read_text()


def test_the_first_sentence_counts_the_limited_calls_and_names_the_main_cause(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("free", "drop", "loss"):
        shutil.copy(DUMPS / f"{name}.rtcstats.gz", tmp_path / "in")
    fleet.analyze([tmp_path / "in"], tmp_path / "lake")
    write(Asked(tmp_path / "lake", tmp_path / "fleet.html"))
    page = (tmp_path / "fleet.html").read_text()
    [said] = re.findall(r'<p class="headline">([^<]+)</p>', page)
    assert said.startswith("2 of 3 calls (66.7 %) were limited for 10 % of the time or more"), said
    assert "the main cause was: the uplink" in said, said
    # One word for one thing: `bad` is a column's name only.
    words = re.sub(r"<(style|pre)[^>]*>.*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    assert not re.search(r"\bbad\b(?! *network)", words.split("Ask more")[0]), words
    # One unit a column, in its heading.
    assert re.search(r"<th class='n'>time, (h|min|s)</th>", page)


def test_a_text_is_cut_between_words():
    assert cut("short", 10) == "short"
    assert cut("the uplink was full for long", 20) == "the uplink was full…"
    assert cut("the uplink was fully used", 18) == "the uplink was…"
    assert cut("x" * 30, 10) == "x" * 9 + "…"


def test_a_row_for_each_second_is_made_on_request_and_adds_up_to_the_streams_rate(tmp_path):
    lake = tmp_path / "lake"
    fleet.analyze([DUMPS], lake)
    assert not (lake / "seconds").exists()
    lake = tmp_path / "with-seconds"
    fleet.analyze([DUMPS], lake, seconds=True)
    rows = duckdb.sql(
        f"select s.stream, s.rate_kbps, avg(t.rate_kbps), count(*), s.duration_s from '{lake}/streams/*.parquet' s "
        f"join '{lake}/seconds/*.parquet' t using (call_id, stream) where s.rate_kbps > 100 and s.duration_s > 20 "
        "group by s.call_id, s.stream, s.rate_kbps, s.duration_s"
    ).fetchall()
    assert len(rows) > 10
    for stream, rate, mean, seconds, duration in rows:
        # The first and the last second are covered in part.
        assert abs(mean - rate) < 0.1 * rate, (stream, rate, mean)
        assert duration - 1 < seconds < duration + 3, (stream, seconds, duration)


def test_the_page_of_the_schema_has_every_column_with_its_type():
    page = (ROOT / "docs/reference/fleet-schema.md").read_text()
    assert f"Version {fleet.SCHEMA}" in page
    for table, columns in fleet.COLUMNS.items():
        part = page.split(f"## `{table}`")[1].split("\n## ")[0]
        shown = re.findall(r"^\| `(\w+)` \| (\w+) \|", part, re.MULTILINE)
        assert shown == [(name, kind) for name, kind in columns.items()], table
