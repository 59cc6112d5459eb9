"""A server that is killed at random moments: rows that its actor publishes are read once.

CALLBOARD_KILLS says how often (10), CALLBOARD_KILLS_SEED from which seed on (0).
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard.remote import connect
from tests.remote.staging.killing import DEADLINE, KILLS, PARTITIONS, ROWS, SEED, Driver, Process

pytest.importorskip("pyarrow")

APP = """
import pyarrow as pa
from callboard.remote import PersistentActor

class Echo(PersistentActor):
    published = pa.schema([("row", pa.int64()), ("number", pa.int64())])

    def __init__(self):
        self.count = 0

    def apply(self, row):
        self.publish((row, self.count))
        self.count += 1

    def snapshot(self):
        return self.count

    def restore(self, state):
        self.count = state

def build(system):
    return {"totals": system.spawn(Echo), "outside": system.spawn(Echo)}
"""


class Reader:
    """Reads what there is, and releases some of it behind itself."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.rows: list[int] = []

    def go_on(self, chance: random.Random) -> None:
        with connect(self.url, timeout=DEADLINE) as connection:
            published = connection.published("totals")
            start, end = len(self.rows), published.latest()
            for batch in published.read(start, end):
                assert batch.column("number").to_pylist() == [
                    *range(len(self.rows), len(self.rows) + batch.num_rows)
                ]
                self.rows += batch.column("row").to_pylist()
            released = chance.randint(0, end)
            published.release(released)
            assert published.earliest() >= released


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path, APP)
    yield process
    process.kill()


@pytest.mark.timeout(120 + 10 * KILLS)
def test_rows_that_a_killed_server_published_are_read_once(process: Process) -> None:
    driver, reader = Driver(process.url), Reader(process.url)
    driver.start()
    try:
        for kill in range(KILLS):
            chance = random.Random(SEED + kill)
            driver.wait_for_a_moment(chance)
            process.kill()
            process.start()
            reader.go_on(chance)
    finally:
        driver.ends = True
        driver.join(DEADLINE)
    assert driver.error is None
    with connect(process.url, timeout=DEADLINE) as connection:
        while (health := connection.health().result(DEADLINE))["unapplied"]:
            assert health["state"] == "serving", health["trouble"]
    reader.go_on(random.Random(SEED))
    assert reader.rows == [
        row
        for batch in range(driver.batches)
        for row in range(batch * PARTITIONS * ROWS, (batch * PARTITIONS + 2) * ROWS)
    ]
    assert len(reader.rows) > 0
