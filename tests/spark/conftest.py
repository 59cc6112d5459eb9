"""Real Spark for these tests: one session a module, on the interpreter that runs the tests."""

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
from callboard.spark import session

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # for `graphs` and `sums`; the workers import the first, too

CONF: dict[str, Any] = {
    "spark.executorEnv.PYTHONPATH": str(HERE),  # workers import the module `graphs`
    "spark.log.level": "OFF",  # most of these tests make Spark fail
    # A cluster's first job waits for all executors: it would run on the first one else.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.sql.shuffle.partitions": 2,
}


def start(master: str, **more: str) -> SparkSession:
    """Make a session of our own, with whatever was active before stopped."""
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    return session(master, "tests", **CONF, **more)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two tasks at a time in the driver's own JVM; a failed task fails its job at once."""
    started = start("local[2]")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def in_new_york() -> Iterator[SparkSession]:
    """Two tasks at a time, in processes whose local time is New York's."""
    started = start("local[2]", **{"spark.executorEnv.TZ": "America/New_York"})
    yield started
    started.stop()


@pytest.fixture(scope="module")
def retrying() -> Iterator[SparkSession]:
    """Two tasks at a time; a failed task is tried up to three times."""
    started = start("local[2,3]")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkSession]:
    """Two executors, each a process of its own; a failed task is tried up to four times."""
    started = start("local-cluster[2,1,1024]")
    yield started
    started.stop()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a server that has the entries `sums`, `echo` and `kinds`."""
    from sums import Echo, Kinds, Sums

    with ActorSystem(workers=1) as system:
        entries = serve_entries(
            {
                "sums": system.spawn(Sums),
                "echo": system.spawn(Echo),
                "kinds": system.spawn(Kinds),
            }
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
