"""The package as its users see it."""

import json
import pickle
import signal
import threading

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest
import weir_rtc
from weir_rtc.testing import check_controller

#: A call whose packets are lost at random, so that seeds differ.
LOSSY = {
    "title": "a call with random loss",
    "source": "this test",
    "description": "Two per cent of the packets are lost.",
    "duration": "10s",
    "network": {
        "up": {"capacity": "1Mbps", "delay": "25ms", "queue": "300ms", "loss": "2%"},
        "down": {"delay": "25ms"},
    },
    "flow": [{"direction": "up", "max_bitrate": "2500kbps"}],
}


def test_a_run_gives_arrow_tables_that_others_read():
    runs = weir_rtc.run("demo/first-call", "gcc,nada", range(2))
    assert len(runs) == 4
    series = pyarrow.table(runs.series)
    assert series.num_rows == polars.DataFrame(runs.series).height > 0
    assert duckdb.sql("select count(distinct controller) from series").fetchall() == [(2,)]
    assert {"scenario", "controller", "seed", "flow", "time_ms", "target_bps"} <= set(
        series.column_names
    )
    assert series.schema.field("queuing_delay_us").metadata[b"unit"] == "µs".encode()
    assert {"ramp-up", "probe"} <= set(polars.DataFrame(runs.events)["reason"])
    summaries = polars.DataFrame(runs.summaries)
    assert summaries.filter(section="").height == 2 * 4
    # The same number as the summary has.
    whole = runs.json()[0]["flows"][0]["rate_mbps"]["mean"]
    assert summaries["rate_mbps.mean"][0] == whole


def test_a_scenario_without_media_runs_once_with_each_seed(tmp_path):
    transfer = LOSSY | {"flow": [{"kind": "tcp"}]}
    runs = weir_rtc.run(transfer, "gcc,nada", range(2), out=tmp_path / "runs")
    assert [run["controller"] for run in runs.json()] == ["none", "none"]
    runs.report(tmp_path / "report.html")


def test_tables_are_read_without_a_copy():
    series = weir_rtc.run("demo/first-call", "gcc", [1]).series
    address = lambda array: array.buffers()[1].address
    [first] = pyarrow.table(series).column("received_bytes").chunks
    [second] = pyarrow.table(series).column("received_bytes").chunks
    assert address(first) == address(second)
    assert address(polars.DataFrame(series)["received_bytes"].to_arrow()) == address(first)
    frame = pyarrow.table(series).to_pandas(types_mapper=pandas.ArrowDtype)
    [column] = pyarrow.Table.from_pandas(frame).column("received_bytes").chunks
    assert address(column) == address(first)
    assert frame["received_bytes"].sum() == pyarrow.compute.sum(first).as_py()
    # DuckDB scans the table where it lies.
    scanned = duckdb.from_arrow(pyarrow.table(series))
    [(total,)] = scanned.aggregate("sum(received_bytes)").fetchall()
    assert total == frame["received_bytes"].sum()


def test_equal_seeds_give_equal_tables_at_any_number_of_jobs():
    one, four = (weir_rtc.run(LOSSY, "scream", range(4), jobs=jobs) for jobs in (1, 4))
    assert pyarrow.table(one.series).equals(pyarrow.table(four.series))
    received = polars.DataFrame(one.series).group_by("seed").agg(polars.col("received_bytes").sum())
    assert received["received_bytes"].n_unique() == 4


def test_scenarios_come_from_patterns_texts_dicts_and_files(tmp_path):
    [first] = weir_rtc.scenarios("demo/first-call")
    [text] = weir_rtc.scenarios(first.text)
    assert text.flows == first.flows
    file = tmp_path / "mine.toml"
    file.write_text(first.text)
    assert [it.duration_s for it in weir_rtc.scenarios(file)] == [first.duration_s]
    assert len(weir_rtc.scenarios("lund/*")) > 3
    import tomllib

    [same] = weir_rtc.scenarios(tomllib.loads(first.text))
    assert same.duration_s == first.duration_s


