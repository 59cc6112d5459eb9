"""Servers in this process that are shards of one."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.remote import (
    PersistentActor,
    Server,
    ShardedConnection,
    connect_sharded,
    serve_entries,
)

SHARDS = 3
DEADLINE = 60.0


class Notes(Actor[Any]):
    """Keeps what it is told; asked for "all", it answers with that."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def receive(self, message: Any) -> Any:
        if message == "all":
            return self.notes
        self.notes += message.to_pylist() if hasattr(message, "to_pylist") else [message]
        return None


class Kept(PersistentActor):
    """Keeps its rows, those of batches one by one."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def apply(self, row: Any) -> None:
        self.rows += row.to_pylist() if hasattr(row, "to_pylist") else [row]

    def answer(self, query: Any) -> Any:
        return self.rows

    def snapshot(self) -> Any:
        return self.rows

    def restore(self, state: Any) -> None:
        self.rows = state


class Servers:
    """Shards, each with a system of its own, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ends = [ExitStack() for _ in range(SHARDS)]
        self.urls = [f"unix:{folder}/{index}" for index in range(SHARDS)]
        for index in range(SHARDS):
            self.start(index)

    def start(self, index: int, shard: str | None = None, *, keyed: bool = True) -> None:
        ends = self.ends[index]
        system = ends.enter_context(ActorSystem(workers=1))
        entries = serve_entries({"notes": system.spawn(Notes), "kept": system.spawn(Kept)})
        server = Server(
            system,
            entries,
            self.urls[index],
            state=self.folder / f"state-{index}",
            shard=(shard or f"{index}/{SHARDS}") if keyed else None,
        )
        ends.callback(server.stop)

    def stop(self, index: int) -> None:
        self.ends[index].close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    servers = Servers(tmp_path)
    yield servers
    for index in range(SHARDS):
        servers.stop(index)


@pytest.fixture
def connection(servers: Servers) -> Iterator[ShardedConnection]:
    connection = connect_sharded(servers.urls, timeout=DEADLINE)
    yield connection
    connection.close()
