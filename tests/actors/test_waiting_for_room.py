"""A worker on which an actor waits for room in a full mailbox continues with other work."""

import resource
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, Future, MailboxFull
from callboard.policies import Fixed

PATIENCE = 60.0  # seconds, of mailboxes whose senders are to be woken long before


class Absent(Actor[Any]):
    """Begins with its first message when a future from outside is done."""

    def __init__(self, entered: threading.Event, outside: "Future[None]", seen: list[int]) -> None:
        self.entered, self.outside, self.seen = entered, outside, seen

    async def receive(self, number: int) -> None:
        self.entered.set()
        await self.outside
        self.seen.append(number)


class Sender(Actor[range]):
    def __init__(self, target: ActorRef[int]) -> None:
        self.target = target

    def receive(self, numbers: range) -> str:
        for number in numbers:
            self.target.tell(number)
        return "sent"


class Gate(Actor[Any]):
    """Keeps its worker until it is opened, so that all others there are ready at once."""

    def receive(self, opened: threading.Event) -> None:
        assert opened.wait(60)


class Echo(Actor[int]):
    def receive(self, number: int) -> int:
        return number


class Scene:
    """A sender that waits for room, on the worker of the receiver, which waits for `outside`."""

    def __init__(self, system: ActorSystem, overflow: str = "block") -> None:
        entered = threading.Event()
        self.outside: Future[None] = Future()
        self.seen: list[int] = []
        mailbox = BoundedMailbox(2, overflow, timeout=PATIENCE)
        here = Fixed(0)
        receiver = system.spawn(
            Absent, entered, self.outside, self.seen, mailbox=mailbox, placement=here
        )
        receiver.tell(0)
        assert entered.wait(30)
        self.receiver = receiver
        self.sent = system.spawn(Sender, receiver, placement=here).ask(range(1, 100))

    def await_a_full_mailbox(self) -> None:
        while self.receiver.statistics().queue != 2:
            pass


@pytest.mark.parametrize("overflow", ["block", "help", "throttle"])
@pytest.mark.parametrize("workers", [1, 2])
def test_asks_are_answered_while_a_worker_waits_for_room(workers: int, overflow: str) -> None:
    with ActorSystem(workers=workers) as system:
        scene = Scene(system, overflow)
        # With two workers, what is ready on the last is delegated to the first, which runs Python.
        echoes = [system.spawn(Echo, placement=Fixed(worker)) for worker in range(workers)]
        scene.await_a_full_mailbox()
        for number in range(200):
            for echo in echoes:
                assert echo.ask(number).result(timeout=30) == number
        assert not scene.sent.done()
        scene.outside.set_result(None)
        assert scene.sent.result(timeout=30) == "sent"
        system.drain()
        assert scene.seen == list(range(100))


def test_a_worker_that_waits_for_room_does_not_poll() -> None:
    class Counting(Actor[ActorRef[int]]):
        def receive(self, target: ActorRef[int]) -> int:
            def switches() -> int:
                return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw

            before = switches()
            with pytest.raises(MailboxFull, match="stayed full"):
                target.tell_many(range(10))
            return switches() - before

    with ActorSystem() as system:
        entered, outside = threading.Event(), Future[None]()
        mailbox = BoundedMailbox(2, timeout=1.0)
        receiver = system.spawn(Absent, entered, outside, [], mailbox=mailbox)
        slept = system.spawn(Counting).ask(receiver).result(timeout=60)
        outside.set_result(None)
    assert slept < 50