def test_a_builder_makes_the_scenario_that_a_dict_describes():
    network = LOSSY["network"]
    built = weir_rtc.Builder(LOSSY["title"], duration="10s").up(**network["up"])
    built = built.down(**network["down"]).flow(**LOSSY["flow"][0])
    series = [
        pyarrow.table(weir_rtc.run(it, "gcc", [1]).series).column("received_bytes")
        for it in (LOSSY, built)
    ]
    assert series[0].equals(series[1])
    farther = weir_rtc.Builder.of("lund/rmcat-ns3").set("network.up.delay", "150ms")
    assert 'delay = "150ms"' in farther.toml() and farther.build().id == "lund/rmcat-ns3"
    # A step leaves the builder before it as it was.
    assert built.flow(max_bitrate="1Mbps").build().flows != built.build().flows
    with pytest.raises(weir_rtc.WeirError, match="nonsense"):
        built.up(nonsense=1).build()
    with pytest.raises(weir_rtc.WeirError, match="not one"):
        weir_rtc.Builder.of("lund/*")


def test_errors_are_the_lines_of_the_program():
    with pytest.raises(weir_rtc.WeirError, match="there is no scenario"):
        weir_rtc.run("demo/first-cal")
    with pytest.raises(weir_rtc.WeirError, match="gcc"):
        weir_rtc.run("demo/first-call", "gccc")
    with pytest.raises(weir_rtc.WeirError, match="python:1: unknown key 'nonsense'"):
        weir_rtc.Scenario("nonsense = 1\n")


@pytest.mark.parametrize(
    ("arguments", "error", "line"),
    [
        ({"seeds": [-1]}, weir_rtc.WeirError, "a seed is a number from 0"),
        ({"seeds": [1.5]}, TypeError, "float"),
        ({"seeds": 5}, TypeError, "such as range"),
        ({"controller": 5}, TypeError, "a name or a subclass"),
        ({"controller": "gcc,ggc"}, weir_rtc.WeirError, "unknown controller"),
        ({"jobs": -1}, weir_rtc.WeirError, "jobs"),
        ({"scenario": 5}, TypeError, "a scenario is no int"),
    ],
)
def test_a_wrong_argument_is_said_in_its_own_words(arguments, error, line):
    with pytest.raises(error, match=line):
        weir_rtc.run(**{"scenario": "demo/first-call"} | arguments)


def test_a_scenario_is_copied_whole():
    [walking] = weir_rtc.scenarios("demo/lte-5/walking")
    copied = pickle.loads(pickle.dumps(walking))
    assert (copied.id, copied.variant, copied.text) == (walking.id, "walking", walking.text)
    # Tables keep their order, which numbers terminals.
    text = weir_rtc._weir.toml_of_json('{"z": {"x": 1}, "a": {"x": 1}}')
    assert text.index("[z]") < text.index("[a]")
    # A builder has the variant's keys in place.
    built = weir_rtc.Builder.of("demo/lte-5/walking").toml()
    assert "EPA" in built and "EVA" not in built


def test_reports_and_records(tmp_path):
    runs = weir_rtc.run("demo/first-call", "gcc", out=tmp_path / "out")
    weir_rtc.report([tmp_path / "out"], tmp_path / "a.html")
    runs.report(tmp_path / "b.html")
    page = (tmp_path / "b.html").read_text()
    assert "demo/first-call" in page and "http-equiv" not in page.split("<body")[1]
    assert "srcdoc" in runs._repr_html_()
    (tmp_path / "empty").mkdir()
    with pytest.raises(weir_rtc.WeirError, match="contains no record"):
        weir_rtc.report([tmp_path / "empty"], tmp_path / "c.html")


def test_expectations_are_judged():
    rows = weir_rtc.check("rfc8867/5.1", "gcc,nada")
    assert {row["controller"] for row in rows} == {"gcc", "nada"}
    assert all(row["outcome"] in {"holds", "known miss"} for row in rows)


def test_two_sets_of_runs_are_compared_as_the_program_compares_them(tmp_path):
    changed = {**LOSSY, "network": {**LOSSY["network"], "down": {"delay": "75ms"}}}
    before = weir_rtc.run(LOSSY, "gcc", range(6), out=tmp_path / "before")
    after = weir_rtc.run(changed, "gcc", range(6))
    rows = {row["metric"]: row for row in weir_rtc.compare(before, after)}
    # 50 ms more on the way back.
    assert rows["rtt_ms.mean"]["verdict"] == "worse"
    assert 40 < rows["rtt_ms.mean"]["change"] < 60
    assert weir_rtc.compare(tmp_path / "before", after) == list(rows.values())
    assert {row["verdict"] for row in weir_rtc.compare(before, before)} == {"equal"}
    with pytest.raises(weir_rtc.WeirError, match="No such file"):
        weir_rtc.compare(tmp_path / "none", after)


