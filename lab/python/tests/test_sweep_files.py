"""Folders of sweeps that no sweep wrote so, and sweep files with slips: one line, and no path outside the folder."""

import json
import sys

import pyarrow
import pyarrow.parquet
import pytest
import weir_rtc
from test_weir_rtc import LOSSY
from weir_rtc import WeirError, grid, sweep
from weir_rtc.__main__ import main
from weir_rtc.sweep_files import PROGRAM, TRACES
from weir_rtc.sweep_report import data, replay

SHORT = LOSSY | {"duration": "2s"}


@pytest.fixture
def swept(tmp_path):
    """A folder with one run, and the file of its results."""
    folder = tmp_path / "sweep"
    sweep(SHORT, "gcc", [1], out=folder, workers=1)
    [file] = folder.glob("*/*.parquet")
    return folder, file


def written_again(file, metadata=None, **columns):
    """Writes the file with other values in these columns, and with these metadata beside its own."""
    table = pyarrow.parquet.read_table(file)
    own = table.schema.metadata
    for name, value in columns.items():
        index = table.column_names.index(name)
        table = table.set_column(index, name, pyarrow.array([value] * table.num_rows))
    pyarrow.parquet.write_table(table.replace_schema_metadata(own | (metadata or {})), file)


def refused(monkeypatch, capsys, *words):
    """The one line of the program about these words, with exit 2."""
    monkeypatch.setattr(sys, "argv", ["weir_rtc", *map(str, words)])
    assert main() == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


def everything(folder):
    return {it for it in folder.rglob("*") if it.is_file()}


def test_a_key_leads_to_no_path_outside_the_folder(swept, tmp_path):
    folder, file = swept
    for key in ("../../out", str(tmp_path / "out"), "ab/../../../out", "ab", ""):
        written_again(file, key=key)
        before = everything(tmp_path)
        for asked in (key, "ab", "a"):
            with pytest.raises(WeirError, match="a key|no run has|no sweep writes"):
                replay(folder, asked)
        assert everything(tmp_path) == before


def test_a_link_in_the_folder_leads_to_no_path_outside_it(swept, tmp_path):
    folder, file = swept
    key = pyarrow.parquet.read_table(file).column("key")[0].as_py()
    (tmp_path / "elsewhere").mkdir()
    (folder / "replays").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WeirError, match="leads out of the folder"):
        replay(folder, key)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_trace_file_is_the_one_of_its_hash(swept, tmp_path, monkeypatch):
    folder, file = swept
    key = pyarrow.parquet.read_table(file).column("key")[0].as_py()
    secret = tmp_path / "secret"
    secret.write_text("1\n2\n")
    (folder / "traces").mkdir()
    (folder / "traces" / ("0" * 32)).symlink_to(secret)
    opened = []
    monkeypatch.setattr("pathlib.Path.open", lambda self, *_a, **_k: opened.append(self))
    for its_hash in (str(secret), "../../secret", 7, "0" * 31):
        written_again(file, {TRACES: json.dumps({"a.mahi": its_hash}).encode()})
        with pytest.raises(WeirError, match="has no hash"):
            replay(folder, key)
    assert not opened
    monkeypatch.undo()
    written_again(file, {TRACES: json.dumps({"a.mahi": "0" * 32}).encode()})
    with pytest.raises(WeirError, match="is missing or not the trace file"):
        replay(folder, key)
    written_again(file, {TRACES: b"[1]"})
    with pytest.raises(WeirError, match="no table"):
        replay(folder, key)


def test_a_replayed_scenario_reads_no_file_of_this_machine(swept, tmp_path, monkeypatch):
    folder, file = swept
    key = pyarrow.parquet.read_table(file).column("key")[0].as_py()
    (tmp_path / "own.mahi").write_text("".join(f"{ms}\n" for ms in range(20, 2000, 20)))
    monkeypatch.chdir(tmp_path)
    up = {"capacity": {"trace": "own.mahi"}, "delay": "10ms"}
    text = weir_rtc._weir.toml_of_json(json.dumps(SHORT | {"network": {"up": up}}))
    written_again(file, {b"weir.scenario": text.encode()})
    with pytest.raises(WeirError, match=r"own\.mahi"):
        replay(folder, key)
    written_again(file, {b"weir.scenario": b"\xff"})
    with pytest.raises(WeirError, match="no text"):
        replay(folder, key)


def test_trace_files_that_a_parameter_names_are_kept_for_each_run(tmp_path, monkeypatch):
    for name, step in {"few": 40, "many": 10}.items():
        lines = "".join(f"{ms}\r\n" for ms in range(step, 2000, step))
        (tmp_path / f"{name}.mahi").write_bytes(lines.encode())
    monkeypatch.chdir(tmp_path)
    points = grid({"network.up.capacity": [{"trace": "few.mahi"}, {"trace": "many.mahi"}]})
    table = sweep(SHORT, "gcc", [1], points, out="out", workers=1).table()
    for name in ("few", "many"):
        (tmp_path / f"{name}.mahi").unlink()
    for key in set(table.column("key").to_pylist()):
        assert replay("out", key)["same"]


def test_the_shown_command_is_one_word_for_each_word(swept):
    folder, file = swept
    written_again(file, key="a; touch x #")
    [scenario] = data(folder, "")["scenarios"]
    command = scenario["worst"][0]["runs"][0]["command"]
    assert command.startswith("weir sweep --replay 'a; touch x #' --out ")


