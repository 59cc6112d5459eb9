"""An entry point of a task is any recipient: a ref to another process, or a user's object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem, ConfigError, Future
from callboard.remote import Server, connect, connect_sharded, serve_entries
from callboard.routers import RoundRobinRouter
from callboard.spark import PartitionContext, map_partitions
from callboard.spark.tasks.feed import entry_point


class Repeating(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a server, the only shard, that has the entry `echo`."""
    with ActorSystem(workers=1) as system:
        entries = serve_entries({"echo": system.spawn(Repeating)})
        server = Server(system, entries, f"unix:{tmp_path}/s", shard="0/1")
        yield str(server.address)
        server.stop()


class Doubling:
    """Answers each batch with its rows, twice."""

    name = "doubling"

    def tell(self, message: Any) -> None: ...

    def tell_many(self, messages: Iterable[Any]) -> None: ...

    def ask(self, message: Any, timeout: float | None = None) -> Future[Any]:
        answer: Future[Any] = Future()
        answer.set_result(message + message)
        return answer


def test_a_task_asks_an_object_of_ones_own() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> Any:
        return Doubling()

    assert list(map_partitions(build, batch_size=2)([1, 2, 3])) == [1, 2, 1, 2, 3, 3]


def test_a_task_asks_an_entry_point_of_a_server(url: str) -> None:
    def build(system: ActorSystem, context: PartitionContext) -> Any:
        return {"there": connect(url).ref("echo")}

    assert list(map_partitions(build, entry="there", batch_size=2)([1, 2, 3])) == [1, 2, 3]


def test_a_task_asks_the_shards_of_its_batches(url: str) -> None:
    def build(system: ActorSystem, context: PartitionContext) -> Any:
        return connect_sharded([url]).ref("echo", by=lambda batch: batch[0])

    assert list(map_partitions(build, batch_size=2)([1, 2, 3])) == [1, 2, 3]


def test_a_task_asks_a_router_and_its_batches_keep_their_order() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> Any:
        return RoundRobinRouter.spawn(system, Repeating, routees=3)

    assert list(map_partitions(build, batch_size=2)(range(20))) == [*range(20)]


@pytest.mark.parametrize("built", [Doubling, {"one": print}])
def test_an_entry_point_takes_messages(built: Any) -> None:
    with pytest.raises(ConfigError, match="a ref or another recipient, or a dict of names"):
        entry_point(built, None)