def test_other_threads_run_while_a_run_is_simulated():
    turns = 0
    ended = threading.Event()

    def count():
        nonlocal turns
        while not ended.wait(0.001):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = turns
    weir_rtc.run("lund/rmcat-ns3", "gcc", range(40), jobs=1)
    during = turns - before
    ended.set()
    thread.join()
    # With the lock held, the thread would have had no turn.
    assert during > 5


class Steady(weir_rtc.Controller):
    """Holds its bitrate, and obeys silence and the receiver's limit."""

    name = "steady"

    def on_packet_sent(self, now_us, sequence_number, size_bytes, queued_bytes):
        if self.next_timeout_us is None:
            self.next_timeout_us = now_us + 500_000

    def on_feedback(self, now_us, report):
        self.next_timeout_us = now_us + 500_000
        lost = sum(packet.arrival_time_us is None for packet in report.packets)
        if lost > len(report.packets) / 2:
            self._to(self.target_bps * 0.9, "loss")
        else:
            self._to(self.target_bps * 1.05, "increase")
        self.signals = {"lost_packets": float(lost)}

    def on_timeout(self, now_us):
        self.next_timeout_us = now_us + 500_000
        self._to(self.target_bps * 0.8, "feedback lost")

    def _to(self, bps, reason):
        bps = min(max(bps, self.min_bps), self.max_bps)
        if bps != self.target_bps:
            self.target_bps, self.reason = bps, reason


def test_a_controller_in_python_runs_and_leaves_its_reasons():
    runs = weir_rtc.run("demo/first-call", Steady)
    events = polars.DataFrame(runs.events)
    assert set(events["controller"]) == {"steady"}
    assert "increase" in set(events["reason"])
    again = weir_rtc.run("demo/first-call", Steady)
    assert pyarrow.table(runs.series).equals(pyarrow.table(again.series))


def test_the_harness_passes_a_sound_controller_and_finds_a_broken_one():
    check_controller(Steady, scripts=8)

    class Deaf(Steady):
        name = "deaf"

        def on_timeout(self, now_us):
            self.next_timeout_us = now_us + 500_000

    with pytest.raises(weir_rtc.WeirError, match="silence"):
        check_controller(Deaf, scripts=1)


def test_two_controllers_are_compared_with_p_values_and_nothing_is_an_error(tmp_path):
    both = weir_rtc.run(LOSSY, ["gcc", Steady], range(6), out=tmp_path / "out")
    own = weir_rtc.run(LOSSY, Steady, range(6), jobs=1)
    rows = weir_rtc.compare(both, by="controller")
    [used] = [row for row in rows if row["metric"] == "utilization"]
    assert (used["against"], used["controller"], used["test"]) == ("gcc", "steady", "signed-rank")
    assert used["p"] <= 0.05 and used["before_runs"] == used["after_runs"] == 6
    assert weir_rtc.compare(tmp_path / "out", by="controller", controllers="gcc,steady") == rows
    gcc = weir_rtc.run(LOSSY, "gcc", range(6))
    assert weir_rtc.compare(gcc, own, by="controller") == rows
    with pytest.raises(weir_rtc.WeirError, match=r"both gcc and nada .* steady \(6 runs of 1 sc"):
        weir_rtc.compare(both, by="controller", controllers="gcc,nada")
    with pytest.raises(weir_rtc.WeirError, match="nothing to compare.*after: steady"):
        weir_rtc.compare(gcc, own)
    with pytest.raises(weir_rtc.WeirError, match="name two controllers"):
        weir_rtc.compare(gcc, by="controller")


def test_controllers_in_python_give_the_same_runs_in_processes_and_in_this_one():
    apart, here = (weir_rtc.run(LOSSY, ["gcc", Steady], range(2), jobs=jobs) for jobs in (2, 1))
    for table in ("series", "events", "summaries"):
        tables = [pyarrow.table(getattr(runs, table)) for runs in (apart, here)]
        assert tables[0].equals(tables[1]), table
    assert apart.json() == here.json()


