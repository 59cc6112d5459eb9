"""How an actor ended: an ask, a watcher, a dead letter and `ref.ended` agree."""

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorStopped,
    ActorSystem,
    BoundedMailbox,
    DeadLetter,
    Future,
    PriorityMailbox,
    Supervision,
)
from callboard.core.errors import ActorFailed
from callboard.testing import ManualSystem, replay
from tests.actors.supervised import Watching


class Room(Actor[Any]):
    """Does what its messages say."""

    def receive(self, message: Any) -> Any:
        if isinstance(message, Exception):
            raise message
        if message == "spawn":
            return self.spawn(Room, name="child")
        if message == "leave":
            self.stop()
        return message


class Closed(Room):
    def __init__(self) -> None:
        raise TypeError("no key")


def by_stop(system: ManualSystem, parent: ActorRef[Any]) -> ActorRef[Any]:
    child: ActorRef[Any] = parent.ask("spawn").result()
    child.stop()
    return child


def by_itself(system: ManualSystem, parent: ActorRef[Any]) -> ActorRef[Any]:
    child: ActorRef[Any] = parent.ask("spawn").result()
    child.tell("leave")
    return child


def by_failure(system: ManualSystem, parent: ActorRef[Any]) -> ActorRef[Any]:
    child: ActorRef[Any] = parent.ask("spawn").result()
    child.tell(RuntimeError("full"))
    return child


def at_the_start(system: ManualSystem, parent: ActorRef[Any]) -> ActorRef[Any]:
    return system.spawn(Closed, name="closed")


def with_its_parent(system: ManualSystem, parent: ActorRef[Any]) -> ActorRef[Any]:
    child: ActorRef[Any] = parent.ask("spawn").result()
    parent.tell(RuntimeError("full"))
    return child


def with_its_grandparent(system: ManualSystem, parent: ActorRef[Any]) -> ActorRef[Any]:
    child = parent.ask("spawn").result()
    grandchild: ActorRef[Any] = child.ask("spawn").result()
    parent.tell(RuntimeError("full"))
    return grandchild


def with_its_system(system: ManualSystem, parent: ActorRef[Any]) -> ActorRef[Any]:
    system.stop()
    return parent


BY_SUPERVISOR = "was stopped by its supervisor after /parent failed: RuntimeError: full"
ENDS: list[tuple[Callable[..., ActorRef[Any]], str, str, type[Exception] | None]] = [
    (by_stop, "stopped", "/parent/child was stopped", None),
    (by_itself, "stopped", "/parent/child was stopped", None),
    (by_failure, "failed", "/parent/child failed: RuntimeError: full", RuntimeError),
    (at_the_start, "failed to start", "/closed failed to start: TypeError: no key", TypeError),
    (with_its_parent, "stopped by supervisor", f"/parent/child {BY_SUPERVISOR}", RuntimeError),
    (
        with_its_grandparent,
        "stopped by supervisor",
        f"/parent/child/child {BY_SUPERVISOR}",
        RuntimeError,
    ),
    (with_its_system, "system stopped", "/parent was stopped: its system 'inn' has stopped", None),
]


@pytest.mark.parametrize(("end", "reason", "text", "kind"), ENDS, ids=[e[0].__name__ for e in ENDS])
@replay(seeds=5)
def test_all_that_tell_of_an_end_say_the_same(
    seed: int,
    end: Callable[..., ActorRef[Any]],
    reason: str,
    text: str,
    kind: type[Exception] | None,
) -> None:
    letters: list[DeadLetter] = []
    system = ManualSystem(seed, name="inn")
    system.dead_letters.subscribe(letters.append)
    parent = system.spawn(Room, name="parent")
    ref = end(system, parent)
    if not system.is_closed:
        watching = system.spawn(Watching, ref)
        before = ref.ended
        system.run_until_idle()
        [told] = watching.ask("seen").result()
        assert (told.ref, told.reason) == (ref, reason)
        assert (told.error is None) == (kind is None)
        if told.error is not None:
            assert told.error.type is kind
        assert before.result(0.0) == ref.ended.result(0.0)
    ended = ref.ended.result(0.0)
    assert (ended.reason, f"{ref.path} {ended}") == (reason, text)
    letters.clear()
    ref.tell("late")
    error = ref.ask("late").exception(0.0)
    assert isinstance(error, ActorStopped)
    assert str(error) == text
    assert len(letters) == 2
    assert {letter.reason for letter in letters} == {
        "system stopped" if reason == "system stopped" else "stopped"
    }
    if kind is None:
        assert ended.error is error.__cause__ is letters[0].error is None
    else:
        for failure in (ended.error, error.__cause__):
            assert isinstance(failure, ActorFailed)
            assert failure.type is kind
            assert text.rpartition("Error: ")[2] in str(failure)
        assert str(letters[0].error) == text
    system.stop()


