"""Dumps of many calls, analyzed by the workers of a Dask scheduler."""

import gzip
import os
import signal
import zipfile
from pathlib import Path

import duckdb
import pytest
from weir_rtc import WeirError, fleet

distributed = pytest.importorskip("distributed")

DUMPS = Path(__file__).parents[3] / "lab/analyze/tests/dumps"


@pytest.fixture
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as made:
        yield made


def rows(lake, table):
    return duckdb.sql(f"select * from '{lake}/{table}/*.parquet' order by all").fetchall()


def test_the_workers_of_a_scheduler_find_what_the_threads_of_this_machine_find(tmp_path, cluster):
    with zipfile.ZipFile(tmp_path / "dumps.zip", "w") as archive:
        archive.write(DUMPS / "loss.rtcstats.gz", "loss.gz")
        archive.writestr("noise", b"no dump at all")
    given = [tmp_path / "dumps.zip", str(DUMPS / "*.rtcstats.gz"), str(DUMPS / "*.log.gz")]
    here = fleet.analyze(given, tmp_path / "here")
    there = fleet.analyze(given, tmp_path / "there", scheduler=cluster.scheduler_address)
    assert (there.analyzed, there.failed, there.duplicate) == (here.analyzed, here.failed, 1)
    for table in fleet.TABLES:
        assert rows(tmp_path / "there", table) == rows(tmp_path / "here", table), table
    again = fleet.analyze(given, tmp_path / "there", scheduler=cluster.scheduler_address)
    assert (again.analyzed, again.failed) == (0, 0)


def test_a_worker_that_is_killed_costs_nothing(tmp_path, cluster):
    text = gzip.decompress((DUMPS / "free.rtcstats.gz").read_bytes())
    (tmp_path / "in").mkdir()
    for number in range(400):
        (tmp_path / f"in/{number:03}").write_bytes(text + f'["note",null,{number},1]\n'.encode())
    with distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
    killed = []

    def kill_once(counts):
        if not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(counts.analyzed)

    counts = fleet.analyze(
        [tmp_path / "in"],
        tmp_path / "lake",
        scheduler=cluster.scheduler_address,
        progress=kill_once,
    )
    assert killed and killed[0] < 400
    assert counts.analyzed == 400
    [(count,)] = duckdb.sql(f"select count(*) from '{tmp_path}/lake/calls/*.parquet'").fetchall()
    assert count == 400


def test_what_is_no_address_of_a_scheduler_is_one_line(tmp_path):
    with pytest.raises(WeirError, match="no address of a scheduler"):
        fleet.analyze([DUMPS / "free.rtcstats.gz"], tmp_path / "lake", scheduler="nonsense://x")
