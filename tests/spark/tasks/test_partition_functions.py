"""The partition functions called directly, as is allowed outside of Spark: no JVM is needed."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

import pytest

import graphs
from callboard import Actor, ActorRef, ActorSystem, Supervision
from callboard.core.errors import CallboardError, ConfigError, DrainTimeout
from callboard.spark import (
    PartitionContext,
    PartitionEnd,
    foreach_partition,
    map_in_arrow,
    map_partitions,
)
from callboard.spark.errors import (
    CaptureError,
    OrderError,
    PartitionFailed,
    SchemaError,
)
from callboard.supervision import Directive


@pytest.fixture(autouse=True)
def no_kept_graph() -> None:
    """Run another graph, so that none is kept from an earlier test."""
    foreach_partition(graphs.echo)([])


def test_rows_come_back_in_their_order_and_none_is_lost() -> None:
    rows = list(range(1000))
    assert list(map_partitions(graphs.echo, batch_size=7)(rows)) == rows


def test_an_empty_partition_has_no_results() -> None:
    assert list(map_partitions(graphs.echo)([])) == []


def test_an_entry_point_gets_lists_of_batch_size_rows() -> None:
    sizes = map_partitions(lambda system, context: system.spawn(Sizes), batch_size=4)(
        iter(range(10))
    )
    assert list(sizes) == [(list, 4), (list, 4), (list, 2)]


class Sizes(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return [(type(message), len(message))]


def test_the_answer_to_the_end_of_the_partition_ends_the_results() -> None:
    (answer,) = map_partitions(graphs.tally, flush=True, batch_size=3)(range(10))
    assert answer[3] == 10


def test_a_graph_without_flush_never_sees_the_end_of_the_partition() -> None:
    assert PartitionEnd not in list(map_partitions(graphs.echo)([1, 2]))


def test_an_input_that_ends_short_ends_as_a_whole_one_does() -> None:
    """Spark ends a partition's input so when something upstream fails."""
    whole = iter(range(10))
    (answer,) = map_partitions(graphs.tally, flush=True, batch_size=3)(islice(whole, 7))
    assert answer[3] == 7
    assert list(whole) == [7, 8, 9]


def test_an_error_of_the_input_is_raised_as_it_is_and_shows_no_end_to_the_actors() -> None:
    def rows() -> Iterator[int]:
        yield from range(4)
        assert Listen.heard.wait(60)
        raise EOFError("the other side is gone")

    with pytest.raises(EOFError, match="the other side is gone"):
        foreach_partition(lambda s, _: s.spawn(Listen), flush=True, batch_size=2)(rows())
    assert Listen.told[0] == [0, 1]
    assert PartitionEnd not in map(type, Listen.told)


class Listen(Actor[Any]):
    """Remembers what it was told."""

    heard = threading.Event()
    told: ClassVar[list[Any]] = []

    def receive(self, message: Any) -> None:
        self.told.append(message)
        self.heard.set()


def test_a_counter_starts_anew_for_each_partition() -> None:
    count = map_partitions(graphs.tally, flush=True)
    assert [next(count(range(n)))[3] for n in (5, 3, 8)] == [5, 3, 8]


def test_one_system_serves_one_partition_after_the_other() -> None:
    count = map_partitions(graphs.tally, flush=True)
    (first,) = count(range(5))  # starts what the process keeps
    before = set(threading.enumerate())  # of which some may be ending
    (second,), (third,) = count(range(5)), count(range(5))
    assert first[4] == second[4] == third[4]
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive(), f"{thread} of a task is left"


def test_a_graph_that_is_kept_for_the_process_knows_what_it_saw() -> None:
    count = map_partitions(graphs.kept_tally, flush=True, lifetime="process")
    assert list(count(range(5))) == [(os.getpid(), 5, (0,))]
    assert list(count(range(3))) == [(os.getpid(), 8, (0, 0))]
    assert next(map_partitions(graphs.tally, flush=True)(range(4)))[3] == 4
    assert list(count(range(2))) == [(os.getpid(), 2, (0,))], "another graph was run between"


def test_a_kept_graph_that_fails_at_its_end_fails_no_other_task() -> None:
    function = map_partitions(graphs.kept_failing_at_end, lifetime="process")
    assert list(function([1, 2])) == [1, 2]
    assert next(map_partitions(graphs.tally, flush=True)(range(4)))[3] == 4


def test_a_kept_graph_is_given_up_when_its_task_is_abandoned() -> None:
    count = map_partitions(graphs.kept_tally, flush=True, lifetime="process")
    abandoned = count(range(7))
    next(abandoned)
    abandoned.close()  # type: ignore[attr-defined]
    assert list(count(range(5))) == [(os.getpid(), 5, (0,))]