def test_an_end_stays_what_it_was_when_the_system_stops() -> None:
    with ManualSystem() as system:
        ref = system.spawn(Room, name="room")
        ref.stop()
        system.run_until_idle()
    assert ref.ended.result(0.0).reason == "stopped"
    assert str(ref.ask("late").exception(0.0)) == "/room was stopped"


def test_an_end_can_be_waited_for_before_and_after_it(system: ActorSystem) -> None:
    ref = system.spawn(Room)
    ended = ref.ended
    assert not ended.done()
    assert "waiting" in repr(ended)
    ref.stop()
    assert ended.result(30).reason == "stopped"
    assert ref.ended.result(30) == ended.result(30)
    system.stop()
    assert ref.ended.done()
    assert system.dead_letters.count == 0


def test_an_actor_that_awaits_an_end_is_idle(system: ActorSystem) -> None:
    class Waiting(Actor[ActorRef[Any]]):
        async def receive(self, other: ActorRef[Any]) -> str:
            return (await other.ended).reason

    ref = system.spawn(Room)
    asked = system.spawn(Waiting).ask(ref)
    system.drain(30)  # which does not wait for the end
    assert not asked.done()
    ref.tell(RuntimeError("full"))
    assert asked.result(30) == "failed"


def test_an_end_can_be_awaited_on_an_event_loop(system: ActorSystem) -> None:
    async def wait(ref: ActorRef[Any]) -> str:
        ended = ref.ended
        ref.stop()
        return str((await asyncio.wait_for(_plain(ended), 30)).reason)

    async def _plain(future: Future[Any]) -> Any:
        return await future

    assert asyncio.run(wait(system.spawn(Room))) == "stopped"