class Growing(weir_rtc.Controller):
    """Rises by itself, and leaves the receiver's limit to the default."""

    name = "growing"

    def on_packet_sent(self, now_us, sequence_number, size_bytes, queued_bytes):
        if self.next_timeout_us is None:
            self.next_timeout_us = now_us + 500_000

    def on_feedback(self, now_us, report):
        self.next_timeout_us = now_us + 500_000
        lost = sum(packet.arrival_time_us is None for packet in report.packets)
        self.target_bps *= 0.9 if lost > len(report.packets) / 2 else 1.05
        self.target_bps = min(max(self.target_bps, self.min_bps), self.max_bps)
        self.reason = "increase"

    def on_timeout(self, now_us):
        self.next_timeout_us = now_us + 500_000
        self.target_bps = max(self.target_bps * 0.8, self.min_bps)
        self.reason = "feedback lost"


def test_by_default_the_target_obeys_the_receivers_limit_from_then_on():
    check_controller(Growing, scripts=8)


def test_an_exception_of_a_controller_ends_the_run_and_is_raised():
    class Broken(weir_rtc.Controller):
        name = "broken"

        def on_feedback(self, now_us, report):
            raise ZeroDivisionError("my own")

    with pytest.raises(ZeroDivisionError, match="my own"):
        weir_rtc.run("demo/first-call", Broken)


def test_a_target_that_is_no_number_ends_the_run():
    class Lost(weir_rtc.Controller):
        name = "lost"

        def on_feedback(self, now_us, report):
            self.target_bps = float("nan")

    with pytest.raises(weir_rtc.WeirError, match="target_bps is NaN"):
        weir_rtc.run("demo/first-call", Lost)


def test_ctrl_c_stops_a_run():
    class Interrupting(weir_rtc.Controller):
        """Presses Ctrl-C in the middle of the first run: a timer may fire before it has begun."""

        name = "interrupting"
        pressed = 0

        def on_feedback(self, now_us, report):
            if Interrupting.pressed == 0:
                Interrupting.pressed = 1
                signal.raise_signal(signal.SIGINT)

    # A shell starts what runs in the background with this signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        # The 10,000 runs would take minutes.
        weir_rtc.run("lund/rmcat-ns3", Interrupting, range(10_000), jobs=1)
    assert Interrupting.pressed == 1


def test_a_session_asks_for_each_bitrate():
    [scenario] = weir_rtc.scenarios("demo/first-call")
    session = weir_rtc.Session(scenario, 1, 100, "gcc")
    seen = session.step()
    with pytest.raises(weir_rtc.WeirError, match="goes on"):
        session.result()
    steps = 0
    while seen is not None:
        assert seen.time_us == 100_000 * (steps + 1)
        seen = session.step(500_000)
        steps += 1
    assert steps == scenario.duration_s * 10 or steps == scenario.duration_s * 10 - 1
    result = session.result()
    assert json.loads(result.json()[0])["controller"] == "policy"
    with pytest.raises(weir_rtc.WeirError, match="finite"):
        session.step(float("nan"))


class Lowest(weir_rtc.Controller):
    name = "lowest"

    def on_feedback(self, now_us, report):
        self.target_bps = self.min_bps


def test_a_controller_in_python_is_scored_beside_one_of_the_library():
    found = weir_rtc.score(["rfc8867/5.1", "goals/edge/*"], ["gcc", Lowest], [1], own="lowest")
    by_name = {row["controller"]: row for row in found["controllers"]}
    assert list(by_name) == ["gcc", "lowest"]
    # It sends the lowest rate, and a regret grows with what is left of the link.
    assert by_name["lowest"]["regret"] > by_name["gcc"]["regret"]
    [contest] = found["contests"]
    assert contest["rival"] == "gcc" and contest["won_tied_lost"][0] == 0
    assert len(found["runs"]) % 2 == 0
    alone = weir_rtc.score("rfc8867/5.1", "gcc", [1], jobs=1)
    assert alone["runs"] == [run for run in found["runs"] if run["controller"] == "gcc"][:1]
    with pytest.raises(weir_rtc.WeirError, match="own is one of"):
        weir_rtc.score("rfc8867/5.1", "gcc", own="nada")
