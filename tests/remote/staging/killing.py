"""A server process that is killed, and a driver that keeps committing to it.

CALLBOARD_KILLS says how often (10), CALLBOARD_KILLS_SEED from which seed on (0).
"""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from callboard.remote import Connection, StagedAttempt, connect
from callboard.remote.errors import ConnectionLost, NotUploaded

KILLS = int(os.environ.get("CALLBOARD_KILLS", "10"))
SEED = int(os.environ.get("CALLBOARD_KILLS_SEED", "0"))
PARTITIONS, ROWS = 3, 700  # in each batch
DEADLINE = 60.0


class Process:
    """`python -m callboard serve`, on the same socket and state each time."""

    def __init__(self, folder: Path, app: str) -> None:
        self.folder = folder
        self.url = f"unix:{folder}/s"
        (folder / "app.py").write_text(app)
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
        winners: list[StagedAttempt] | None = None
        while True:
            try:
                with connect(self.url, timeout=DEADLINE) as connection:
                    while True:
                        if winners is None:
                            winners = self.upload_all(connection, batch)
                        try:
                            connection.commit("job", batch, winners)
                            self.step()
                            connection.commit("job", batch, winners)
                        except NotUploaded:
                            winners = None
                        else:
                            self.step()
                            return
            except ConnectionLost:
                continue

    def upload_all(self, connection: Connection, batch: int) -> list[StagedAttempt]:
        winners = []
        for partition in range(PARTITIONS):
            self.attempts += 1
            first = (batch * PARTITIONS + partition) * ROWS
            entry = "outside" if partition == 2 else "totals"
            self.step()
            with connection.upload(
                entry, job="job", batch=batch, partition=partition, attempt=self.attempts
            ) as upload:
                self.step()
                for part in range(first, first + ROWS, 100):
                    upload.send_many(range(part, part + 100))
                self.step()
            assert upload.staged is not None
            winners.append(upload.staged)
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

    def wait_for_a_moment(self, chance: random.Random) -> None:
        """Wait for a few steps, and into one."""
        self.wait(self.steps + chance.randint(1, 20))
        end = time.perf_counter() + chance.uniform(0.0, 0.003)
        while time.perf_counter() < end:  # not asleep: the moment is to be anywhere
            pass
