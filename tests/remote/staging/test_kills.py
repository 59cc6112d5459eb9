"""A server process that is killed at random moments: nothing committed is lost, nothing doubled.

CALLBOARD_KILLS says how often (10), CALLBOARD_KILLS_SEED from which seed on (0).
"""

import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard.remote import Connection, ConnectionLost, NotStaged, Winner, connect

KILLS = int(os.environ.get("CALLBOARD_KILLS", "10"))
SEED = int(os.environ.get("CALLBOARD_KILLS_SEED", "0"))
PARTITIONS, ROWS = 3, 700  # in each batch
DEADLINE = 60.0

APP = """
import sqlite3
from callboard import Actor
from callboard.remote import Persistent, with_keys

class Totals(Persistent):
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


class Process:
    """`python -m callboard serve`, on the same socket and state each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"unix:{folder}/s"
        (folder / "app.py").write_text(APP)
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "callboard", "serve", "app:build", "--bind", self.url]
        options = ["--state", "state", "--max-staged-memory", "4000", "--log-level", "ERROR"]
        self.process = subprocess.Popen(
            [*command, *options], cwd=self.folder, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"serving on {self.url}\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Driver(threading.Thread):
    """Commits one batch after the other, whatever happens to the server."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.steps = 0
        self.moved = threading.Condition()
        self.attempts = 0
        self.batches = 0
        self.ends = False
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.ends:
                self.deliver(self.batches)
                self.batches += 1
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.step()

    def deliver(self, batch: int) -> None:
        winners: list[Winner] | None = None
        while True:
            try:
                with connect(self.url, timeout=DEADLINE) as connection:
                    while True:
                        if winners is None:
                            winners = self.stage_all(connection, batch)
                        try:
                            connection.commit("job", batch, winners)
                            self.step()
                            connection.commit("job", batch, winners)
                        except NotStaged:
                            winners = None
                        else:
                            self.step()
                            return
            except ConnectionLost:
                continue

    def stage_all(self, connection: Connection, batch: int) -> list[Winner]:
        winners = []
        for partition in range(PARTITIONS):
            self.attempts += 1
            first = (batch * PARTITIONS + partition) * ROWS
            entry = "outside" if partition == 2 else "totals"
            self.step()
            with connection.stage(
                entry, job="job", batch=batch, partition=partition, attempt=self.attempts
            ) as stage:
                self.step()
                for part in range(first, first + ROWS, 100):
                    stage.send_many(range(part, part + 100))
                self.step()
            assert stage.staged is not None
            winners.append(stage.staged)
        self.step()
        return winners

    def step(self) -> None:
        with self.moved:
            self.steps += 1
            self.moved.notify_all()

    def wait(self, step: int) -> None:
        with self.moved:
            assert self.moved.wait_for(
                lambda: self.steps >= step or self.error is not None, DEADLINE
            )
        assert self.error is None


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path)
    yield process
    process.kill()


@pytest.mark.timeout(120 + 10 * KILLS)
def test_a_server_that_is_killed_loses_and_doubles_nothing(process: Process) -> None:
    driver = Driver(process.url)
    driver.start()
    try:
        for kill in range(KILLS):
            chance = random.Random(SEED + kill)
            driver.wait(driver.steps + chance.randint(1, 20))
            end = time.perf_counter() + chance.uniform(0.0, 0.003)
            while time.perf_counter() < end:  # not asleep: the moment is to be anywhere
                pass
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