@pytest.mark.parametrize("overflow", ["block", "help", "throttle"])
def test_a_thousand_senders_of_one_worker_that_find_no_room_do_not_nest(overflow: str) -> None:
    count = 2_000
    depth, deepest = 0, 0

    class Nesting(Sender):
        def receive(self, numbers: range) -> str:
            nonlocal depth, deepest
            depth += 1
            deepest = max(deepest, depth)
            try:
                return super().receive(numbers)
            finally:
                depth -= 1

    with ActorSystem(workers=1) as system:
        entered, outside, seen = threading.Event(), Future[None](), list[int]()
        mailbox = BoundedMailbox(1, overflow, timeout=PATIENCE)
        receiver = system.spawn(Absent, entered, outside, seen, mailbox=mailbox)
        receiver.tell(-1)
        assert entered.wait(30)
        receiver.tell(-1)
        senders = [system.spawn(Nesting, receiver) for _ in range(count)]
        system.spawn(Gate).tell(opened := threading.Event())
        answered = threading.Semaphore(0)
        sent = [sender.ask(range(number, number + 1)) for number, sender in enumerate(senders)]
        for future in sent:
            future.add_done_callback(lambda _: answered.release())
        opened.set()
        # One waits, whichever is taken first; as it is below them, the others go past the bound.
        for _ in range(count - 1):
            assert answered.acquire(timeout=30)
        assert sum(future.done() for future in sent) == count - 1
        outside.set_result(None)
        assert {future.result(timeout=30) for future in sent} == {"sent"}
        system.drain()
        assert system.dead_letters.count == 0
    assert deepest == 2
    assert sorted(seen) == [-1, -1, *range(count)]


class Shut(Actor[int]):
    """Has a thread of its own, and handles nothing until it is opened."""

    def __init__(self, entered: threading.Event, opened: threading.Event) -> None:
        self.entered, self.opened = entered, opened

    def on_start(self) -> None:
        self.entered.set()
        assert self.opened.wait(60)

    def receive(self, number: int) -> None:
        pass


def shut(system: ActorSystem, opened: threading.Event, **mailbox: Any) -> ActorRef[int]:
    """Return one whose mailbox is full, for messages of 0 to come."""
    entered = threading.Event()
    ref = system.spawn(Shut, entered, opened, mailbox=BoundedMailbox(1, **mailbox), dedicated=True)
    assert entered.wait(30)
    ref.tell(0)
    return ref