def test_an_actor_that_awaits_its_own_end_gets_an_error(system: ActorSystem) -> None:
    class Narcissus(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            return await self.ref.ended

    with pytest.raises(Exception, match="each waits for the next"):
        system.spawn(Narcissus).ask("wait").result(30)


def test_each_of_many_ends_that_race_with_those_who_ask_for_them_is_told() -> None:
    with ActorSystem(workers=2) as system:
        ended: list[Future[Any]] = []
        for number in range(300):
            ref = system.spawn(Room)
            if number % 2:
                ref.stop()
                ended.append(ref.ended)
            else:
                ended.append(ref.ended)
                ref.tell("leave")
        assert {future.result(30).reason for future in ended} == {"stopped"}


def test_a_system_that_is_collected_open_warns_and_its_actors_know() -> None:
    systems = [ActorSystem("lost", workers=1)]
    ref = systems[0].spawn(Room, name="room")
    ended = ref.ended
    with pytest.warns(ResourceWarning, match="'lost' was garbage-collected before it was stopped"):
        systems.clear()
    assert ended.result(30).reason == "system collected"
    text = "/room was stopped: its system 'lost' was garbage-collected"
    assert str(ref.ask("late").exception(30)) == text


def test_a_system_that_was_stopped_is_collected_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        system = ActorSystem(workers=1)
        system.spawn(Room)
        system.stop()
        del system
        gc.collect()


# --- the start -----------------------------------------------------------------------------------


def test_a_start_answers_with_the_ref(system: ActorSystem) -> None:
    ref = system.spawn(Room).ready.result(30)
    assert ref.ask("there").result(30) == "there"
    assert ref.ready.result(30) is ref


def test_a_start_that_fails_raises_at_the_spawn(system: ActorSystem) -> None:
    with pytest.raises(ActorStopped, match=r"^/room failed to start: TypeError: no key$"):
        system.spawn(Closed, name="room").ready.result(30)


def test_the_cause_of_a_failed_start_is_the_error_or_its_text_once_the_actor_has_ended() -> None:
    with ManualSystem() as system:
        room = system.spawn(Closed)
        before = room.ready
        system.run_until_idle()
        early, late = before.exception(), room.ready.exception()
        assert early is not None
        assert isinstance(early.__cause__, TypeError)
        assert early.__cause__.__traceback__ is not None
        assert late is not None
        assert isinstance(late.__cause__, ActorFailed)
        assert "TypeError: no key" in str(late.__cause__)


@replay(seeds=10)
def test_a_start_is_through_only_after_on_start_and_restarts(seed: int) -> None:
    made: list[str] = []

    class Third(Room):
        def on_start(self) -> None:
            made.append("start")
            if len(made) < 3:
                raise OSError("not yet")

    with ManualSystem(seed) as system:
        supervision = Supervision("restart", backoff=1.0)
        ready = [system.spawn(Third, supervision=supervision).ready]
        other = system.spawn(Room)
        other.tell("x")
        ready.append(other.ready)
        assert not ready[0].done()
        assert ready[0].result(10.0) is not None
        assert len(made) == 3
        assert ready[1].result() is other


def test_a_start_that_is_never_made_fails(manual: ManualSystem) -> None:
    ref = manual.spawn(Room, name="room")
    ready = ref.ready
    ref.stop()
    with pytest.raises(ActorStopped, match=r"^/room was stopped$"):
        ready.result()
    with pytest.raises(ActorStopped, match=r"^/room was stopped$"):
        ref.ready.result()


def test_an_actor_awaits_a_start_and_may_not_block_for_it(system: ActorSystem) -> None:
    class Parent(Actor[str]):
        async def receive(self, message: str) -> Any:
            child = self.spawn(Room)
            return child.ready.result() if message == "block" else await child.ready

    parent = system.spawn(Parent)
    assert parent.ask("await").result(30).path.startswith("/Parent")
    with pytest.raises(Exception, match=r"result\(\) would block a worker: use `await`"):
        parent.ask("block").result(30)


# --- a stop behind the queue ---------------------------------------------------------------------


class Notes(Actor[Any]):
    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def receive(self, message: Any) -> None:
        self.seen.append(message)


class NotesOfMany(Notes):
    def receive_many(self, messages: list[Any]) -> None:
        self.seen.extend(messages)
        messages.clear()


MAILBOXES = [None, BoundedMailbox(10), BoundedMailbox(10, "fail"), BoundedMailbox(3, "drop_newest")]


@pytest.mark.parametrize("mailbox", MAILBOXES)
@pytest.mark.parametrize("cls", [Notes, NotesOfMany])
@replay(seeds=5)
def test_stop_after_queue_handles_what_waits(seed: int, cls: type[Notes], mailbox: Any) -> None:
    seen: list[Any] = []
    letters: list[DeadLetter] = []
    with ManualSystem(seed, quantum=4) as system:
        system.dead_letters.subscribe(letters.append)
        ref = system.spawn(cls, seen, mailbox=mailbox)
        ref.tell_many([1, 2])
        ref.stop(after_queue=True)
        ref.stop(after_queue=True)
        if mailbox is None or mailbox.overflow == "throttle":
            ref.tell(3)
        assert ref.is_alive
        assert ref.ended.result().reason == "stopped"
        ref.stop(after_queue=True)
        ref.tell(4)
    assert seen == [1, 2]
    assert [letter.message for letter in letters] in ([3, 4], [4])
    assert {letter.reason for letter in letters} == {"stopped"}


def test_a_stop_behind_the_oldest_messages_comes_though_they_are_dropped() -> None:
    seen: list[Any] = []
    with ManualSystem() as system:
        ref = system.spawn(Notes, seen, mailbox=BoundedMailbox(2, "drop_oldest"))
        ref.tell_many([1, 2])
        ref.stop(after_queue=True)
        ref.tell_many([3, 4, 5])
        assert ref.ended.result().reason == "stopped"


def test_a_stop_behind_a_priority_mailbox_comes_when_nothing_waits() -> None:
    seen: list[Any] = []
    with ManualSystem() as system:
        ref = system.spawn(Notes, seen, mailbox=PriorityMailbox(key=lambda message: message))
        ref.tell_many([2, 3])
        ref.stop(after_queue=True)
        ref.tell(1)
        assert ref.ended.result().reason == "stopped"
    assert seen == [1, 2, 3]


def test_each_message_told_during_an_end_is_handled_or_dead() -> None:
    seen: list[Any] = []
    with ActorSystem(workers=2) as system:
        ref = system.spawn(Notes, seen)
        begun = threading.Barrier(3)

        def tell(start: int) -> None:
            begun.wait(30)
            for number in range(start, start + 1_000):
                ref.tell(number)

        threads = [threading.Thread(target=tell, args=(start,)) for start in (0, 1_000)]
        for thread in threads:
            thread.start()
        begun.wait(30)
        ref.stop(after_queue=True)
        assert ref.ended.result(30).reason == "stopped"
        for thread in threads:
            thread.join(30)
        system.drain(30)
        assert len(seen) + system.dead_letters.count == 2_000
        assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("wrong", [None, 1, "yes"])
def test_after_queue_is_true_or_false(system: ActorSystem, wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="after_queue"):
        system.spawn(Room).stop(after_queue=wrong)