def test_results_of_two_programs_are_not_mixed(swept, tmp_path, monkeypatch, capsys):
    folder, file = swept
    other = file.with_name("0.parquet")
    other.write_bytes(file.read_bytes())
    data(folder, "")
    old = "weir 0.0.1 (0123456789ab)"
    for named, shown in {old.encode(): old, None: "an earlier weir"}.items():
        table = pyarrow.parquet.read_table(file)
        kept = {key: value for key, value in table.schema.metadata.items() if key != PROGRAM}
        kept |= {PROGRAM: named} if named else {}
        pyarrow.parquet.write_table(table.replace_schema_metadata(kept), other)
        page = tmp_path / "page.html"
        line = refused(monkeypatch, capsys, "report", folder, "--output", page)
        assert "results of 2 programs" in line and shown in line and str(other) in line
        assert f"weir {weir_rtc.__version__} (" in line and not page.exists()
        with pytest.raises(WeirError, match="results of another program"):
            sweep(SHORT, "gcc", [2], out=folder, workers=1)
    assert len(list(folder.glob("*/*.parquet"))) == 2


def test_the_name_of_a_folder_is_no_pattern(tmp_path):
    folder = tmp_path / "h_[1]*" / "delay=5"
    sweep(SHORT, "gcc", [1], out=folder, workers=1)
    sweep(SHORT, "gcc", [2, 3], out=tmp_path / "h_1x" / "delay=5", workers=1)
    found = data(folder, "")
    assert found["runs"] == 1 and found["scenarios"][0]["parameters"] == []
    [run, *_] = found["scenarios"][0]["worst"][0]["runs"]
    assert run["command"].endswith(f" --out '{folder}'")


def test_parquet_that_no_sweep_wrote_is_one_line(swept, tmp_path, monkeypatch, capsys):
    folder, file = swept
    whole = file.read_bytes()
    key = pyarrow.parquet.read_table(file).column("key")[0].as_py()
    foreign = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table({"key": [1, 2]}), foreign)
    nothing = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table({}), nothing)
    page = tmp_path / "page.html"
    for content in (
        b"",
        b"PAR1",
        b"no Parquet at all",
        whole[: len(whole) // 2],
        whole[:-8] + b"\xff\xff\xff\x7fPAR1",
        whole[:-200] + bytes(192) + whole[-8:],
        bytes(len(whole) // 2) + whole[len(whole) // 2 :],
        foreign.getvalue().to_pybytes(),
        nothing.getvalue().to_pybytes(),
    ):
        file.write_bytes(content)
        assert str(folder) in refused(monkeypatch, capsys, "report", folder, "--output", page)
        assert str(file) in refused(monkeypatch, capsys, "sweep", "--replay", key, "--out", folder)
        with pytest.raises(WeirError, match="is no result of a sweep"):
            sweep(SHORT, "gcc", [1], out=folder, workers=1)
    assert not page.exists()


def test_a_column_of_another_type_is_one_line(swept, tmp_path, monkeypatch, capsys):
    folder, file = swept
    whole = file.read_bytes()
    page = tmp_path / "page.html"
    for column, value in {"utilization": "much", "seed": "one", "kind": 3}.items():
        file.write_bytes(whole)
        written_again(file, **{column: value})
        line = refused(monkeypatch, capsys, "report", folder, "--output", page)
        assert str(folder) in line
    assert not page.exists()


def test_numbers_that_fill_the_memory_are_one_line(tmp_path, monkeypatch, capsys):
    file = tmp_path / "many.toml"
    begin = 'scenarios = "demo/first-call"\ncontrollers = "gcc"\n'
    ten = str([f"{it}ms" for it in range(10)])
    for text, line in {
        "seeds = 9223372036854775807": "seeds: at most 1000000",
        "seeds = 99999999999999999999": "seeds: at most 1000000",
        "seeds = [18446744073709551616]": "a seed is a number from 0",
        "seeds = 1000000\n[grid]\nx = [" + ", ".join(map(str, range(11))) + "]": "10000000 runs",
        "[grid]\n" + "".join(f"x{it} = {ten}\n" for it in range(30)): "at most 1000000 points",
        "[sobol]\npoints = 9223372036854775807\nx = { low = 1, high = 2 }": "1000000 points",
        "x = " + "[" * 100_000: "nested too deep",
    }.items():
        file.write_text(begin + text)
        found = refused(monkeypatch, capsys, "sweep", file, "--out", tmp_path / "none")
        assert line in found, text
    assert not (tmp_path / "none").exists()


def test_points_drawn_without_scipy_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    file = tmp_path / "drawn.toml"
    for draw in ["sobol", "latin-hypercube"]:
        file.write_text(
            'scenarios = "demo/first-call"\ncontrollers = "gcc"\n'
            f"[{draw}]\npoints = 2\nx = {{ low = 1, high = 2 }}"
        )
        found = refused(monkeypatch, capsys, "sweep", file, "--out", tmp_path / "none")
        assert "pip install 'weir-rtc[sweep]'" in found


def test_a_parameter_that_looks_like_a_number_and_is_none_is_a_text():
    from weir_rtc.sweep_report import _order

    assert _order("1.2.3")[0] == 1 and _order("...")[0] == 1
    assert _order("10ms") < _order("0.1s") < _order("1.5min") and _order("1.")[0] == 0
