"""Sweeps: resumable, and nothing lost when a worker or the client is killed."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pyarrow
import pyarrow.parquet
import pytest
import weir_rtc
from test_weir_rtc import LOSSY
from weir_rtc import Range, grid, latin_hypercube, sobol, sweep
from weir_rtc.__main__ import main
from weir_rtc.space import changed
from weir_rtc.sweep_report import _front, data, replay
from weir_rtc.sweeps import _alone

pytest.importorskip("distributed")

#: Calls so many that two workers need some seconds.
KILLED = """
import sys
from test_weir_rtc import LOSSY
from weir_rtc import sweep
if __name__ == "__main__":
    sweep(LOSSY | {"duration": "60s"}, "gcc,nada", range(40), out=sys.argv[1], workers=2, unit_s=0.1)
"""


def test_a_scenario_without_media_is_one_run_a_seed(tmp_path):
    transfer = LOSSY | {"flow": [{"kind": "tcp"}]}
    assert sweep(transfer, "gcc,nada", [1], out=tmp_path, workers=1).simulated == 1


def test_a_sweep_has_the_rows_of_its_runs_and_makes_none_twice(tmp_path):
    points = grid({"network.up.delay": ["10ms", "100ms"], "flow.0.max_bitrate": ["1Mbps"]})
    first = sweep(LOSSY, "gcc,nada", range(2), points, out=tmp_path, workers=1)
    assert (first.simulated, first.kept) == (8, 0)
    table = first.table()
    assert set(table.column("network.up.delay").to_pylist()) == {"10ms", "100ms"}
    again = sweep(LOSSY, "gcc,nada", range(3), points, out=tmp_path, workers=1)
    assert (again.simulated, again.kept) == (4, 8)
    alone = weir_rtc.run(changed(LOSSY, points[1]), "nada", [1])
    expected = pyarrow.table(alone.summaries).column("rate_mbps.mean")[0].as_py()
    found = [
        row["rate_mbps.mean"]
        for row in again.table().to_pylist()
        if (row["controller"], row["seed"], row["network.up.delay"]) == ("nada", 1, "100ms")
        and row["section"] == ""
    ]
    assert found == [expected]


def test_a_variant_and_a_scenario_with_a_trace_are_swept_as_they_are(tmp_path):
    trace = tmp_path / "few.mahi"
    trace.write_text("".join(f"{ms}\n" for ms in range(20, 2000, 20)))
    file = tmp_path / "traced.toml"
    up = {"capacity": {"trace": "few.mahi"}, "delay": "10ms"}
    few = LOSSY | {"duration": "4s", "network": LOSSY["network"] | {"up": up}}
    file.write_text(weir_rtc._weir.toml_of_json(json.dumps(few)))
    both = ["demo/first-call/one-way", str(file)]
    found = sweep(both, "gcc", [1], out=tmp_path / "out", workers=1).table().to_pylist()
    alone = pyarrow.table(weir_rtc.run(both, "gcc", [1]).summaries).to_pylist()
    place = lambda row: (row["scenario"], row["flow"], row["section"])
    rates = [{place(row): row["rate_mbps.mean"] for row in rows} for rows in (found, alone)]
    assert rates[0] == rates[1]
    # Another content of the trace file is another run, and the first can still be made again.
    trace.write_text("".join(f"{ms}\n" for ms in range(10, 2000, 10)))
    assert sweep(both, "gcc", [1], out=tmp_path / "out", workers=1).simulated == 1
    old = next(row["key"] for row in found if row["scenario"] == str(file))
    assert replay(tmp_path / "out", old)["same"]


def test_a_folder_has_one_sweep_at_a_time(tmp_path):
    with _alone(tmp_path), pytest.raises(weir_rtc.WeirError, match="another sweep writes"):
        sweep(LOSSY, "gcc", [1], out=tmp_path)
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / ".half.part").touch()
    with _alone(tmp_path):
        assert not list(tmp_path.glob("*/.*"))


def test_a_file_with_a_mistake_is_one_line(tmp_path, capsys, monkeypatch):
    file = tmp_path / "bad.toml"
    for text, line in {
        "": "scenarios is missing",
        'scenarios = "demo/first-call"\ncontroler = "gcc"': "a sweep has no key 'controler'",
        'scenarios = "demo/first-call"\nseeds = 0': "seeds: expected a number from 1",
        'scenarios = "demo/first-call"\n[grid]\n"network.up.delay" = "1ms"': "is a list of values",
        'scenarios = "demo/first-call"\n[sobol]\nx = { low = 1, high = 2 }': "sobol.points",
        'scenarios = "demo/first-call"\n[sobol]\npoints = 2\nx = "1ms"': "x: write { low",
        'scenarios = "demo/first-call"\ncontrollers = "gccc"': "unknown controller",
        "scenarios = ": "not valid TOML",
    }.items():
        file.write_text(text)
        monkeypatch.setattr(
            sys, "argv", ["weir_rtc", "sweep", str(file), "--out", str(tmp_path / "none")]
        )
        assert main() == 2
        [printed] = capsys.readouterr().err.splitlines()
        assert printed.startswith(f"weir_rtc: {file}: ") and line in printed
    assert not (tmp_path / "none").exists()


def test_series_are_written_on_request_also_of_runs_that_are_there(tmp_path):
    first = sweep(LOSSY, "gcc", [1], out=tmp_path, workers=1).table()
    assert not list(tmp_path.glob("*/series/*"))
    done = sweep(LOSSY, "gcc", [1], out=tmp_path, workers=1, series=True)
    assert done.simulated == 1 and done.table().equals(first)
    [file] = tmp_path.glob("*/series/*.parquet")
    rows = pyarrow.parquet.read_table(file)
    alone = pyarrow.table(weir_rtc.run(LOSSY, "gcc", [1]).series)
    assert rows.column("received_bytes").equals(alone.column("received_bytes"))
    assert sweep(LOSSY, "gcc", [1], out=tmp_path, workers=1, series=True).simulated == 0


def test_the_report_of_a_sweep_has_its_means_and_its_worst_runs_can_be_made_again(tmp_path):
    points = grid({"network.up.delay": ["100ms", "10ms"], "network.up.loss": ["0%", "5%"]})
    done = sweep(LOSSY, "gcc,nada", range(3), points, out=tmp_path, workers=1)
    found = data(tmp_path, "weir report sweep")
    [scenario] = found["scenarios"]
    assert (found["runs"], scenario["points"], scenario["seeds"]) == (24, 4, 3)
    # Values are in the order of their size, not of their text.
    assert scenario["parameters"][0] == {"name": "network.up.delay", "bins": ["10ms", "100ms"]}
    [heat] = scenario["maps"]
    assert len(heat["cells"]) == 8 and all(cell["runs"] == 3 for cell in heat["cells"])
    used = [
        row["utilization"]
        for row in done.table().to_pylist()
        if (row["controller"], row["network.up.delay"], row["network.up.loss"], row["section"])
        == ("nada", "100ms", "5%", "")
    ]
    cell = next(it for it in heat["cells"] if (it["controller"], it["x"], it["y"]) == (1, 1, 1))
    assert cell["values"][0] == pytest.approx(sum(used) / 3, rel=1e-5)
    assert sum(row["on_front"] for row in scenario["fronts"]) >= 4

    worst = next(it for it in scenario["worst"] if it["controller"] == 1 and it["metric"] == 0)
    values = [run["values"][0] for run in worst["runs"]]
    assert values == sorted(values) and len(values) == 10
    key = worst["runs"][0]["command"].split()[3]
    again = replay(tmp_path, key[:8])
    assert again["same"] and again["row"]["utilization"] == pytest.approx(values[0], rel=1e-5)
    assert list(again["out"].rglob("series.csv*"))
    with pytest.raises(weir_rtc.WeirError, match="no run has the key"):
        replay(tmp_path, "0" * 32)

    weir_rtc.report(done, tmp_path / "sweep.html")
    page = (tmp_path / "sweep.html").read_text()
    assert '"kind":"sweep"' in page and "network.up.delay" in page


def test_many_values_of_a_parameter_become_ranges_and_numbers_are_in_order(tmp_path):
    points = [{"network.up.queue": f"{it}ms"} for it in range(1000, 20, -49)]
    sweep(LOSSY | {"duration": "2s"}, "gcc", [1], points, out=tmp_path, workers=1)
    [scenario] = data(tmp_path, "")["scenarios"]
    [parameter] = scenario["parameters"]
    assert len(parameter["bins"]) == 8 and parameter["bins"][0].startswith("69ms to ")
    [heat] = scenario["maps"]
    assert heat["y"] is None and sum(cell["runs"] for cell in heat["cells"]) == len(points)


def test_a_front_has_what_nothing_beats():
    dot = lambda delay, used: {"p95_queuing_delay_ms": delay, "utilization": used}
    best, fast, slow, equal = dot(5.0, 0.9), dot(2.0, 0.5), dot(9.0, 0.9), dot(5.0, 0.9)
    assert _front([slow, best, fast, equal]) == [fast, best, equal]


def test_a_wrong_parameter_is_an_error_before_anything_runs(tmp_path):
    with pytest.raises(weir_rtc.WeirError, match="delay"):
        sweep(LOSSY, "gcc", [1], [{"network.up.delay": "soon"}], out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


class Faltering(weir_rtc.Controller):
    """Fails in its first run, and in no other one."""

    name = "faltering"
    mark: str

    def on_feedback(self, now_us, report):
        if not os.path.exists(self.mark):
            open(self.mark, "x").close()
            raise ZeroDivisionError("the first run")


def test_a_unit_that_fails_is_tried_again_and_progress_is_told(tmp_path):
    told = []
    kept = {"workers": 1, "progress": lambda done, of: told.append((done, of))}
    again = type("Again", (Faltering,), {"mark": str(tmp_path / "again")})
    done = sweep(LOSSY, again, range(2), out=tmp_path / "a", unit_s=0.001, **kept)
    assert (
        done.simulated == 2
        and told[-1] == (2, 2)
        and len(set(done.table().column("key").to_pylist())) == 2
    )
    never = type("Never", (Faltering,), {"mark": str(tmp_path / "never")})
    with pytest.raises(ZeroDivisionError, match="the first run"):
        sweep(LOSSY, never, [1], out=tmp_path / "b", retries=0, **kept)


def test_drawn_points_are_the_same_for_one_seed_and_lie_within_their_ranges():
    ranges = {"network.up.delay": Range(5, 200, "ms"), "loss": Range(0.001, 0.1, logarithmic=True)}
    for draw in (sobol, latin_hypercube):
        points = draw(ranges, 8, seed=2)
        assert points == draw(ranges, 8, seed=2) != draw(ranges, 8, seed=3)
        assert all(5 <= float(it["network.up.delay"].removesuffix("ms")) <= 200 for it in points)
        assert all(0.001 <= it["loss"] <= 0.1 for it in points)


def test_nothing_is_lost_when_the_client_is_killed(tmp_path):
    here = os.path.dirname(__file__)
    client = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], cwd=here)
    while not list(tmp_path.glob("*/*.parquet")):
        assert client.poll() is None
        time.sleep(0.02)
    client.send_signal(signal.SIGKILL)
    client.wait()
    done = sweep(
        LOSSY | {"duration": "60s"}, "gcc,nada", range(40), out=tmp_path, workers=2, unit_s=0.1
    )
    assert done.kept > 0 and done.simulated > 0 and done.kept + done.simulated == 80
    keys = done.table().column("key").to_pylist()
    assert len(set(keys)) == 80


#: As a reader of the guide types it: no function, no guard, and a controller of its own.
SCRIPT = """
import sys
import weir_rtc

