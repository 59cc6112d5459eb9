"""A cancelled ask: what becomes of its message, of the handler, and of those who wait."""

import asyncio
import concurrent.futures
import threading
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    AskCancelled,
    AskCycle,
    BoundedMailbox,
    DeadLetter,
    Future,
    PriorityMailbox,
    Supervision,
    as_concurrent,
    gather,
)
from callboard.testing import ManualSystem, replay

DEADLINE = 30.0

hosts = pytest.mark.parametrize("event_loop", [False, True], ids=["worker", "event loop"])


class Napping(Actor[Any]):
    """Sleeps for as long as it is told, and notes how its messages end."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    async def receive(self, message: Any) -> Any:
        self.log.append(("begun", message))
        try:
            await self.sleep(message)
        except asyncio.CancelledError:
            self.log.append(("cancelled", message, self.is_wanted()))
            raise
        self.log.append(("ended", message))
        return message


def letters_of(system: ActorSystem) -> list[DeadLetter]:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    return letters


# --- the asker's future ---------------------------------------------------------------------------


def test_a_cancelled_future_is_done_and_fails_and_stays_so() -> None:
    future: Future[int] = Future()
    seen: list[bool] = []
    future.add_done_callback(lambda done: seen.append(done.cancelled()))
    assert not future.cancelled()
    assert future.cancel()
    assert future.done()
    assert future.cancelled()
    assert seen == [True]
    with pytest.raises(AskCancelled, match="was cancelled"):
        future.result(0)
    assert not future.cancel()
    assert not future.set_result(1)
    assert not future.set_exception(ValueError())
    assert future.cancelled()
    assert "cancelled" in repr(future)


def test_a_future_that_is_done_cannot_be_cancelled() -> None:
    future: Future[int] = Future()
    future.set_result(1)
    assert not future.cancel()
    assert not future.cancelled()
    assert future.result(0) == 1


def test_a_callback_that_is_removed_is_not_called() -> None:
    future: Future[int] = Future()
    seen: list[str] = []

    class Noting:
        def note(self, done: Future[int]) -> None:
            seen.append("bound")

    noting = Noting()
    first = lambda done: seen.append("first")  # noqa: E731
    future.add_done_callback(first)
    future.add_done_callback(noting.note)
    future.add_done_callback(lambda done: seen.append("second"))
    future.add_done_callback(first)
    assert future.remove_done_callback(first) == 2
    assert future.remove_done_callback(first) == 0
    assert future.remove_done_callback(noting.note) == 1
    future.set_result(1)
    assert seen == ["second"]
    assert future.remove_done_callback(first) == 0


@pytest.mark.parametrize("in_asyncio", [False, True])
def test_who_waits_for_a_cancelled_ask_gets_the_error(in_asyncio: bool) -> None:
    with ActorSystem(workers=1) as system:
        napping = system.spawn(Napping, [])
        answer = napping.ask(1e6)

        async def main() -> None:
            asyncio.get_running_loop().call_soon(answer.cancel)
            with pytest.raises(AskCancelled):
                await answer

        if in_asyncio:
            asyncio.run(asyncio.wait_for(main(), DEADLINE))
        else:
            threading.Timer(0.0, answer.cancel).start()
            with pytest.raises(AskCancelled):
                answer.result(DEADLINE)


# --- the message ----------------------------------------------------------------------------------


@hosts
def test_a_handler_in_the_middle_gets_cancelled_error_and_its_actor_goes_on(
    event_loop: bool,
) -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        letters = letters_of(system)
        napping = system.spawn(Napping, log, event_loop=event_loop)
        first, second = napping.ask(100), napping.ask(1)
        system.run_until_idle()
        assert first.cancel()
        assert second.result() == 1
        assert system.now == 1
    assert log == [("begun", 100), ("cancelled", 100, False), ("begun", 1), ("ended", 1)]
    assert [(letter.message, letter.reason) for letter in letters] == [(100, "cancelled")]
    assert system.dead_letters.failure_count == 0


def test_a_slow_handler_does_not_hold_a_drain_up_once_it_is_cancelled() -> None:
    with ActorSystem(workers=2) as system:
        log: list[Any] = []
        answer = system.spawn(Napping, log).ask(1e6)
        assert answer.cancel()
        system.drain(DEADLINE)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mailbox": BoundedMailbox(10)},
        {"mailbox": BoundedMailbox(10, overflow="drop_oldest")},
        {"mailbox": PriorityMailbox(lambda message: 0)},
        {"context": "sender"},
        {"event_loop": True},
    ],
    ids=["plain", "bounded", "drop_oldest", "priority", "context", "event loop"],
)
def test_a_message_that_waits_is_skipped(options: dict[str, Any]) -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        letters = letters_of(system)
        napping = system.spawn(Napping, log, **options)
        answers = [napping.ask(n) for n in range(1, 5)]
        answers[1].cancel()
        answers[2].cancel()
        assert answers[3].result() == 4
        assert napping.ask(7).result() == 7
    assert [entry for entry in log if entry[0] == "begun"] == [("begun", n) for n in (1, 4, 7)]
    assert [(letter.message, letter.reason) for letter in letters] == [
        (2, "cancelled"),
        (3, "cancelled"),
    ]


def test_a_message_that_was_put_aside_is_dropped_there() -> None:
    class Shop(Actor[str]):
        def receive(self, message: str) -> Any:
            if message == "open":
                self.become(lambda message: sold.append(message))
                self.unstash_all()
            else:
                self.stash()

    sold: list[str] = []
    with ManualSystem() as system:
        letters = letters_of(system)
        shop = system.spawn(Shop)
        cart, tea = shop.ask("cart"), shop.ask("tea")
        system.run_until_idle()
        cart.cancel()
        shop.tell("open")
        assert tea.result() is None
    assert sold == ["tea"]
    assert [letter.reason for letter in letters] == ["cancelled"]


def test_a_message_that_waits_for_room_outside_is_skipped_too() -> None:
    log: list[Any] = []

    async def main() -> None:
        async with ActorSystem(workers=1) as system:
            napping = system.spawn(Napping, log, mailbox=BoundedMailbox(1))
            answers = [napping.ask(n / 1e6) for n in range(1, 6)]
            answers[3].cancel()
            await answers[4]

    asyncio.run(asyncio.wait_for(main(), DEADLINE))
    assert ("begun", 4 / 1e6) not in log
    assert ("begun", 5 / 1e6) in log


def test_receive_many_is_not_handed_a_cancelled_ask() -> None:
    class Many(Actor[int]):
        def receive(self, message: int) -> int:
            asked.append(message)
            return message

        def receive_many(self, messages: list[int]) -> None:
            told.extend(messages)

    asked: list[int] = []
    told: list[int] = []
    with ManualSystem(quantum=8) as system:
        many = system.spawn(Many)
        many.tell(0)
        first, second = many.ask(1), many.ask(2)
        many.tell(3)
        first.cancel()
        assert second.result() == 2
        system.run_until_idle()
    assert asked == [2]
    assert told == [0, 3]


def test_a_plain_handler_is_told_by_is_wanted() -> None:
    class Counting(Actor[str]):
        def receive(self, message: str) -> bool | None:
            wanted.append(self.is_wanted())
            if message == "wait":
                begun.set()
                assert go_on.wait(DEADLINE)
            wanted.append(self.is_wanted())
            return None

    wanted: list[bool] = []
    begun, go_on = threading.Event(), threading.Event()
    with ActorSystem(workers=1) as system:
        counting = system.spawn(Counting)
        counting.ask("at once").result(DEADLINE)
        counting.tell("told")
        answer = counting.ask("wait")
        assert begun.wait(DEADLINE)
        answer.cancel()
        go_on.set()
    assert wanted == [True, True, True, True, True, False]


def test_a_timeout_makes_an_answer_unwanted() -> None:
    class Late(Actor[str]):
        async def receive(self, message: str) -> None:
            await self.sleep(2)
            wanted.append(self.is_wanted())

    wanted: list[bool] = []
    with ManualSystem() as system:
        system.spawn(Late).ask("now", timeout=1)
        system.advance(5)
    assert wanted == [False]


@hosts
def test_a_handler_may_go_on_after_the_cancellation(event_loop: bool) -> None:
    class Careful(Actor[str]):
        async def receive(self, message: str) -> str:
            try:
                await self.sleep(100)
            except asyncio.CancelledError:
                await self.sleep(5)
                log.append("cleaned up")
            return message

    log: list[str] = []
    with ManualSystem() as system:
        letters = letters_of(system)
        answer = system.spawn(Careful, event_loop=event_loop).ask("clean")
        system.advance(1)
        answer.cancel()
        system.drain()
        assert system.now == 6
        with pytest.raises(AskCancelled):
            answer.result()
    assert log == ["cleaned up"]
    assert letters == []


def test_an_error_of_the_handler_after_the_cancellation_is_a_failure() -> None:
    class Careless(Actor[str]):
        async def receive(self, message: str) -> None:
            try:
                await self.sleep(100)
            except asyncio.CancelledError:
                raise LookupError("while cleaning up") from None

    with ManualSystem() as system:
        ref = system.spawn(Careless, supervision=Supervision("restart"))
        answer = ref.ask("clean")
        system.run_until_idle()
        answer.cancel()
        system.run_until_idle()
        assert system.dead_letters.failure_count == 1
        assert ref.is_alive


def test_a_cancelled_error_that_nobody_caused_is_a_failure() -> None:
    class Odd(Actor[str]):
        def receive(self, message: str) -> None:
            raise asyncio.CancelledError

    with ManualSystem() as system:
        answer = system.spawn(Odd).ask("now")
        with pytest.raises(asyncio.CancelledError):
            answer.result()
        assert system.dead_letters.failure_count == 1


def test_a_late_cancellation_ends_no_later_message() -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        napping = system.spawn(Napping, log)
        first = napping.ask(1)
        second = napping.ask(2)
        first.result()
        assert not first.cancel()
        assert second.result() == 2


def test_an_actor_that_stops_with_its_ask_cancelled_ends_well() -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        for event_loop in (False, True):
            napping = system.spawn(Napping, log, event_loop=event_loop)
            answers = [napping.ask(100), napping.ask(100)]
            system.run_until_idle()
            for answer in answers:
                answer.cancel()
            napping.stop()
            assert system.run_until(napping.ended.done)
            assert not napping.ask(1).cancelled()
            answers[0].cancel()


# --- who is asked in turn -------------------------------------------------------------------------


class Passing(Actor[Any]):
    """Asks another, and awaits the answer or hands the future on."""

    def __init__(self, to: ActorRef[Any], hands_on: bool = False) -> None:
        self.to = to
        self.hands_on = hands_on

    def receive(self, message: Any) -> Any:
        return self.to.ask(message) if self.hands_on else self.wait(message)

    async def wait(self, message: Any) -> Any:
        return await gather(self.to.ask(message))


@hosts
@pytest.mark.parametrize("hands_on", [False, True], ids=["awaits", "hands on"])
def test_the_ask_that_the_handler_waits_for_is_cancelled_with_it(
    event_loop: bool, hands_on: bool
) -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        napping = system.spawn(Napping, log)
        passing = system.spawn(Passing, napping, hands_on, event_loop=event_loop)
        answer = passing.ask(100)
        system.advance(1)
        answer.cancel()
        system.drain()
        assert system.now == 1
    assert log == [("begun", 100), ("cancelled", 100, False)]


def test_an_answer_that_others_wait_for_goes_on() -> None:
    class Caching(Actor[Any]):
        def __init__(self, to: ActorRef[Any]) -> None:
            self.to = to
            self.answers: dict[Any, Future[Any]] = {}

        def receive(self, message: Any) -> Any:
            if message not in self.answers:
                self.answers[message] = self.to.ask(message)
            return self.answers[message]

    with ManualSystem() as system:
        caching = system.spawn(Caching, system.spawn(Napping, []))
        first, second = caching.ask(5), caching.ask(5)
        system.run_until_idle()
        first.cancel()
        assert second.result() == 5


def test_a_promise_is_its_actors_and_is_not_cancelled_with_an_ask() -> None:
    class Owing(Actor[str]):
        def receive(self, message: str) -> Future[str]:
            return promise

    promise: Future[str] = Future()
    with ManualSystem() as system:
        owing = system.spawn(Owing)
        first = owing.ask("one")
        system.run_until_idle()
        assert owing.owes == 1
        first.cancel()
        assert owing.owes == 0
        system.drain(0)
        assert not promise.done()
        promise.set_result("late")
        assert owing.ask("two").result() == "late"


def test_a_drain_that_is_cancelled_is_given_up() -> None:
    with ActorSystem(workers=1) as system:
        answer = system.spawn(Napping, []).ask(1e6)
        drained: Any = system.drain_soon()
        assert drained.cancel()
        drained.thread.join(DEADLINE)
        assert not drained.thread.is_alive()
        assert drained.cancelled()
        answer.cancel()


def test_a_message_that_waits_for_room_is_taken_back_when_its_future_is_cancelled() -> None:
    async def main() -> None:
        async with ActorSystem(workers=1) as system:
            napping = system.spawn(Napping, log, mailbox=BoundedMailbox(1))
            first = napping.ask(1e6)
            told = [napping.tell_soon(n / 1e6) for n in range(1, 5)]
            assert told[3].cancel()
            first.cancel()
            for each in told[:3]:
                await each

    log: list[Any] = []
    asyncio.run(asyncio.wait_for(main(), DEADLINE))
    assert ("begun", 4 / 1e6) not in log
    assert ("begun", 3 / 1e6) in log


# --- futures of others ----------------------------------------------------------------------------


def test_a_future_of_concurrent_futures_that_is_made_of_ours_cancels_it() -> None:
    ours: Future[int] = Future()
    theirs = as_concurrent(ours)
    assert theirs.cancel()
    assert ours.cancelled()
    assert concurrent.futures.wait([theirs], 0).done == {theirs}
    other: Future[int] = Future()
    theirs = as_concurrent(other)
    other.cancel()
    assert theirs.cancelled()
    assert concurrent.futures.wait([theirs], 0).done == {theirs}


def test_asyncio_cancels_ours_through_a_wrapped_future() -> None:
    async def main() -> None:
        ours: Future[int] = Future()
        wrapped = asyncio.wrap_future(as_concurrent(ours))
        wrapped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wrapped
        await asyncio.sleep(0)  # for the callbacks of its end
        assert ours.cancelled()

    asyncio.run(asyncio.wait_for(main(), DEADLINE))


def test_a_cancelled_ask_cancels_the_work_of_an_executor_that_its_handler_returned() -> None:
    class Submitting(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return theirs

    theirs: concurrent.futures.Future[int] = concurrent.futures.Future()
    with ManualSystem() as system:
        answer = system.spawn(Submitting).ask("work")
        system.run_until_idle()
        answer.cancel()
        assert theirs.cancelled()
        system.drain(0)


def test_a_circle_through_map_is_found() -> None:
    class Asker(Actor[Any]):
        other: ActorRef[Any] | None = None

        async def receive(self, message: Any) -> Any:
            if message != "ask":
                self.other = message
                return None
            assert self.other is not None
            return await self.other.ask(message).map(lambda answer: answer)

    with ManualSystem() as system:
        ann, ben = system.spawn(Asker), system.spawn(Asker)
        ann.tell(ben)
        ben.tell(ann)
        with pytest.raises(AskCycle):
            ann.ask("ask").result()


# --- at every await, in every order ---------------------------------------------------------------


class Steps(Actor[int]):
    """Awaits in each way there is, one after the other, and counts how its messages end."""

    def __init__(self, helper: ActorRef[Any], ends: dict[str, int]) -> None:
        self.helper = helper
        self.ends = ends

    async def receive(self, message: int) -> int:
        try:
            await self.sleep(1)
            await self.helper.ask(1)
            await gather(self.helper.ask(2), self.helper.ask(3))
            await self.helper.ask(4).map(str)
            await self.deeper()
        except asyncio.CancelledError:
            self.ends["cancelled"] += 1
            raise
        self.ends["ended"] += 1
        return message

    async def deeper(self) -> None:
        await self.sleep(1)
        await self.helper.ask(5)


class Helper(Actor[int]):
    async def receive(self, message: int) -> int:
        await self.sleep(message / 10)
        return message


@hosts
@replay(seeds=60)
def test_an_ask_can_be_cancelled_at_every_await_and_nothing_is_lost(
    event_loop: bool, seed: int
) -> None:
    ends = {"cancelled": 0, "ended": 0}
    with ManualSystem(seed) as system:
        letters = letters_of(system)
        helper = system.spawn(Helper)
        steps = system.spawn(Steps, helper, ends, event_loop=event_loop)
        answers = [steps.ask(n) for n in range(3)]
        for _ in range(seed):
            if not system.step():
                system.advance(0.05)
        cancelled = answers[1].cancel() + answers[0].cancel()
        assert answers[2].result() == 2
        assert answers[0].done()
        system.drain()
        skipped = [letter for letter in letters if letter.recipient is steps]
        assert {letter.reason for letter in skipped} <= {"cancelled"}
        begun = ends["cancelled"] + ends["ended"]
        not_begun = len(skipped) - ends["cancelled"]
        assert begun + not_begun == 3
        assert ends["ended"] >= 3 - cancelled
        assert system.dead_letters.failure_count == 0
        assert helper.ask(1).result() == 1


def test_asks_that_are_cancelled_by_other_threads_all_end() -> None:
    log: list[Any] = []
    with ActorSystem(workers=2) as system:
        napping = [system.spawn(Napping, log) for _ in range(4)]
        answers = [ref.ask(n % 3 / 1e4) for n in range(400) for ref in napping]

        def cancel(mine: list[Future[Any]]) -> None:
            for future in mine:
                future.cancel()

        threads = [threading.Thread(target=cancel, args=(answers[i::3],)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        system.drain(DEADLINE)
    assert all(answer.done() for answer in answers)
    assert all(answer.result(0) is not None for answer in answers[2::3])
    handled = sum(1 for entry in log if entry[0] in ("ended", "cancelled"))
    assert sum(1 for entry in log if entry[0] == "begun") == handled
