"""Names that other people chose: in SQL they are names, and in a command each is one word and no option."""

import gzip
import html
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from odd_files import add
from weir_rtc import WeirError, fleet, sweep_report
from weir_rtc.fleet_calls import command
from weir_rtc.fleet_numbers import connect
from weir_rtc.fleet_report import Asked, write

DUMPS = Path(__file__).parents[3] / "lab/analyze/tests/dumps"
#: A call with bad time, so that pages show it.
BAD = gzip.decompress((DUMPS / "drop.rtcstats.gz").read_bytes())
#: Columns of a CSV that would be more than a name in SQL that does not quote them.
COLUMNS = [
    """x" from (select 1) as given; copy (select 'out') to 'written'; --""",
    """y", (select content from read_text('secret')) as "z""",
    'with "a quote"',
    "it's",
    "$1",
    "{x}",
    "Status",
    "given_file",
    "a;b",
    "",
]
NAMES = [
    "--checkpoint-action=exec=touch written",
    "--to-command=touch written",
    "-d.",
    "-x",
    "--",
    "a;touch written",
    "$(touch written)",
    "`touch written`",
    "it's; touch written #",
    "two\nlines; touch written",
    "\x1b[201~touch written",
    "a*b",
    "[a]b?",
    r"back\101slash",
    "host:name",
    "~",
    "&& touch written",
    "\u202ereversed",
]


def csv_line(cells):
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