class Steady(weir_rtc.Controller):
    name = "steady"

    def on_feedback(self, now_us, report):
        self.target_bps = 500_000

print("begins")
done = weir_rtc.sweep("demo/first-call", Steady, range(2), out=sys.argv[1], workers=2)
print(done.simulated, set(done.table().column("controller").to_pylist()), __file__ == sys.argv[0])
"""


def test_a_plain_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, script, tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "begins\n2 {'steady'} True\n", ran.stderr[-2000:]


def listening():
    """Sockets of this process and its children that listen for TCP connections."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as lines:
            rows = [line.split() for line in lines][1:]
        found |= {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    own = set()
    for pid in [os.getpid(), *(it.pid for it in multiprocessing.active_children())]:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                own.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found & own


def test_a_sweep_of_this_machine_listens_nowhere(tmp_path):
    seen = []
    look = lambda _done, _all: seen.append((listening(), len(multiprocessing.active_children())))
    sweep(LOSSY, "gcc", range(8), out=tmp_path, workers=2, unit_s=0.001, progress=look)
    assert seen and all(sockets == set() for sockets, _ in seen)
    assert max(children for _, children in seen) >= 1


def test_nothing_is_lost_when_a_worker_is_killed(tmp_path):
    from distributed import Client, LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        with Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill_once(done, _all):
            if not killed:
                os.kill(victim, signal.SIGKILL)
                killed.append(done)

        done = sweep(
            LOSSY | {"duration": "60s"},
            "gcc",
            range(30),
            out=tmp_path,
            scheduler=cluster.scheduler_address,
            unit_s=0.1,
            progress=kill_once,
        )
    assert killed and killed[0] < 30
    assert len(set(done.table().column("key").to_pylist())) == 30
