"""Real Spark for these tests: a session serves all tests that need one like it, in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the spark extra is not installed")

from pyspark.sql import SparkSession

from callboard import ActorSystem
from callboard.remote import Server, serve_entries
from callboard.spark import register, session

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # for `graphs`, `jobs` and `sums`; the workers import the first, too

CONF: dict[str, Any] = {
    "spark.executorEnv.PYTHONPATH": str(HERE),  # workers import the module `graphs`
    "spark.log.level": "OFF",  # most of these tests make Spark fail
    # A cluster's first job waits for all executors: it would run on the first one else.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.sql.shuffle.partitions": 2,
}


_kept: dict[str, SparkSession] = {}  # the session that runs, by what it was asked for


def start(master: str, **more: str) -> SparkSession:
    """Return a session of our own, the last one if it is like that; another is stopped."""
    wanted = f"{master} {more}"
    active = SparkSession.getActiveSession()
    if active is not None:
        if _kept.get(wanted) is active:
            return active
        active.stop()
    _kept.clear()
    _kept[wanted] = session(master, "tests", **CONF, **more)
    return _kept[wanted]


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """Two tasks at a time in the driver's own JVM; a failed task fails its job at once."""
    return start("local[2]")


@pytest.fixture(scope="module")
def in_new_york() -> SparkSession:
    """Two tasks at a time, in processes whose local time is New York's."""
    return start("local[2]", **{"spark.executorEnv.TZ": "America/New_York"})


@pytest.fixture(scope="module")
def retrying() -> SparkSession:
    """Two tasks at a time; a failed task is tried up to three times."""
    return start("local[2,3]")


@pytest.fixture
def known(retrying: SparkSession) -> SparkSession:
    """Such a session, which knows `format("callboard")`."""
    register(retrying)
    return retrying


@pytest.fixture(scope="module")
def cluster() -> SparkSession:
    """Two executors, each a process of its own; a failed task is tried up to four times."""
    return start("local-cluster[2,1,1024]")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a server that has the entries `sums`, `echo` and `kinds`."""
    from sums import Echo, Kinds, Sums

    with ActorSystem(workers=1) as system:
        entries = serve_entries(
            {"sums": system.spawn(Sums), "echo": system.spawn(Echo), "kinds": system.spawn(Kinds)}
        )
        server = Server(system, entries, f"unix:{tmp_path}/s", state=tmp_path / "state")
        yield str(server.address)
        server.stop()


@pytest.fixture
def failure_of() -> Callable[[Callable[[], object]], str]:
    """Run a job that must fail, and return what the driver shows of it."""

    def run(job: Callable[[], object]) -> str:
        try:
            job()
        except Exception as error:  # its class depends on the path
            return str(error)
        pytest.fail("the job did not fail")

    return run
