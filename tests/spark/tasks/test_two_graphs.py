"""A task that runs one graph inside another, called directly, as is allowed outside of Spark."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import graphs
from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import PartitionContext, map_partitions
from callboard.spark.errors import PartitionFailed


def test_two_graphs_of_one_task_may_have_the_same_names_and_different_settings() -> None:
    inner = map_partitions(graphs.echo, workers=1, batch_size=2)
    outer = map_partitions(graphs.echo, workers=2, batch_size=3)
    assert list(outer(inner(range(10)))) == list(range(10))


class Second(Actor[Any]):
    """Answers one batch, and is stuck in the next until the test is over."""

    over = threading.Event()
    stuck = threading.Event()

    def receive(self, message: Any) -> Any:
        if message != [0]:
            self.stuck.set()
            self.over.wait()
        return message


def second(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Second)


def test_an_actor_that_is_stuck_in_an_abandoned_graph_does_not_hold_up_the_other() -> None:
    some = map_partitions(second, batch_size=1, in_flight=2)
    count = map_partitions(graphs.tally, flush=True, drain_timeout=60.0)

    def first_of_them() -> Iterator[int]:
        results = some(range(9))
        yield next(results)
        assert Second.stuck.wait(60)
        results.close()  # type: ignore[attr-defined]

    try:
        assert next(count(first_of_them()))[3] == 1
        assert next(count(range(5)))[3] == 5, "the next task has a system"
    finally:
        Second.over.set()


def test_a_failure_in_one_graph_fails_the_task_and_leaves_nothing_to_the_next() -> None:
    inner = map_partitions(graphs.refuse)
    count = map_partitions(graphs.tally, flush=True)
    with pytest.raises(PartitionFailed, match="'/refuse' failed"):
        list(count(inner(range(5))))
    assert next(count(range(5)))[3] == 5


def test_the_first_opened_of_two_graphs_is_kept() -> None:
    list(map_partitions(graphs.echo)([]))  # so that none is kept from an earlier test
    count = map_partitions(graphs.kept_tally, flush=True, lifetime="process")
    inner = map_partitions(graphs.echo, lifetime="process", batch_size=2)
    assert list(count(inner(range(3)))) == [(os.getpid(), 3, (0,))]
    assert list(count(range(2))) == [(os.getpid(), 5, (0, 0))]


def test_a_graph_that_ends_after_the_one_that_was_opened_first_leaves_no_threads() -> None:
    echo = map_partitions(graphs.echo, batch_size=1)
    assert list(echo([1])) == [1]
    before = set(threading.enumerate())
    first, second = echo(range(3)), echo(range(3))
    assert [next(first), next(second)] == [0, 0]
    assert list(first) == [1, 2]
    assert list(second) == [1, 2]
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def test_the_garbage_collector_is_held_back_until_the_last_graph_ends() -> None:
    echo = map_partitions(graphs.echo, batch_size=1)
    before = gc.get_threshold()
    first, second = echo(range(3)), echo(range(3))
    assert [next(first), next(second)] == [0, 0]
    assert list(first) == [1, 2]
    assert gc.get_threshold()[0] > before[0]
    assert list(second) == [1, 2]
    assert gc.get_threshold() == before
