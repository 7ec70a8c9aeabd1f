"""Dumps in an object store: S3, as moto serves it over HTTP, and fsspec's own memory."""

import gzip
import io
import tarfile
import urllib.request
from pathlib import Path

import duckdb
import pytest
from weir_rtc import WeirError, fleet, fleet_sources

DUMPS = Path(__file__).parents[3] / "lab/analyze/tests/dumps"
SOME = ("drop.rtcstats.gz", "free.rtcstats.gz", "cpu.rtcstats.gz")


def sources(lake, status):
    rows = duckdb.sql(
        f"select source from '{lake}/calls/*.parquet' where status = '{status}' order by 1"
    ).fetchall()
    return [row[0] for row in rows]


@pytest.fixture
def bucket(monkeypatch):
    """An empty bucket of a server on this machine, and fsspec's view of it."""
    pytest.importorskip("moto", reason="pip install 'moto[server]'")
    s3fs = pytest.importorskip("s3fs", reason="pip install s3fs")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    # Its buckets outlive a server.
    reset = urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")
    urllib.request.urlopen(reset).close()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem()
    store.mkdir("calls")
    yield store
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def test_a_bucket_of_dumps_and_archives_is_analyzed_once(bucket, tmp_path):
    for name in SOME[:2]:
        bucket.pipe(f"calls/2026/11/{name}", (DUMPS / name).read_bytes())
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(DUMPS / SOME[2], f"inner/{SOME[2]}")
    bucket.pipe("calls/2026/more.tar.gz", packed.getvalue())
    bucket.pipe("calls/2026/cut.zip", b"PK\x03\x04")
    lake = tmp_path / "lake"
    counts = fleet.analyze(["s3://calls/2026/**"], lake)
    assert (counts.analyzed, counts.failed) == (3, 1)
    assert sources(lake, "analyzed") == [
        "s3://calls/2026/11/drop.rtcstats.gz",
        "s3://calls/2026/11/free.rtcstats.gz",
        "s3://calls/2026/more.tar.gz!inner/cpu.rtcstats.gz",
    ]
    assert sources(lake, "failed") == ["s3://calls/2026/cut.zip"]
    again = fleet.analyze(["s3://calls"], lake)
    assert (again.analyzed, again.failed, again.kept) == (0, 0, 4)


def test_a_bucket_that_is_not_there_is_one_line(bucket, tmp_path):
    with pytest.raises(WeirError, match="s3://nobodys/"):
        fleet.analyze(["s3://nobodys/x"], tmp_path / "lake")
    with pytest.raises(WeirError, match="no such file, folder or pattern"):
        fleet.analyze(["s3://calls/none/*.gz"], tmp_path / "lake")


def test_many_files_of_a_store_are_fetched_together_and_none_is_lost(tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="pip install fsspec")
    memory = fsspec.filesystem("memory")
    text = gzip.decompress((DUMPS / "free.rtcstats.gz").read_bytes())
    count = 2 * fleet_sources.FETCHED + 5
    for number in range(count):
        memory.pipe(f"/many/{number:03}", text + f'["note",null,{number},1]\n'.encode())
    memory.pipe("/many/.hidden", text)
    counts = fleet.analyze(["memory://many"], tmp_path / "lake")
    assert (counts.analyzed, counts.failed, counts.duplicate) == (count, 0, 0)
    names = sources(tmp_path / "lake", "analyzed")
    assert names[0] == "memory:///many/000" and len(set(names)) == count


def test_without_fsspec_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(WeirError, match="weir-rtc\\[store\\]"):
        fleet.analyze(["s3://calls"], tmp_path / "lake")
