"""Whether another controller would have helped: the networks of the calls of a lake, simulated."""

import gzip
import tarfile
from pathlib import Path

import pytest
from weir_rtc import WeirError, fleet
from weir_rtc.fleet_numbers import connect
from weir_rtc.fleet_report import Asked, write
from weir_rtc.fleet_what_if import CALLS_MAX, of_calls, scenario_of

DUMPS = Path(__file__).parents[3] / "lab/analyze/tests/dumps"


def lake_of(tmp_path, *names):
    """A lake of these dumps, of which the first is in an archive."""
    with tarfile.open(tmp_path / "dumps.tar.gz", "w:gz") as archive:
        archive.add(DUMPS / names[0], names[0])
    fleet.analyze(
        [tmp_path / "dumps.tar.gz", *[DUMPS / name for name in names[1:]]], tmp_path / "lake"
    )
    return tmp_path / "lake"


def test_each_controller_has_an_answer_for_each_limited_call(tmp_path):
    lake = lake_of(tmp_path, "drop.rtcstats.gz", "loss.rtcstats.gz", "free.rtcstats.gz")
    found = of_calls(connect(lake, None), 10, "gcc,sluice")
    # The call that nothing limited is not simulated.
    assert (len(found.answers), found.failed) == (2, [])
    for answer in found.answers:
        assert list(answer) == ["gcc", "sluice"]
        for outcome in answer.values():
            assert 0.0 <= outcome.good_ratio <= 1.0 and outcome.rate_kbps > 30
    assert of_calls(connect(lake, None), 10, "gcc,sluice") == found
    assert len(of_calls(connect(lake, None), 1, "gcc").answers) == 1
    assert found.changed("gcc") == (0, 0)


def test_the_capture_of_a_pipeline_has_an_answer_by_a_simulated_pipeline(tmp_path):
    lake = lake_of(tmp_path, "full.pcapng.gz")
    found = of_calls(connect(lake, None), 5, "gcc,sluice")
    assert (len(found.answers), found.failed) == (1, [])
    # The call's path carried 600 kbit/s.
    assert 400 < found.answers[0]["gcc"].rate_kbps < 620
    flow = scenario_of(str(DUMPS / "full.pcapng.gz")).text
    assert 'driver = "pipeline"' in flow


def test_the_report_has_the_answers_and_says_that_they_are_simulated(tmp_path):
    lake = lake_of(tmp_path, "drop.rtcstats.gz")
    write(Asked(lake, tmp_path / "fleet.html", what_if=5, controllers="gcc,sluice"))
    page = (tmp_path / "fleet.html").read_text()
    assert "Simulated, not called" in page and "<td>sluice</td>" in page
    write(Asked(lake, tmp_path / "without.html"))
    assert "Would another controller" not in (tmp_path / "without.html").read_text()


def test_a_lake_without_a_limited_call_says_so(tmp_path):
    write(Asked(lake_of(tmp_path, "free.rtcstats.gz"), tmp_path / "fleet.html", what_if=5))
    assert "No call of this lake was limited" in (tmp_path / "fleet.html").read_text()


def test_dumps_that_are_gone_are_named_and_too_many_calls_refused(tmp_path):
    lake = lake_of(tmp_path, "drop.rtcstats.gz")
    (tmp_path / "dumps.tar.gz").unlink()
    [(source, error)] = of_calls(connect(lake, None), 5, "gcc").failed
    assert source.endswith("!drop.rtcstats.gz") and "no such file" in error
    write(Asked(lake, tmp_path / "fleet.html", what_if=5))
    assert "No network could be estimated" in (tmp_path / "fleet.html").read_text()
    for count in (0, CALLS_MAX + 1):
        with pytest.raises(WeirError, match="--what-if takes"):
            of_calls(connect(lake, None), count)


def test_a_member_that_an_archive_lacks_is_an_error(tmp_path):
    with tarfile.open(tmp_path / "dumps.tar", "w") as archive:
        archive.add(DUMPS / "free.rtcstats.gz", "free.gz")
    assert scenario_of(f"{tmp_path}/dumps.tar!free.gz").flows
    with pytest.raises(WeirError, match="other"):
        scenario_of(f"{tmp_path}/dumps.tar!other.gz")
    (tmp_path / "noise.gz").write_bytes(gzip.compress(b"no dump at all"))
    with pytest.raises(WeirError, match="none of the known formats"):
        scenario_of(f"{tmp_path}/noise.gz")