@pytest.mark.parametrize("key", ["file", "call_id"])
def test_the_header_of_a_csv_is_never_run_as_sql(tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    Path("secret").write_text("what nobody may read")
    Path("dump").write_bytes(BAD)
    fleet.analyze(["dump"], "lake")
    [(call,)] = connect(Path("lake"), None).execute("select call_id from calls").fetchall()
    known = {"file": "dump", "call_id": call}[key]
    values = [f"value {number}" for number, _ in enumerate(COLUMNS)]
    lines = [csv_line([key, *COLUMNS]), csv_line([known, *values])]
    Path("it's [a] list.csv").write_text("\n".join(lines) + "\n")
    for column, value in zip(COLUMNS, values, strict=True):
        if column not in ("", "Status"):
            asked = Asked(
                Path("lake"), Path("a.html"), Path("it's [a] list.csv"), column, user=column
            )
            asked.before = asked.after = value
            write(asked)
            page = Path("a.html").read_text()
            assert html.escape(value) in page and "what nobody may read" not in page
            with pytest.raises(WeirError, match="none of its values is a time"):
                write(Asked(Path("lake"), Path("a.html"), asked.metadata, over=column))
    assert not Path("written").exists()


def test_a_query_of_a_report_opens_no_other_file_and_cannot_change_that(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("secret").write_text("a,b\n1,2\n")
    Path("dump").write_bytes(BAD)
    # The names of folders are no patterns and no text of SQL either.
    fleet.analyze(["dump"], "it's [a] lake*")
    db = connect(Path("it's [a] lake*"), None)
    assert db.execute("select count(*) from known join findings using (call_id)").fetchone()[0] > 0
    import duckdb

    for query in (
        "select * from read_text('secret')",
        "select * from 'secret.csv'",
        "copy (select 1) to 'written'",
        "attach 'written'",
        "set enable_external_access = true",
        "set allowed_paths = ['secret']",
        "install httpfs",
    ):
        with pytest.raises(duckdb.Error):
            db.execute(query).fetchall()
    assert not Path("written").exists()


def test_a_csv_that_is_no_csv_is_one_line(tmp_path):
    (tmp_path / "dump").write_bytes(BAD)
    fleet.analyze([tmp_path / "dump"], tmp_path / "lake")
    (tmp_path / "odd.csv").write_bytes(b'file,"a\0b"\n\xff\xfe,"open\n')
    for metadata in ("odd.csv", "none.csv", "."):
        words = ["report", "lake", "--metadata", metadata, "-o", "a.html"]
        words = [sys.executable, "-m", "weir_rtc", "fleet", *words]
        done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode in (0, 2) and "Traceback" not in done.stderr, done
        assert done.stderr.count("\n") == (1 if done.returncode else 0), done


def commands_of(page):
    """What a reader copies."""
    found = re.findall(r'<div class="line"><code>([^<]*)</code>', page)
    return [html.unescape(it) for it in found]


def pasted(folder, line):
    """What programs named `weir` get as words and as input when a shell runs the line."""
    (folder / "programs").mkdir(exist_ok=True)
    weir = folder / "programs/weir"
    weir.write_text(
        '#!/bin/bash\nprintf "%s\\0" "$@" > words\nif [ "$2" = - ]; then cat > input; fi\n'
    )
    weir.chmod(0o755)
    (folder / "words").unlink(missing_ok=True)
    (folder / "input").unlink(missing_ok=True)
    path = f"{folder / 'programs'}:/usr/bin:/bin"
    subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={"PATH": path, "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        check=True,
    )
    words = (folder / "words").read_text().split("\0")[:-1]
    has_input = (folder / "input").exists()
    return words, (folder / "input").read_bytes() if has_input else None


def test_each_command_of_the_fleets_page_reads_the_dump_that_it_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    contents = {}
    for number, name in enumerate(NAMES):
        contents[name] = BAD + f'["note",null,{number},1]\n'.encode()
        if "/" not in name:
            Path(f"./{name}").write_bytes(contents[name])
    for archive in ("-x.tar", "host:x.tar.gz", "it's.tgz"):
        with tarfile.open(f"./{archive}", "w:gz" if archive[-1] == "z" else "w") as made:
            for name in NAMES:
                add(made, f"m/{archive}/{name}", contents[name] + archive.encode())
                add(made, name, contents[name] + archive[:1].encode())
    for archive in ("-x.zip", "[x]*.zip"):
        with zipfile.ZipFile(f"./{archive}", "w") as made:
            for name in NAMES:
                made.writestr(name, contents[name] + archive[:2].encode())
    everything = sorted(it.name for it in tmp_path.iterdir())
    shown = 0
    # A page shows ten calls, so each name has a lake of its own.
    for source in everything:
        lake = Path("lakes") / str(len(list(Path().glob("lakes/*"))))
        fleet.analyze([f"./{source}"], lake)
        write(Asked(lake, Path("fleet.html")))
        for line in commands_of(Path("fleet.html").read_text()):
            words, given = pasted(tmp_path, line)
            assert words[0] == "analyze" and words[2:] == ["-o", "call.html"], line
            assert "\x1b" not in line and "\n" not in line and "\u202e" not in line
            if given is None:
                assert Path(words[1]).read_bytes().startswith(BAD) and words[1][0] != "-"
            else:
                assert given.startswith(BAD), line
            shown += 1
    assert shown > 2 * len(NAMES)
    # All members, not only those that a page shows.
    for archive in ("-x.tar", "host:x.tar.gz", "it's.tgz", "-x.zip", "[x]*.zip"):
        for name in NAMES:
            mark = archive[:2] if archive.endswith("zip") else archive[:1]
            given = pasted(tmp_path, command(f"{archive}!{name}"))[1]
            assert given == contents[name] + mark.encode(), (archive, name)
    assert not Path("written").exists()


def test_the_commands_of_a_sweeps_page_have_one_word_for_each_name(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(sweep_report, "data", lambda _folder, command: shown.append(command) or {})
    monkeypatch.setattr(sweep_report._weir, "sweep_report", lambda *_: None)
    for name in NAMES:
        sweep_report.write(Path(name), Path(name))
        words, _ = pasted(tmp_path, shown.pop())
        assert words[0] == "report" and words[2] == "-o"
        assert [Path(words[1]), Path(words[3])] == [Path(name), Path(name)]
        assert not words[1].startswith("-") and not words[3].startswith("-")
