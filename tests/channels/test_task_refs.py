"""The ref of a task takes no messages, and shows the reason why the task waits."""

from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, Future
from callboard.channels import Receiver, Task, channel, select
from callboard.testing import ManualSystem


class Waits(Task):
    def __init__(self, source: Receiver[int]) -> None:
        self.source = source

    async def run(self) -> None:
        await self.source.receive()


@pytest.mark.parametrize("options", [{}, {"mailbox": None}, {"context": "sender"}])
def test_a_message_to_a_task_is_refused(system: ActorSystem, options: dict[str, Any]) -> None:
    sender, receiver = channel(1)
    ref = system.spawn(Waits, receiver, name="waits", **options)
    calls = (
        lambda: ref.tell(1),
        lambda: ref.tell_many([1]),
        lambda: ref.ask(1),
        lambda: ref.ask(1, timeout=5),
        lambda: ref._tell_past_capacity(1),
    )
    for call in calls:
        with pytest.raises(TypeError, match="/waits is a task, and takes no messages: send into"):
            call()
    sender.put(1)


class Idles(Task):
    """Never uses what it was given."""

    def __init__(self, *unused: Any) -> None:
        self.unused = unused

    async def run(self) -> None:
        await self.sleep(1000)


@pytest.mark.parametrize("kind", [Waits, Idles])
def test_a_task_is_stopped_with_its_ends(manual: ManualSystem, kind: type[Task]) -> None:
    sender, receiver = channel(1)
    ref: ActorRef[Any] = manual.spawn(kind, receiver)
    manual.run_until_idle()
    ref.stop()
    manual.run_until_idle()
    assert sender._is_closed
    with pytest.raises(TypeError, match="is a task"):
        ref.tell(1)


@pytest.mark.parametrize("method", ["after", "every", "watch"])
def test_timers_and_watches_of_a_task_are_refused(system: ActorSystem, method: str) -> None:
    told: list[str] = []

    class Asks(Task):
        async def run(self) -> None:
            try:
                if method == "watch":
                    self.watch(self.ref)
                else:
                    getattr(self, method)(1, "tick")
            except TypeError as error:
                told.append(str(error))

    system.spawn(Asks, name="asks")
    system.drain()
    assert told == ["/asks is a task, and takes no messages: see `docs/channels.md`"]


class Waiting(Actor[str]):
    """Waits for one thing, by the message."""

    def __init__(self, silent: Any, ends: dict[str, Any]) -> None:
        self.silent, self.ends = silent, ends

    async def receive(self, what: str) -> None:
        match what:
            case "ask":
                await self.silent.ask(1)
            case "sleep":
                await self.sleep(1000)
            case "own":
                await Future[None]()
            case "value":
                await self.ends["receiver"].receive()
            case "room":
                await self.ends["sender"].send(1)
                await self.ends["sender"].send(2)
            case "any":
                await select([self.ends["receiver"], self.ends["other"]])


class Silent(Actor[Any]):
    def receive(self, message: Any) -> Any:
        self.kept: Any = Future()
        return self.kept


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nothing", "a message"),
        ("ask", "an answer of /silent"),
        ("sleep", "a timer"),
        ("own", "an answer"),
        ("value", "a value of channel {receiver}"),
        ("room", "room in channel {sender}"),
        ("any", "one of 2 ends"),
    ],
)
def test_statistics_have_reasons_for_waiting(manual: ManualSystem, what: str, words: str) -> None:
    first, second, third = channel(1), channel(1), channel(1)
    ends = {"receiver": first[1], "other": second[1], "sender": third[0]}
    silent = manual.spawn(Silent, name="silent")
    waiting = manual.spawn(Waiting, silent, ends, name="waiting")
    waiting.tell(what)
    assert waiting.info().waits_for is None  # a message waits for it
    manual.run_until_idle()
    expected = words.format(**{name: end._number for name, end in ends.items()})
    assert waiting.info().waits_for == expected
    statistics = manual.statistics()
    assert statistics.of("/waiting").waits_for == expected
    assert statistics.of("/silent").waits_for == "a message"
    (line,) = [one for one in str(statistics).splitlines() if one.startswith("/waiting")]
    assert line.endswith(expected)
    manual.stop()
    assert waiting.info().waits_for is None


def test_an_actor_that_runs_waits_for_nothing(manual: ManualSystem) -> None:
    seen: list[Any] = []

    class Looks(Actor[Any]):
        def receive(self, message: Any) -> None:
            seen.append(self.ref.info().waits_for)

    class Yields(Task):
        async def run(self) -> None:
            seen.append(self.ref.info().waits_for)
            await self.checkpoint()

    manual.spawn(Looks).tell(1)
    task = manual.spawn(Yields)
    manual.run_until_idle()
    assert seen == [None, None]
    assert task.info().waits_for is None
