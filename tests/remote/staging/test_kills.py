"""A server process that is killed at random moments: nothing committed is lost, nothing doubled.

CALLBOARD_KILLS says how often (10), CALLBOARD_KILLS_SEED from which seed on (0).
"""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard.remote import connect
from tests.remote.staging.killing import DEADLINE, KILLS, PARTITIONS, ROWS, SEED, Driver, Process

APP = """
import sqlite3
from callboard import Actor
from callboard.remote import PersistentActor, with_keys

class Totals(PersistentActor):
    snapshot_every = 2

    def __init__(self):
        self.rows = self.total = self.squares = 0
        self.last = (-1, -1, -1)
        self.is_ordered = True

    def apply(self, row):
        self.rows += 1
        self.total += row
        self.squares += row * row
        at = (self.key.batch, self.key.partition, self.key.row)
        self.is_ordered &= at > self.last
        self.last = at

    def answer(self, query):
        return [self.rows, self.total, self.squares, self.is_ordered]

    def snapshot(self):
        return [self.rows, self.total, self.squares, self.last, self.is_ordered]

    def restore(self, state):
        self.rows, self.total, self.squares, self.last, self.is_ordered = state

class Outside(Actor):
    def __init__(self):
        # Any worker may handle the next row, one at a time.
        self.database = sqlite3.connect(
            "outside.db", isolation_level=None, check_same_thread=False
        )
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = OFF")
        self.database.execute("CREATE TABLE IF NOT EXISTS seen (key TEXT PRIMARY KEY, value)")
        self.database.execute("CREATE TABLE IF NOT EXISTS came (value)")

    def receive(self, row):
        key = repr(tuple(row.key))
        self.database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (key, row.value))
        self.database.execute("INSERT INTO came VALUES (?)", (row.value,))

def build(system):
    return {"totals": system.spawn(Totals), "outside": with_keys(system.spawn(Outside))}
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path, APP)
    yield process
    process.kill()


@pytest.mark.timeout(120 + 10 * KILLS)
def test_a_server_that_is_killed_loses_and_doubles_nothing(process: Process) -> None:
    driver = Driver(process.url)
    driver.start()
    try:
        for kill in range(KILLS):
            driver.wait_for_a_moment(random.Random(SEED + kill))
            process.kill()
            process.start()
    finally:
        driver.ends = True
        driver.join(DEADLINE)
    assert driver.error is None
    assert driver.batches > 0
    with connect(process.url, timeout=DEADLINE) as connection:
        while (health := connection.health().result(DEADLINE))["unapplied"]:
            assert health["state"] == "serving", health["trouble"]
        totals = connection.ref("totals").ask("all").result(DEADLINE)
        health = connection.health().result(DEADLINE)
    parts = [
        range((batch * PARTITIONS + partition) * ROWS, (batch * PARTITIONS + partition + 1) * ROWS)
        for batch in range(driver.batches)
        for partition in range(PARTITIONS)
    ]
    rows = [row for at, part in enumerate(parts) if at % PARTITIONS < 2 for row in part]
    assert totals == [len(rows), sum(rows), sum(row * row for row in rows), True]
    assert (health["state"], health["committed"]) == ("serving", driver.batches)
    outside = [row for at, part in enumerate(parts) if at % PARTITIONS == 2 for row in part]
    process.kill()
    database = sqlite3.connect(process.folder / "outside.db")
    seen = [value for (value,) in database.execute("SELECT value FROM seen ORDER BY value")]
    (came,) = database.execute("SELECT count(*) FROM came").fetchone()
    database.close()
    assert seen == outside
    print(
        f"{KILLS} kills: {driver.batches} batches, {driver.attempts} attempts at partitions, "
        f"{len(rows)} rows of state, {came - len(seen)} of {came} effects repeated"
    )