def switches() -> int:
    """Return how often the calling thread has gone to sleep."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class Start(Actor[threading.Event]):
    """Keeps its worker until the event, and then makes a note."""

    def __init__(self, note: Callable[[], None]) -> None:
        self.note = note

    def receive(self, opened: threading.Event) -> None:
        assert opened.wait(60)
        self.note()


class Busy(Actor[int]):
    """Always has a message, up to a number of them; then makes a note."""

    def __init__(self, note: Callable[[], None], ended: threading.Event) -> None:
        self.note, self.ended = note, ended

    def receive(self, left: int) -> None:
        if left:
            self.ref.tell(left - 1)
        else:
            self.note()
            self.ended.set()


class Crowd:
    """Senders on one worker, each to a full mailbox, beside an actor that always has a message."""

    def __init__(self, senders: int, messages: int, steps: int) -> None:
        opened, start, ended = threading.Event(), threading.Event(), threading.Event()
        notes: list[tuple[int, float, int]] = []

        def note() -> None:
            most = max(receiver.statistics().queue or 0 for receiver in receivers)
            notes.append((switches(), time.monotonic(), most))

        with ActorSystem(workers=1) as system:
            receivers = [shut(system, opened) for _ in range(senders)]
            system.spawn(Start, note).tell(start)
            for receiver in receivers:
                sender = system.spawn(Sender, receiver)
                for number in range(messages):
                    sender.tell(range(number, number + 1))
            system.spawn(Busy, note, ended).tell(steps)
            start.set()
            assert ended.wait(60)
            opened.set()
            system.drain(60)
            assert {receiver.statistics().messages for receiver in receivers} == {messages + 1}
        (slept, began, _), (slept_then, now, self.most) = notes
        self.slept, self.seconds = slept_then - slept, now - began


def test_a_worker_does_not_sleep_for_room_while_another_actor_of_it_is_ready() -> None:
    crowd = Crowd(senders=10, messages=1, steps=1000)
    assert crowd.slept < 9  # once for each that runs in the first one's wait


def test_a_nested_wait_exceeds_the_capacity_once_in_ten_milliseconds() -> None:
    crowd = Crowd(senders=5, messages=5000, steps=20_000)
    # One that was there, one at once, and one after each ten milliseconds.
    assert crowd.most <= 2 + crowd.seconds / 0.01


@pytest.mark.parametrize("overflow", ["block", "help"])
def test_a_wait_within_a_wait_ends_with_the_timeout_of_its_own_mailbox(overflow: str) -> None:
    class Refused(Sender):
        def receive(self, numbers: range) -> str:
            with pytest.raises(MailboxFull, match=r"stayed full \(1 messages\) for 0 s"):
                super().receive(numbers)
            return "refused"

    with ActorSystem(workers=1) as system:
        opened = threading.Event()
        longer, none = shut(system, opened), shut(system, opened, overflow=overflow, timeout=0)
        outer = system.spawn(Sender, longer).ask(range(1))
        refused = system.spawn(Refused, none).ask(range(1)).result(timeout=30)
        waits = not outer.done()
        opened.set()
        assert (refused, waits) == ("refused", True)
        assert outer.result(timeout=30) == "sent"


class Sleeper(Actor[int]):
    def receive(self, number: int) -> None:
        time.sleep(1e-5)  # lets the interpreter go, and is no wait for anything


@pytest.mark.parametrize("overflow", ["block", "help", "throttle"])
def test_all_of_many_senders_on_one_worker_keep_to_the_capacities(overflow: str) -> None:
    with ActorSystem(workers=1) as system:
        paths = []
        for _ in range(3):
            target = system.spawn(Sleeper, mailbox=BoundedMailbox(10, overflow, timeout=PATIENCE))
            system.spawn(Sender, target).tell(range(500))
            paths.append(target.path)
        system.drain(60)
        found = [system.statistics().of(path) for path in paths]
    assert [one.messages for one in found] == [500] * 3
    assert max(one.peak or 0 for one in found) <= 10


def test_a_sender_running_in_anothers_wait_waits_for_a_dedicated_receiver() -> None:
    def peak_of_two() -> int:
        with ActorSystem(workers=1) as system:
            paths = []
            for _ in range(2):
                target = system.spawn(Sleeper, dedicated=True, mailbox=BoundedMailbox(10))
                system.spawn(Sender, target).tell(range(2000))
                paths.append(target.path)
            system.drain(60)
            found = [system.statistics().of(path) for path in paths]
        assert [one.messages for one in found] == [2000] * 2
        return max(one.peak or 0 for one in found)

    # The peak is 10, and one more for each 10 ms in which the receiver's thread gets no time. After
    # 0.1 s without time nobody waits for it, so a busy machine gets five tries.
    assert any(peak_of_two() < 1000 for _ in range(5))


def test_a_long_line_of_full_mailboxes_passes_all_messages() -> None:
    class Relay(Actor[int]):
        def __init__(self, following: ActorRef[int] | None) -> None:
            self.following = following

        def receive(self, number: int) -> None:
            if self.following is not None:
                self.following.tell_many([number, number])

    with ActorSystem(workers=1) as system:
        line: list[ActorRef[int]] = []
        for _ in range(12):  # more than there may be waits within waits
            following = line[-1] if line else None
            line.append(system.spawn(Relay, following, mailbox=BoundedMailbox(1)))
        line[-1].tell(0)
        system.drain(60)
        assert [ref.statistics().messages for ref in reversed(line)] == [
            2**place for place in range(12)
        ]
        assert system.dead_letters.count == 0


@pytest.mark.parametrize("capacity", [1, 10])
async def test_waits_for_room_are_not_counted_as_messages(capacity: int) -> None:
    async with ActorSystem(workers=1, monitoring="times") as system:
        ref = system.spawn(Echo, mailbox=BoundedMailbox(capacity))
        for number in range(300):
            await ref.atell(number)
        await system.adrain(60)
        statistics = system.statistics()
        assert statistics.of(ref.path).messages == 300
        assert [one.messages for one in statistics.classes] == [300]
