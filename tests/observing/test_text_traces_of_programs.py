"""Traces as text, line by line, of programs whose order is known.

One worker runs actors in the order in which they became ready. So an actor that spawns tasks within
one message knows which runs when.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, Supervision
from callboard.channels import ChannelClosed, Receiver, Sender, Task, channel, select
from callboard.observing import FlightRecorder
from tests.observing.text_traces import Dispatch, Use, dispatches, recorded

KEPT = FlightRecorder(seconds=3600)

Outcome = tuple[str, int, str, tuple[Use, ...]]


def pair(capacity: int) -> tuple[Sender[int], Receiver[int]]:
    return channel(capacity)


class Root(Actor[Callable[["Root"], None]]):
    """Calls what it is told: all that this spawns becomes ready in the order of its spawning."""

    def receive(self, message: Callable[[Root], None]) -> None:
        message(self)


class Sends(Task):
    def __init__(self, sink: Sender[int], count: int) -> None:
        self.sink, self.count = sink, count

    async def run(self) -> None:
        for number in range(self.count):
            await self.sink.send(number)


class Doubles(Task):
    def __init__(self, source: Receiver[int], sink: Sender[int]) -> None:
        self.source, self.sink = source, sink

    async def run(self) -> None:
        async for number in self.source:
            await self.sink.send(2 * number)


class Selects(Task):
    def __init__(self, source: Receiver[int]) -> None:
        self.source = source

    async def run(self) -> None:
        await select([self.source])
        async for _ in self.source:
            pass


class Script(Task):
    """Runs a coroutine function with the ends that it is given."""

    def __init__(self, script: Callable[..., Any], *ends: Any) -> None:
        self.script, self.ends = script, ends

    async def run(self) -> None:
        await self.script(self, *self.ends)


def trace_of(program: Callable[[Root], None], **options: Any) -> list[Dispatch]:
    """Run `program` in a message of /root, and return the others' dispatches in their order.

    No dispatch is cut short because its worker had to wait for a core.
    """
    options = {"monitoring": "channels", "time_slice": 3600.0, "trace": KEPT, **options}
    with ActorSystem(workers=1, **options) as system:
        root = system.spawn(Root, name="root")
        root.tell(program)
        system.drain()
        assert root.is_alive
        lines = recorded(system)
    return [line for line in dispatches(lines) if line.path != "/root"]


def outcomes(program: Callable[[Root], None], **options: Any) -> list[Outcome]:
    """The same, without what differs from run to run, and without /root in the paths."""
    return [
        (line.path[5:], line.dispatch, line.state, line.uses)
        for line in trace_of(program, **options)
    ]


def test_a_trace_tells_the_run_of_a_pipeline() -> None:
    first, second = pair(4), pair(16)
    one, two = first[0]._number, second[0]._number

    def program(root: Root) -> None:
        root.spawn(Selects, second[1], name="selects")
        root.spawn(Doubles, first[1], second[0], name="doubles")
        root.spawn(Sends, first[0], 10, name="sends")

    assert outcomes(program) == [
        ("/selects", 1, "Ba", ()),
        ("/doubles", 1, "Bi", (Use(one, "r", "O", 0, "?--"),)),
        ("/sends", 1, "Bo", (Use(one, "w", "O", 4, "?!*"),)),
        ("/doubles", 2, "Bi", (Use(one, "r", "I", 4, "?!*"), Use(two, "w", "O", 4, "-!*"))),
        ("/sends", 2, "Bo", (Use(one, "w", "I", 8, "?!*"),)),
        ("/selects", 2, "Bi", (Use(two, "r", "O", 4, "?-*"),)),
        ("/doubles", 3, "Bi", (Use(one, "r", "I", 8, "?!*"), Use(two, "w", "I", 8, "-!*"))),
        ("/sends", 3, "Z", (Use(one, "w", "C", 10, "-!*"),)),
        ("/selects", 3, "Bi", (Use(two, "r", "I", 8, "?-*"),)),
        ("/doubles", 4, "Z", (Use(one, "r", "C", 10, "--*"), Use(two, "w", "C", 10, "-!*"))),
        ("/selects", 4, "Z", (Use(two, "r", "C", 10, "--*"),)),
    ]


def test_times_and_creations_fit_each_other() -> None:
    first = pair(1)

    def program(root: Root) -> None:
        root.spawn(Sends, first[0], 3, name="sends")
        root.spawn(Selects, first[1], name="selects")

    log = trace_of(program)
    assert len(log) > 4
    for before, line in itertools.pairwise(log):
        assert line.time - line.spent >= before.time
    for line in log:
        assert line.spent > 0
        assert (line.created is not None) == (line.state == "Z")
        assert line.created is None or line.created < line.time
    assert {line.task for line in log if line.path == "/root/sends"} == {2}


def test_a_task_that_lets_others_run_is_ready() -> None:
    async def yields(task: Task) -> None:
        await task.checkpoint()
        await task.checkpoint()

    def program(root: Root) -> None:
        root.spawn(Script, yields, name="a")
        root.spawn(Script, yields, name="b")

    assert outcomes(program) == [
        ("/a", 1, "R", ()), ("/b", 1, "R", ()),
        ("/a", 2, "R", ()), ("/b", 2, "R", ()),
        ("/a", 3, "Z", ()), ("/b", 3, "Z", ()),
    ]  # fmt: skip


def test_a_use_that_moves_nothing_has_no_flags() -> None:
    sender, receiver = pair(1)

    async def closes(task: Task, end: Sender[int]) -> None:
        end.close()

    def program(root: Root) -> None:
        root.spawn(Script, closes, sender, name="closes")
        root.spawn(Sends, pair(1)[0], 0, name="unused")

    log = outcomes(program)
    assert log[0] == ("/closes", 1, "Z", (Use(sender._number, "w", "C", 0, "---"),))
    assert log[1][3][0].flags == "---"
    assert receiver._is_closed


def test_an_end_that_closes_wakes_the_other_side() -> None:
    sender, receiver = pair(1)

    async def closes(task: Task, end: Sender[int]) -> None:
        end.close()
        await task.checkpoint()

    def program(root: Root) -> None:
        root.spawn(Selects, receiver, name="selects")
        root.spawn(Script, closes, sender, name="closes")

    assert outcomes(program) == [
        ("/selects", 1, "Ba", ()),
        ("/closes", 1, "R", (Use(sender._number, "w", "C", 0, "-!-"),)),
        ("/selects", 2, "Z", (Use(receiver._number, "r", "C", 0, "---"),)),
        ("/closes", 2, "Z", ()),
    ]


def test_ends_are_replaced() -> None:
    old, new = pair(4), pair(4)
    one, two = old[0]._number, new[0]._number

    async def writes(task: Task, sink: Sender[int], other: Sender[int]) -> None:
        await sink.send(1)
        sink.replace(other)
        await task.checkpoint()
        await sink.send(2)
        await sink.send(3)

    async def reads(task: Task, source: Receiver[int], other: Receiver[int]) -> None:
        source.replace(other)
        assert [value async for value in source] == [1, 2, 3]

    def program(root: Root) -> None:
        root.spawn(Script, writes, old[0], new[0], name="writes")
        root.spawn(Script, reads, old[1], new[1], name="reads")

    assert outcomes(program) == [
        ("/writes", 1, "R", (Use(one, "w", "R", 1, "--*"),)),
        ("/reads", 1, "Bi", (Use(one, "r", "R", 1, "--*"), Use(two, "r", "O", 0, "?--"))),
        ("/writes", 2, "Z", (Use(two, "w", "C", 2, "-!*"),)),
        ("/reads", 2, "Z", (Use(two, "r", "C", 2, "--*"),)),
    ]


def test_a_rendezvous_blocks_until_the_value_is_taken() -> None:
    sender, receiver = pair(0)
    number = sender._number

    def program(root: Root) -> None:
        root.spawn(Sends, sender, 1, name="sends")
        root.spawn(Selects, receiver, name="selects")

    log = outcomes(program)
    assert log[0] == ("/sends", 1, "Bo", (Use(number, "w", "O", 0, "?--"),))
    assert ("/sends", 2, "Z", (Use(number, "w", "C", 1, "-!*"),)) in log
    assert log[-1] == (
        "/selects",
        log[-1][1],
        "Z",
        (Use(number, "r", "C", 1, log[-1][3][0].flags),),
    )


def test_many_values_in_one_operation_count_each() -> None:
    sender, receiver = pair(8)

    async def reads(task: Task, source: Receiver[int]) -> None:
        assert await source.receive_many(5) == [0, 1, 2, 3, 4]
        await task.checkpoint()
        assert source.receive_many_nowait(9) == [5, 6]
        assert source.receive_many_nowait(9) == []

    def program(root: Root) -> None:
        root.spawn(Sends, sender, 7, name="sends")
        root.spawn(Script, reads, receiver, name="reads")

    log = [line for line in outcomes(program) if line[0] == "/reads"]
    assert [line[3][0].moved for line in log] == [5, 7]


def test_an_actor_that_is_handed_an_end_begins_to_count_anew() -> None:
    sender, receiver = pair(8)

    async def first(task: Task, end: Sender[int], peer: list[Any]) -> None:
        await end.send(1)
        peer.append(end.release())

    async def second(task: Task, peer: list[Any]) -> None:
        await peer[0].send(2)
        assert peer[0].send_nowait(3)

    def program(root: Root) -> None:
        passed: list[Any] = []
        root.spawn(Script, first, sender, passed, name="first")
        root.spawn(Script, second, passed, name="second")

    log = outcomes(program)
    assert log[0][3] == (Use(sender._number, "w", "O", 1, "--*"),)
    assert log[1][3] == (Use(sender._number, "w", "C", 2, "--*"),)
    assert receiver.receive_many_nowait(9) == [1, 2, 3]


def test_clones_count_their_own_values() -> None:
    sender, receiver = pair(8)
    other = sender.clone()

    def program(root: Root) -> None:
        root.spawn(Sends, sender, 2, name="two")
        root.spawn(Sends, other, 3, name="three")

    assert [line[3][0].moved for line in outcomes(program)] == [2, 3]
    receiver.cancel()


def test_a_failed_task_ends_and_its_ends_close() -> None:
    sender, receiver = pair(8)

    async def fails(task: Task, end: Sender[int]) -> None:
        await end.send(1)
        raise ValueError("on purpose")

    def program(root: Root) -> None:
        root.spawn(Script, fails, sender, name="fails")

    assert outcomes(program) == [("/fails", 1, "Z", (Use(sender._number, "w", "C", 1, "--*"),))]
    assert receiver.get() == 1
    with pytest.raises(ChannelClosed, match="has failed"):
        receiver.get()


def test_a_restarted_task_goes_on_with_its_counts() -> None:
    sender, receiver = pair(8)
    failures = [ValueError("on purpose")]

    async def fails_once(task: Task, end: Sender[int]) -> None:
        await end.send(1)
        if failures:
            raise failures.pop()

    def program(root: Root) -> None:
        options = {"supervision": Supervision("restart"), "name": "restarts"}
        root.spawn(Script, fails_once, sender, **options)

    log = outcomes(program)
    assert [line[2] for line in log] == [*["R"] * (len(log) - 1), "Z"]
    assert [use.moved for line in log for use in line[3]] == [1, 2]
    receiver.cancel()


def test_a_stopped_task_ends_in_its_last_dispatch_without_late_messages() -> None:
    sender, receiver = pair(1)

    def program(root: Root) -> None:
        root.spawn(Selects, receiver, name="selects")

    with ActorSystem(workers=1, monitoring="channels", trace=KEPT) as system:
        root = system.spawn(Root, name="root")
        root.tell(program)
        system.drain()
        root.stop()
        system.drain()
        root.tell(program)  # a dead letter
        system.drain()
        log = dispatches(recorded(system))
    ends = [line.path for line in log if line.state == "Z"]
    assert ends == ["/root/selects", "/root"]
    assert log[-1].path == "/root"
    assert log[-2].uses == (Use(receiver._number, "r", "C", 0, "---"),)
    sender.close()


# --- actors ---------------------------------------------------------------------------------------


class Forwards(Actor[int]):
    def __init__(self, sink: Sender[int]) -> None:
        self.sink = sink

    async def receive(self, message: int) -> None:
        await self.sink.send(message)


class Asks(Actor[ActorRef[Any]]):
    async def receive(self, message: ActorRef[Any]) -> None:
        assert await message.ask(lambda root: None) is None


def test_an_actors_line_has_its_messages_and_the_channels_that_it_used() -> None:
    sender, receiver = pair(2)
    number = sender._number

    async def reads(task: Task, source: Receiver[int]) -> None:
        assert [await source.receive() for _ in range(3)] == [1, 2, 3]

    def program(root: Root) -> None:
        root.spawn(Forwards, sender, name="forwards").tell_many([1, 2, 3])
        root.spawn(Script, reads, receiver, name="reads")

    log = [line for line in trace_of(program) if line.path == "/root/forwards"]
    assert [line.state for line in log] == ["Bo", "Bi"]
    assert sum(line.messages for line in log) == 3
    assert log[0].uses == (Use(number, "w", "O", 2, "?-*"),)
    assert log[1].uses == (Use(number, "w", "I", 3, "-!*"),)


def test_an_actor_that_awaits_an_answer_or_a_message_is_blocked_on_input() -> None:
    def program(root: Root) -> None:
        root.spawn(Asks, name="asks").tell(root.spawn(Root, name="asked"))

    assert [(line.path, line.state) for line in trace_of(program)] == [
        ("/root/asks", "Bi"),
        ("/root/asked", "Bi"),
        ("/root/asks", "Bi"),
    ]


def test_an_actor_with_more_messages_than_a_turn_is_ready() -> None:
    def program(root: Root) -> None:
        root.spawn(Root, name="busy").tell_many([lambda root: None] * 5)

    log = trace_of(program, quantum=2)
    assert [(line.state, line.messages) for line in log] == [("R", 2), ("R", 2), ("Bi", 1)]


# --- levels, and whose dispatches -----------------------------------------------------------------


def pipeline(root: Root) -> None:
    (sink, source), (end, last) = pair(2), pair(2)
    root.spawn(Sends, sink, 5, name="sends")
    root.spawn(Doubles, source, end, name="doubles")
    root.spawn(Selects, last, name="selects")


@pytest.mark.parametrize("level", ["times", "mailboxes", "channels", "workers"])
def test_each_level_has_its_records(level: str, tmp_path: Path) -> None:
    file = tmp_path / "run.txt"
    with ActorSystem("net", workers=1, monitoring=level, trace=file) as system:
        system.spawn(Root, name="root").tell(pipeline)
        system.drain()
    lines = file.read_text().splitlines()
    own = [line for line in lines if " *** net-0 " in line]
    log = dispatches(lines)
    assert any(line.uses for line in log) == (level in ("channels", "workers"))
    assert any(" queue " in line for line in lines) == (level != "times")
    assert bool(own) == (level == "workers")
    assert all("waited" in line for line in own[:-1])
    assert not own or " *** net-0 exited wait_cnt " in own[-1]
    states = [line.state for line in log if line.path == "/root/doubles"]
    assert states[-1] == "Z"
    assert set(states[:-1]) <= {"Bi", "Bo"}


@pytest.mark.parametrize(
    "monitored",
    [(Doubles, Selects), ["Doubles", "Selects"], [f"{__name__}:Doubles", Selects]],
    ids=["classes", "names", "both"],
)
@pytest.mark.parametrize("level", ["times", "channels"])
def test_a_trace_has_only_the_monitored_classes(level: str, monitored: Any) -> None:
    config = {"monitored": monitored}
    with ActorSystem(workers=1, monitoring=level, trace=KEPT, config=config) as system:
        root = system.spawn(Root, name="root")
        root.tell(pipeline)
        system.drain()
        log = dispatches(recorded(system))
        statistics = system.statistics()
    assert {line.path for line in log} == {"/root/doubles", "/root/selects"}
    assert any(line.uses for line in log) == (level == "channels")
    (found,) = statistics.actors
    assert found.total  # measured, since one look at the clock ends a dispatch and begins the next


def test_a_monitored_class_stands_for_its_subclasses() -> None:
    class Thrice(Sends):
        pass

    ends = pair(4)

    def program(root: Root) -> None:
        root.spawn(Thrice, ends[0], 3, name="thrice")
        root.spawn(Selects, ends[1], name="selects")

    found = trace_of(program, config={"monitored": [Sends]})
    assert {line.path for line in found} == {"/root/thrice"}
