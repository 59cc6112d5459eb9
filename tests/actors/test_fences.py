"""A fence passes a mailbox in order: when it arrives, all earlier messages have been handled."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorStopped,
    ActorSystem,
    BoundedMailbox,
    Future,
    MailboxFull,
    PriorityMailbox,
    Supervision,
)
from callboard.native import NativeActor
from callboard.testing import ManualSystem


class Notes(Actor[Any]):
    def __init__(self, notes: list[Any]) -> None:
        self.notes = notes

    def receive(self, message: Any) -> None:
        if isinstance(message, Event):
            message.wait(60.0)
        self.notes.append(message)


class Lists(Notes):
    def receive_many(self, messages: list[Any]) -> None:
        self.notes += messages


class Slow(Notes):
    async def receive(self, message: Any) -> None:  # type: ignore[override]
        await self.sleep(0.001)
        self.notes.append(message)


class Held(Notes):
    """Waits at its first message for `go`."""

    def __init__(self, notes: list[Any], begun: Event, go: Future[None]) -> None:
        super().__init__(notes)
        self.begun = begun
        self.go = go

    def receive(self, message: Any) -> Any:
        self.begun.set()
        self.go.result(60.0)
        self.notes.append(message)


class Waiting(Held):
    async def receive(self, message: Any) -> None:  # type: ignore[override]
        self.begun.set()
        await self.go
        self.notes.append(message)


class Failing(Notes):
    def receive(self, message: Any) -> None:
        super().receive(message)
        raise ValueError(message)


@pytest.mark.parametrize("cls", [Notes, Lists, Slow])
def test_all_that_was_told_before_has_been_handled(cls: type[Notes], system: ActorSystem) -> None:
    notes: list[int] = []
    ref = system.spawn(cls, notes)
    ref.tell_many(range(100))
    fence = ref._fence()
    fence.result(timeout=60.0)
    assert notes == [*range(100)]


def test_no_handler_sees_it(system: ActorSystem) -> None:
    notes: list[int] = []
    ref = system.spawn(Notes, notes)
    for number in range(3):
        ref.tell(number)
        fence = ref._fence()
    fence.result(timeout=60.0)
    assert notes == [0, 1, 2]


def test_it_comes_in_its_turn_though_messages_fail(system: ActorSystem) -> None:
    notes: list[int] = []
    ref = system.spawn(Failing, notes, supervision=Supervision("resume"))
    ref.tell_many([1, 2])
    fence = ref._fence()
    assert fence.exception(timeout=60.0) is None
    assert (notes, system.dead_letters.reasons) == ([1, 2], {"failed": 2})


def test_a_fence_is_not_a_dead_letter_when_the_actor_stops(manual: ManualSystem) -> None:
    ref = manual.spawn(Notes, [])
    ref.tell(1)
    ref.stop()
    fence = ref._fence()
    manual.drain()
    late = ref._fence()
    for each in (fence, late):
        with pytest.raises(ActorStopped):
            each.result(timeout=1.0)
    assert manual.dead_letters.reasons == {"stopped": 1}


def test_it_waits_in_a_full_mailbox_and_says_when_there_is_room() -> None:
    go = Event()
    notes: list[Any] = []
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Notes, notes, mailbox=BoundedMailbox(2))
        assert ref._room == 2
        ref.tell(go)
        while ref.statistics().queue:  # it has taken the event, and waits
            pass
        ref.tell_many([1, 2])
        fence = ref._fence()
        assert ref._room == 0
        assert not fence.done()
        go.set()
        fence.result(timeout=60.0)
        assert ref._room == 2
        assert notes == [go, 1, 2]


@pytest.mark.parametrize("overflow", ["block", "help", "throttle"])
def test_a_full_mailbox_has_no_room(overflow: str, manual: ManualSystem) -> None:
    ref = manual.spawn(Notes, [], mailbox=BoundedMailbox(1, overflow))
    assert ref._room == 1
    ref.tell(1)
    assert ref._room == 0
    manual.drain()


LOSING = ["drop_newest", "drop_oldest", "fail"]


@pytest.mark.parametrize("overflow", LOSING)
def test_it_takes_no_room_of_a_message(overflow: str) -> None:
    with ManualSystem() as system:
        notes: list[int] = []
        ref = system.spawn(Notes, notes, mailbox=BoundedMailbox(2, overflow))
        fences = [ref._fence()]
        for number in (1, 2):
            ref.tell(number)
            fences.append(ref._fence())
        assert (ref.statistics().queue, ref._room) == (2, None)
        fences[-1].add_done_callback(lambda _: notes.append(0))
        system.drain()
        assert [fence.exception(timeout=1.0) for fence in fences] == [None] * 3
        assert notes == [1, 2, 0]
        assert ref.statistics().queue == 0
        ref.tell(3)
        ref.tell(4)
        system.drain()
    assert system.dead_letters.count == 0


@pytest.mark.parametrize("overflow", LOSING)
@pytest.mark.parametrize(
    ("cls", "options"),
    [(Held, {"dedicated": True}), (Waiting, {}), (Waiting, {"event_loop": True})],
)
def test_it_waits_for_the_message(cls: type[Held], options: dict[str, Any], overflow: str) -> None:
    """With `drop_oldest` a sender takes the fence out of the mailbox."""
    go: Future[None] = Future()
    notes: list[Any] = []
    begun = Event()
    with ActorSystem(workers=1) as system:
        mailbox = BoundedMailbox(1, overflow)
        ref = system.spawn(cls, notes, begun, go, mailbox=mailbox, **options)
        ref.tell("held")
        assert begun.wait(60.0)
        ref.tell(1)
        fence = ref._fence()
        for number in (2, 3, 4):
            with suppress(MailboxFull):
                ref.tell(number)
        assert ref.statistics().queue == 1
        assert not fence.done()
        fence.add_done_callback(lambda _: notes.append("fence"))
        go.set_result(None)
        fence.result(timeout=60.0)
    expected = ["fence", 4] if overflow == "drop_oldest" else [1, "fence"]
    assert notes == ["held", *expected]


@pytest.mark.parametrize("overflow", LOSING)
@pytest.mark.parametrize("cls", [Notes, Slow])
def test_none_is_lost_among_drops(cls: type[Notes], overflow: str, system: ActorSystem) -> None:
    notes: list[int] = []
    ref = system.spawn(cls, notes, mailbox=BoundedMailbox(4, overflow))

    def note(number: int, _: Future[None]) -> None:
        notes.append(number)

    def send(first: int) -> list[tuple[int, Future[None]]]:
        fences = []
        for number in range(first, first + 500):
            with suppress(MailboxFull):
                ref.tell(number)
            if number % 3 == 0:
                fence = ref._fence()
                fence.add_done_callback(partial(note, -number - 1))
                fences.append((number, fence))
        return fences

    with ThreadPoolExecutor(3) as threads:
        fences = [one for some in threads.map(send, range(0, 1_500, 500)) for one in some]
    system.drain(60.0)
    assert all(fence.exception(60.0) is None for _, fence in fences)
    assert ref.statistics().queue == 0
    at = {number: place for place, number in enumerate(notes)}
    assert len(at) == len(notes)
    handled = [number for number in notes if number >= 0]
    peak = ref.statistics().peak
    assert peak is not None
    if overflow != "drop_oldest":  # see BoundedMailbox
        assert peak <= 4
    assert len(handled) + ref.statistics().dropped == 1_500
    for number, _ in fences:  # what its own thread had sent before was handled before
        before = number // 500 * 500
        assert all(at[n] < at[-number - 1] for n in range(before, number + 1) if n in at)


@pytest.mark.parametrize("overflow", LOSING)
def test_an_actor_stops_behind_what_waits_whatever_is_dropped(overflow: str) -> None:
    notes: list[Any] = []
    with ManualSystem() as system:
        ref = system.spawn(Notes, notes, mailbox=BoundedMailbox(2, overflow))
        ref.tell_many([1, 2])
        ref.stop(after_queue=True)
        for number in (3, 4, 5):
            with suppress(MailboxFull):
                ref.tell(number)
        system.drain()
        assert not ref.is_alive
    assert notes == ([] if overflow == "drop_oldest" else [1, 2])


class Upwards:
    """A key that can be compared with its like alone."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __lt__(self, other: "Upwards") -> bool:
        return self.number < other.number


@pytest.mark.parametrize("key", [lambda n: n, lambda n: (n, "x"), Upwards])
def test_with_priorities_it_comes_when_nothing_waits(key: Any) -> None:
    notes: list[int] = []
    with ManualSystem() as system:
        ref = system.spawn(Notes, notes, mailbox=PriorityMailbox(key))
        ref.tell_many([3, 1])
        fence = ref._fence()
        fence.add_done_callback(lambda _: notes.append(0))
        ref.tell(2)
        system.drain()
    assert notes == [1, 2, 3, 0]


@pytest.mark.parametrize("options", [{}, {"mailbox": BoundedMailbox(2)}])
def test_a_native_actor_does_not_see_it(options: Any, system: ActorSystem) -> None:
    native: Any = NativeActor  # which would fail at any message
    ref: Any = system.spawn(native, **options)
    for _ in range(10):
        fence = ref._fence()
        assert fence.result(timeout=60.0) is None
    assert ref._room == (2 if options else None)
    assert ref.is_alive