class Second(Actor[Any]):
    """Answers one batch, and is stuck in the next until the test is over."""

    over = threading.Event()
    stuck = threading.Event()

    def receive(self, message: Any) -> Any:
        if message != [0]:
            self.stuck.set()
            self.over.wait()
        return message


def test_results_that_nobody_reads_any_more_do_not_wait_for_an_actor_that_is_stuck() -> None:
    some = map_partitions(lambda system, context: system.spawn(Second), batch_size=1, in_flight=2)(
        range(9)
    )
    assert next(some) == 0
    assert Second.stuck.wait(60)
    try:
        some.close()  # type: ignore[attr-defined]  # at once, and not after its 300 seconds
        assert list(map_partitions(graphs.echo)([1])) == [1], "the next task has a system"
    finally:
        Second.over.set()


class Gated(Actor[Any]):
    """Answers one batch for each time that its gate is opened."""

    gate = threading.Semaphore(0)
    answered = 0

    def receive(self, message: Any) -> Any:
        self.gate.acquire()
        Gated.answered += 1
        return message


def gated(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Gated)


def test_no_more_than_in_flight_batches_wait_for_answers() -> None:
    waiting = []

    def rows() -> Iterator[int]:
        for row in range(50):
            waiting.append(row + 1 - Gated.answered)
            if row >= 3:
                Gated.gate.release()
            yield row
        for _ in range(3):
            Gated.gate.release()

    echoed = map_partitions(gated, batch_size=1, in_flight=3)
    assert list(echoed(rows())) == list(range(50))
    assert max(waiting) == 4, "three in flight, and the one that was just read"


def test_an_answer_may_be_the_future_of_another_actors_answer() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(graphs.Delegate, system.spawn(graphs.Echo))

    assert list(map_partitions(build, batch_size=3)(range(20))) == list(range(20))


def test_a_failed_entry_point_fails_the_partition_with_its_traceback_and_causes() -> None:
    with pytest.raises(PartitionFailed) as caught:
        foreach_partition(graphs.refuse)([1])
    shown = str(caught.value)
    assert shown == "actor '/refuse' failed in partition 0: ValueError: no such author"
    assert caught.value.error.type is ValueError
    (note,) = caught.value.__notes__
    assert "in divide" in note
    assert "ZeroDivisionError: division by zero" in note


def test_a_failed_actor_fails_the_partition_before_the_input_ends() -> None:
    read = []

    def rows() -> Iterator[int]:
        for row in range(1_000_000):
            read.append(row)
            yield row

    with pytest.raises(PartitionFailed, match="'/refuse' failed"):
        foreach_partition(graphs.refuse_behind, batch_size=1)(rows())
    assert len(read) < 1_000_000


def test_a_failure_that_only_draining_shows_fails_this_partition_and_no_later_one() -> None:
    refuse = foreach_partition(graphs.refuse_behind, lifetime="process")
    with pytest.raises(PartitionFailed, match="'/refuse' failed"):
        refuse([])  # the entry point passes on that it was asked PartitionStart
    foreach_partition(graphs.echo)([1])


class Hoard(Actor[Any]):
    """Answers nothing."""

    def receive(self, message: Any) -> None:
        self.stash()


class Helpless(Actor[Any]):
    """Tells one actor, and waits for another that has no answer."""

    def __init__(self, told: ActorRef[Any], asked: ActorRef[Any]) -> None:
        self.told = told
        self.asked = asked

    async def receive(self, message: Any) -> Any:
        self.told.tell(message)
        return await self.asked.ask(message)


def test_a_failed_actor_fails_the_partition_though_an_answer_is_awaited_for_ever() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Helpless, system.spawn(graphs.Refuse), system.spawn(Hoard))

    with pytest.raises(PartitionFailed, match="ValueError: no such author"):
        foreach_partition(build)([1])  # at once, and not after its 300 seconds


class Collect(Actor[Any]):
    """Keeps what it gets, from when the input has ended."""

    ended = threading.Event()
    rows: ClassVar[list[int]] = []

    def receive(self, message: list[int]) -> None:
        self.ended.wait()
        self.rows.extend(message)


def test_a_partition_ends_when_the_last_message_behind_the_entry_point_is_handled() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(graphs.Forward, system.spawn(Collect, dedicated=True))

    def rows() -> Iterator[int]:
        yield from range(2000)
        Collect.ended.set()

    foreach_partition(build, batch_size=1)(rows())
    assert Collect.rows == list(range(2000))


class Unmade(Actor[Any]):
    def __init__(self) -> None:
        raise OSError("no such table")

    def receive(self, message: Any) -> None: ...


def test_an_actor_that_fails_when_it_is_made_fails_the_partition() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Unmade)

    with pytest.raises(PartitionFailed, match="no such table"):
        foreach_partition(build)([1])


