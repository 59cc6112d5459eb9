"""Answers that are futures: passed on, deferred, failed with their actor, in circles."""

import gc
import threading
import weakref
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorStopped, ActorSystem, AskTimeout, DrainTimeout, Future
from callboard.testing import ManualSystem
from tests.actors.promising import Link, Promising


def ask_and_wait_till_promised(ref: ActorRef[Any], *messages: Any) -> list[Future[Any]]:
    answers = [ref.ask(message) for message in messages]
    assert ref.ask("how are you").result(timeout=30) == "well"
    return answers


def complete_all(promises: list[Future[Any]]) -> None:
    for promise in promises:
        promise.set_result(None)


# --- answers that come later ----------------------------------------------------------------------


def test_a_future_returned_by_receive_answers_the_ask_when_done(system: ActorSystem) -> None:
    promises: list[Future[Any]] = []
    ref = system.spawn(Promising, promises)
    first, second, third = ask_and_wait_till_promised(ref, 1, 2, 3)
    assert not first.done()
    promises[2].set_result("three")
    promises[1].set_exception(LookupError("two"))
    assert third.result(timeout=30) == "three"
    with pytest.raises(LookupError, match="two"):
        second.result(timeout=30)
    assert not first.done()
    promises[0].set_result("one")
    assert first.result(timeout=30) == "one"
    assert ref.is_alive, "the failure was the answer, not the actor's"


def test_an_actor_that_stops_fails_the_answers_that_it_owes(system: ActorSystem) -> None:
    ref = system.spawn(Promising, [])
    answers = ask_and_wait_till_promised(ref, 1, 2)
    assert ref.info().pending_answers == 2
    ref.stop()
    for answer in answers:
        with pytest.raises(ActorStopped, match=f"{ref.path} was stopped; it had answered"):
            answer.result(timeout=30)
    system.drain()
    assert ref.info().pending_answers == 0


def test_an_actor_that_restarts_fails_the_answers_it_owed(system: ActorSystem) -> None:
    promises: list[Future[Any]] = []
    ref = system.spawn(Promising, promises, supervision="restart")
    answers = ask_and_wait_till_promised(ref, 1, 2)
    ref.tell("fail")
    for answer in answers:
        with pytest.raises(LookupError, match="as told"):
            answer.result(timeout=30)
    (later,) = ask_and_wait_till_promised(ref, 3)
    assert ref.info().pending_answers == 1
    promises[2].set_result("the new object's")
    assert later.result(timeout=30) == "the new object's"


def test_an_actor_that_is_resumed_still_owes_its_answers(system: ActorSystem) -> None:
    promises: list[Future[Any]] = []
    ref = system.spawn(Promising, promises, supervision="resume")
    (answer,) = ask_and_wait_till_promised(ref, 1)
    ref.ask("fail").exception(timeout=30)
    assert not answer.done()
    promises[0].set_result("after all")
    assert answer.result(timeout=30) == "after all"


def test_the_last_occasion_to_give_an_answer_is_on_stop(system: ActorSystem) -> None:
    class Orderly(Promising):
        def on_stop(self) -> None:
            for promise in self.promises:
                promise.set_result("in a hurry")

    ref = system.spawn(Orderly, [])
    (answer,) = ask_and_wait_till_promised(ref, 1)
    ref.stop()
    assert answer.result(timeout=30) == "in a hurry"


def test_a_system_that_stops_fails_the_answers_that_its_actors_owe() -> None:
    system = ActorSystem()
    (answer,) = ask_and_wait_till_promised(system.spawn(Promising, []), 1)
    system.stop()
    with pytest.raises(ActorStopped):
        answer.result(timeout=30)


def test_an_async_actor_may_answer_with_a_future_of_its_own_too(system: ActorSystem) -> None:
    class Slow(Actor[Any]):
        async def receive(self, message: Any) -> Future[Any]:
            await self.sleep(0)
            promise: Future[Any] = Future()
            promises.append(promise)
            made.set()
            return promise

    promises: list[Future[Any]] = []
    made = threading.Event()
    ref = system.spawn(Slow)
    answer = ref.ask("x")
    assert made.wait(30)
    ref.stop()
    with pytest.raises(ActorStopped):
        answer.result(timeout=30)


def test_drain_waits_for_an_answer_that_is_owed(system: ActorSystem) -> None:
    class Alarm(Actor[Any]):
        """Keeps its promise when a timer says so."""

        def receive(self, message: Any) -> Any:
            if message == "ring":
                self.promise.set_result("rung")
                return None
            self.promise: Future[str] = Future()
            self.after(0.05, "ring")
            return self.promise

    answer = system.spawn(Alarm).ask("set")
    system.drain(timeout=30)
    assert answer.result(timeout=0) == "rung"


def test_drain_returns_when_an_outside_thread_gives_the_answer(system: ActorSystem) -> None:
    promises: list[Future[Any]] = []
    (answer,) = ask_and_wait_till_promised(system.spawn(Promising, promises), 1)
    drained = threading.Thread(target=system.drain, args=(30,))
    drained.start()
    promises[0].set_result("from outside")
    drained.join(30)
    assert not drained.is_alive()
    assert answer.result(timeout=0) == "from outside"


