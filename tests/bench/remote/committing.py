"""Staged rows with their commit, against the same rows told with a flush, in a server's process.

A row is an int, a text and a float. `commit` ends when the rows are on disk, `apply` when the actor
has them all, and has written its state; `tell` when the actor has handled them.
"""

import time
from itertools import count
from typing import Any

from callboard import Actor, ActorSystem
from callboard.remote import Connection, PersistentActor, connect
from remote.processes import server
from savina.result import Result

LIMIT = 120.0  # seconds


class Told(Actor[Any]):
    """Adds up what it is told."""

    def __init__(self) -> None:
        self.rows = self.total = 0

    def receive(self, row: Any) -> Any:
        if row == "report":
            return [self.rows, self.total]
        self.rows += 1
        self.total += row[0]
        return None


class Kept(PersistentActor):
    """Adds up what is committed."""

    def __init__(self) -> None:
        self.rows = self.total = 0

    def apply(self, row: Any) -> None:
        self.rows += 1
        self.total += row[0]

    def answer(self, query: Any) -> Any:
        return [self.rows, self.total]

    def snapshot(self) -> Any:
        return [self.rows, self.total]

    def restore(self, state: Any) -> None:
        self.rows, self.total = state


def build(system: ActorSystem) -> dict[str, Any]:
    return {"told": system.spawn(Told), "kept": system.spawn(Kept)}


def tell(connection: Connection, rows: list[Any], batch: int) -> str:
    connection.ref("told").tell_many(rows)
    connection.flush()
    return "told"


def commit(connection: Connection, rows: list[Any], batch: int) -> str:
    with connection.upload("kept", job="bench", batch=batch) as upload:
        upload.send_many(rows)
    assert upload.staged is not None
    connection.commit("bench", batch, [upload.staged])
    return "kept"


def apply(connection: Connection, rows: list[Any], batch: int) -> str:
    entry = commit(connection, rows, batch)
    settle(connection)
    return entry


def settle(connection: Connection) -> None:
    """Wait until all that is committed is applied."""
    while connection.health().result(LIMIT).get("unapplied"):
        time.sleep(0.001)


def run(size: int, by: str = "commit", batches: int = 5) -> Result:
    """Send `size` rows in each of some batches, after one that warms up."""
    rows = [(number, f"name {number}", number * 0.5) for number in range(size)]
    way = {"tell": tell, "commit": commit, "apply": apply}[by]
    numbers = count()
    with (
        server("remote.committing", state=True) as (url, _),
        connect(url, timeout=LIMIT) as connection,
    ):
        entry = way(connection, rows, next(numbers))
        settle(connection)
        begin = time.perf_counter()
        for _ in range(batches):
            way(connection, rows, next(numbers))
        seconds = time.perf_counter() - begin
        settle(connection)
        got = connection.ref(entry).ask("report").result(LIMIT)
    sent = batches + 1
    return Result(batches * size, seconds, got, [sent * size, sent * sum(range(size))])