class Brittle(Actor[Any]):
    """Fails at a 3; says so at its end, if it is told to."""

    def __init__(self, *, ends_badly: bool = False) -> None:
        self.ends_badly = ends_badly

    def receive(self, message: Any) -> None:
        if 3 in message:
            raise ValueError("three")

    def on_stop(self) -> None:
        if self.ends_badly:
            raise OSError("the last lines were not written")


@pytest.mark.parametrize("supervision", ["resume", "restart"])
def test_an_actor_that_supervision_mends_has_not_failed(supervision: Directive) -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        brittle = system.spawn(Brittle, supervision=supervision)
        return system.spawn(graphs.Forward, brittle)

    foreach_partition(build, batch_size=1)(range(5))


def test_an_actor_that_is_restarted_too_often_has_failed() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        brittle = system.spawn(Brittle, supervision=Supervision("restart", limit=1))
        return system.spawn(graphs.Forward, brittle)

    foreach_partition(build, batch_size=1)([3])
    with pytest.raises(PartitionFailed, match="ValueError: three"):
        foreach_partition(build, batch_size=1)([3, 3])


def test_an_actor_that_escalates_has_failed() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        brittle = system.spawn(Brittle, supervision="escalate")
        return system.spawn(graphs.Forward, brittle)

    with pytest.raises(PartitionFailed, match="ValueError: three"):
        foreach_partition(build, batch_size=1)([3])


def test_an_entry_point_that_leaves_a_batch_unanswered_fails_the_partition_in_any_case() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Brittle, supervision="resume")

    with pytest.raises(PartitionFailed, match="ValueError: three"):
        foreach_partition(build, batch_size=1)(range(5))


def test_an_actor_that_fails_while_it_stops_fails_the_partition() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Brittle, ends_badly=True)

    with pytest.raises(PartitionFailed, match="OSError: the last lines were not written"):
        foreach_partition(build)([1])
    foreach_partition(graphs.echo)([1])


def test_the_garbage_collector_is_left_as_it_was() -> None:
    before = gc.get_threshold()
    during = []

    def rows() -> Iterator[int]:
        during.append(gc.get_threshold()[0])
        yield 1

    foreach_partition(graphs.echo)(rows())
    with pytest.raises(PartitionFailed):
        foreach_partition(graphs.refuse)(rows())
    assert min(during) > before[0]
    assert gc.get_threshold() == before


def test_an_actor_that_is_stuck_is_named_when_the_time_is_over() -> None:
    with pytest.raises(DrainTimeout, match="Gated"):
        foreach_partition(gated, drain_timeout=0.01)([1])
    Gated.gate.release()


def test_a_child_process_makes_a_system_of_its_own() -> None:
    count = map_partitions(graphs.tally, flush=True)
    assert next(count(range(5)))[3] == 5
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if next(count(range(6)))[3] == 6 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_entry_point_is_chosen_by_its_name() -> None:
    function = map_partitions(two_entries, entry="tally", flush=True)
    assert next(function(range(5)))[3] == 5


@pytest.mark.parametrize("entry", [None, "none"])
def test_an_entry_point_that_was_not_built_is_named_with_those_that_were(entry: str | None) -> None:
    with pytest.raises(ConfigError, match="'echo', 'tally'"):
        foreach_partition(two_entries, entry=entry)([1])


def two_entries(system: ActorSystem, context: PartitionContext) -> dict[str, ActorRef[Any]]:
    return {"echo": graphs.echo(system, context), "tally": graphs.tally(system, context)}


@pytest.mark.parametrize("built", [None, 3, {"tally": 3}])
def test_a_build_function_that_returns_no_ref_is_told_what_it_returned(built: Any) -> None:
    with pytest.raises(ConfigError, match=r"got (None|3|{'tally': 3})"):
        foreach_partition(lambda system, context: built)([1])


@pytest.mark.parametrize("answer", [3, "rows"])
def test_an_answer_without_rows_is_shown_in_the_error(answer: Any) -> None:
    class Wrong(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return answer

    with pytest.raises(SchemaError, match=f"got {answer!r}"):
        list(map_partitions(lambda system, context: system.spawn(Wrong))([1]))
    with pytest.raises(SchemaError, match=f"got {answer!r}"):
        list(map_in_arrow(lambda system, context: system.spawn(Wrong))([1]))


def test_record_batches_may_come_back_in_every_shape() -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"n": [1, 2]})
    table = pa.Table.from_batches([batch, batch])

    class Shapes(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return [batch, None, table, iter([batch]), []][message]

    shapes = map_in_arrow(lambda system, context: system.spawn(Shapes))
    assert [len(list(shapes([shape]))) for shape in range(5)] == [1, 0, 2, 1, 0]


def test_every_error_of_a_partition_is_a_callboard_error() -> None:
    for error in (CaptureError, OrderError, PartitionFailed, SchemaError):
        assert issubclass(error, CallboardError)