def test_the_error_of_a_drain_that_gave_up_says_who_owes_an_answer(system: ActorSystem) -> None:
    promises: list[Future[Any]] = []
    ref = system.spawn(Promising, promises, name="promising")
    ask_and_wait_till_promised(ref, 1)
    with pytest.raises(DrainTimeout, match="/promising answered an ask with a future that is not"):
        system.drain(timeout=0.01)
    ask_and_wait_till_promised(ref, 2)
    with pytest.raises(DrainTimeout, match="/promising answered 2 asks with a future that is not"):
        system.drain(timeout=0.01)
    complete_all(promises)


def test_a_manual_system_drains_until_its_actors_owe_nothing(manual: ManualSystem) -> None:
    promises: list[Future[Any]] = []
    ref = manual.spawn(Promising, promises, name="promising")
    answer = ref.ask(1)
    with pytest.raises(DrainTimeout, match="/promising answered an ask"):
        manual.drain()
    promises[0].set_result("done")
    manual.drain()
    assert answer.result() == "done"


def test_an_answer_that_comes_after_the_asks_timeout_is_dropped(system: ActorSystem) -> None:
    promises: list[Future[Any]] = []
    ref = system.spawn(Promising, promises)
    answer = ref.ask("x", timeout=0.01)
    with pytest.raises(AskTimeout):
        answer.result(timeout=30)
    assert ref.ask("how are you").result(timeout=30) == "well"
    system.drain()
    assert ref.info().pending_answers == 0, "the asker no longer waits"
    promises[0].set_result("too late")
    assert isinstance(answer.exception(), AskTimeout)


def test_one_future_may_answer_many_asks(system: ActorSystem) -> None:
    class Once(Promising):
        def receive(self, message: Any) -> Any:
            return self.promises[0] if message == "shared" else super().receive(message)

    promise: Future[Any] = Future()
    ref = system.spawn(Once, [promise])
    answers = ask_and_wait_till_promised(ref, *["shared"] * 20)
    assert ref.info().pending_answers == 20
    promise.set_result("for all")
    assert [answer.result(timeout=30) for answer in answers] == ["for all"] * 20
    system.drain()
    assert ref.info().pending_answers == 0


def test_an_answer_that_was_given_leaves_nothing_behind(system: ActorSystem) -> None:
    class Thing:
        pass

    promises: list[Future[Any]] = []
    ref = system.spawn(Promising, promises)
    watch = []
    for completed in (True, False):
        answer = ref.ask("x", timeout=None if completed else 0.01)
        assert ref.ask("how are you").result(timeout=30) == "well"
        if completed:
            thing = Thing()
            watch.append(weakref.ref(thing))
            promises.pop().set_result(thing)
            del thing
        answer.exception(timeout=30)
        kept = Thing()
        watch.append(weakref.ref(kept))
        answer.add_done_callback(lambda done, kept=kept: None)  # type: ignore[misc]
        del answer, kept
    system.drain()
    assert ref.info().pending_answers == 0
    gc.collect()
    assert [reference() for reference in watch] == [None] * 3
    complete_all(promises)


# --- answers that are passed on -------------------------------------------------------------------


def test_an_answer_is_passed_on_though_the_middle_actor_has_stopped(system: ActorSystem) -> None:
    class Once(Actor[Any]):
        def __init__(self, target: ActorRef[Any]) -> None:
            self.target = target

        def receive(self, message: Any) -> Future[Any]:
            self.stop()
            return self.target.ask(message)

    promises: list[Future[Any]] = []
    target = system.spawn(Promising, promises)
    once = system.spawn(Once, target)
    answer = once.ask("x")
    with pytest.raises(ActorStopped):
        once.ask("one more").result(timeout=30)
    assert target.ask("how are you").result(timeout=30) == "well"
    assert not answer.done()
    promises[0].set_result("the target's")
    assert answer.result(timeout=30) == "the target's"


@pytest.mark.parametrize("length", [1_000, 10_000, 100_000])
def test_a_long_chain_of_actors_passes_an_answer_back(length: int) -> None:
    with ActorSystem() as system:
        ref = None
        for _ in range(length):
            ref = system.spawn(Link, ref)
        assert ref is not None
        assert ref.ask("all the way").result(timeout=60) == "all the way"


def test_a_long_chain_of_actors_passes_a_failure_back(system: ActorSystem) -> None:
    class Failing(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise LookupError("at the end")

    ref: ActorRef[Any] = system.spawn(Failing)
    for _ in range(5_000):
        ref = system.spawn(Link, ref)
    with pytest.raises(LookupError, match="at the end"):
        ref.ask("x").result(timeout=60)


def test_a_long_chain_of_actors_whose_last_one_stops_fails_as_a_whole(system: ActorSystem) -> None:
    last = ref = system.spawn(Promising, [])
    for _ in range(5_000):
        ref = system.spawn(Link, ref)
    answer = ref.ask("x")
    while not last.info().pending_answers:
        assert ref.ask("how are you").result(timeout=60) == "well"
    last.stop()
    with pytest.raises(ActorStopped, match=f"{last.path} was stopped"):
        answer.result(timeout=60)
