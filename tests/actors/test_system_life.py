"""How systems end: by their block, Ctrl-C, exit or collection; and systems after a fork."""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorSystem, CallboardError, DrainTimeout
from callboard.core.threads.wait_queue import WaitQueue
from callboard.policies import Fixed
from tests.tokenless import tokenless


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


@pytest.mark.parametrize("name", ["x\udcff", "日本語の名前の系"])
def test_a_system_may_have_any_text_as_its_name(name: str) -> None:
    with ActorSystem(name) as system:
        assert system.spawn(Echo).ask(1).result(30) == 1
        assert system.spawn(Echo, dedicated=True).ask(2).result(30) == 2
        assert system.name == name


def test_leaving_the_block_handles_what_was_told_and_ends_the_threads() -> None:
    seen: list[Any] = []

    class Keeper(Actor[Any]):
        def receive(self, message: Any) -> None:
            seen.append(message)

    before = set(threading.enumerate())  # of which some may be ending
    with ActorSystem(workers=2) as system:
        system.spawn(Keeper).tell_many(range(1_000))
        system.spawn(Keeper, dedicated=True).tell(-1)
    assert sorted(seen) == list(range(-1, 1_000))
    for thread in set(threading.enumerate()) - before:  # a dedicated actor's may be ending still
        thread.join(30)
        assert not thread.is_alive()


def test_an_exception_in_the_block_stops_the_system_without_a_drain() -> None:
    system = ActorSystem()
    with pytest.raises(LookupError, match="the user's own"), system:
        raise LookupError("the user's own")
    assert system.is_closed


def test_stop_can_be_called_again() -> None:
    system = ActorSystem()
    system.stop()
    system.stop()
    assert system.is_closed


def test_an_actor_may_stop_its_system() -> None:
    class Last(Actor[Any]):
        def receive(self, message: Any) -> None:
            assert self.system is not None
            self.system.stop()

    with ActorSystem() as system:
        system.spawn(Last).tell("x")
        assert system.join(timeout=30)
    assert system.is_closed


@pytest.mark.parametrize("what", ["drain", "join"])
def test_an_actor_cannot_wait_for_its_own_system(what: str) -> None:
    class Waiter(Actor[Any]):
        def receive(self, message: Any) -> None:
            getattr(self.system, what)()

    with (
        ActorSystem() as system,
        pytest.raises(CallboardError, match=rf"{what}\(\) in an actor would wait for the actor"),
    ):
        system.spawn(Waiter).ask("x").result(timeout=30)


def test_a_drain_that_cannot_finish_says_which_actor_is_stuck_and_where() -> None:
    gate, entered = threading.Event(), threading.Event()

    class Stuck(Actor[Any]):
        def receive(self, message: Any) -> None:
            self.wait_in_here()

        def wait_in_here(self) -> None:
            entered.set()
            assert gate.wait(60)

    with ActorSystem(name="shop") as system:
        system.spawn(Stuck, name="stuck").tell("x")
        assert entered.wait(30)
        with pytest.raises(DrainTimeout, match=r"'shop' did not become idle in 0.01 s") as caught:
            system.drain(timeout=0.01)
        gate.set()
    text = str(caught.value)
    assert "worker shop-0 runs /stuck, for about" in text
    assert "wait_in_here" in text
    assert "threading.py" not in text.partition("wait_in_here")[0]


def test_a_drain_names_an_actor_that_waits_in_the_middle_and_for_whom() -> None:
    asked_for = threading.Event()

    class Silent(Actor[Any]):
        def receive(self, message: Any) -> Any:
            if message == "answer":
                self.unstash_all()
                self.become(lambda message: message)
            else:
                self.stash()
                asked_for.set()

    class Waits(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            return await silent.ask(message)

    with ActorSystem(workers=1) as system:  # which runs one after the other
        silent = system.spawn(Silent, name="silent")
        asked = system.spawn(Waits, name="waits").ask("x")
        assert asked_for.wait(30)
        with pytest.raises(DrainTimeout) as caught:
            system.drain(timeout=0.01)
        silent.tell("answer")
        assert asked.result(timeout=30) == "x"
    assert "/waits waits in the middle of a message for an answer of /silent" in str(caught.value)


def test_a_system_that_nobody_refers_to_stops() -> None:
    before = set(threading.enumerate())  # of which some may be ending
    system = ActorSystem(workers=2, threading="assigned")
    threads = [worker.thread for worker in system._runtime.team.workers]
    ref = system.spawn(Echo)
    assert ref.ask("x").result(timeout=30) == "x"
    reference = weakref.ref(system)
    del system, ref
    gc.collect()
    assert reference() is None
    for thread in threads:
        assert thread is not None
        thread.join(30)
        assert not thread.is_alive()
    assert set(threading.enumerate()) <= before


class Head(Actor[Any]):
    """Has a child that waits until a gate is opened."""

    def __init__(self, gate: threading.Event, journal: list[str]) -> None:
        self.gate, self.journal = gate, journal

    def receive(self, entered: threading.Event) -> None:
        self.spawn(Child, self.gate, self.journal, placement=Fixed(1)).tell(entered)

    def on_stop(self) -> None:
        self.journal.append("head")


class Child(Head):
    def receive(self, entered: threading.Event) -> None:
        entered.set()
        assert self.gate.wait(60)

    def on_stop(self) -> None:
        self.journal.append("child")


@pytest.mark.parametrize("options", [{"placement": Fixed(0)}, {"dedicated": True}], ids=str)
def test_actors_that_were_left_behind_end_when_the_last_thread_does(options: Any) -> None:
    gate, entered = threading.Event(), threading.Event()
    journal: list[str] = []
    system = tokenless(workers=2, threading="assigned")
    head = system.spawn(Head, gate, journal, **options)
    head.tell(entered)
    assert entered.wait(30)
    first, last, *others = [worker.thread for worker in system._runtime.team.everyone]
    assert first is not None
    assert last is not None
    with pytest.raises(DrainTimeout):
        system.stop(timeout=0)
    for thread in (first, *others):
        assert thread is not None
        thread.join(30)
        assert not thread.is_alive()
    assert journal == []
    gate.set()
    last.join(30)
    assert not last.is_alive()
    assert journal == ["child", "head"]
    assert system.actors == []


def test_systems_dropped_with_messages_in_flight_do_no_harm() -> None:
    for _ in range(20):
        system = ActorSystem(workers=2)
        for _ in range(10):
            system.spawn(Echo).tell_many(range(100))
        del system
        gc.collect()


# --- waiting for the end --------------------------------------------------------------------------


def test_the_last_end_wakes_join(system: ActorSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, joined = threading.Event(), threading.Event()
    wait_for = WaitQueue.wait_for

    def recorded(
        queue: WaitQueue, predicate: Callable[[], object], timeout: float | None = None
    ) -> bool:
        def looked() -> object:
            waiting.set()  # it is in the queue by now
            return predicate()

        return wait_for(queue, looked, timeout)

    def join() -> None:  # not in the main thread, whose sleeps end by themselves
        if system.join():
            joined.set()

    joiner = threading.Thread(target=join)
    refs = [system.spawn(Echo) for _ in range(3)]
    monkeypatch.setattr(WaitQueue, "wait_for", recorded)
    joiner.start()
    assert waiting.wait(30)
    for ref in refs:
        assert not joined.is_set()
        ref.stop()
    assert joined.wait(30), "nobody woke it"
    joiner.join(30)


def test_threads_may_wait_until_it_is_idle(system: ActorSystem) -> None:
    gate = threading.Event()
    system.spawn(Waiter, gate).tell("x")
    drained: list[str] = []

    def drain(name: str) -> None:
        system.drain(timeout=30)
        drained.append(name)

    drainers = [threading.Thread(target=drain, args=(name,)) for name in "abc"]
    for drainer in drainers:
        drainer.start()
    with pytest.raises(DrainTimeout):
        system.drain(timeout=0)
    assert drained == []
    gate.set()
    for drainer in drainers:
        drainer.join(30)
    assert sorted(drained) == ["a", "b", "c"]


class Waiter(Actor[Any]):
    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate

    def receive(self, message: Any) -> None:
        self.gate.wait(30)


def test_a_system_that_cannot_start_all_threads_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if len(started) == 3:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(CallboardError, match=r"only 3 of 8 workers could be started: can't start"):
        ActorSystem(workers=8, threading="assigned")
    for thread in started:
        thread.join(30)
        assert not thread.is_alive()


def test_a_dedicated_actor_may_run_a_system_of_its_own(system: ActorSystem) -> None:
    class Host(Actor[Any]):
        def receive(self, message: Any) -> Any:
            with ActorSystem("inner") as inner:
                asked = inner.spawn(Echo).ask(message)
                inner.drain()
                for ref in inner.actors:
                    ref.stop()
                assert inner.join(timeout=30)
            assert inner.is_closed
            return asked.result(timeout=30), repr(inner)

    answer = system.spawn(Host, dedicated=True).ask("x").result(timeout=30)
    assert answer == ("x", "<ActorSystem 'inner', stopped>")


def test_an_actor_may_not_wait_for_a_system_on_its_worker(system: ActorSystem) -> None:
    class Host(Actor[Any]):
        def receive(self, other: ActorSystem) -> None:
            other.drain()

    with ActorSystem("other") as other:
        shared = system.spawn(Host).ask(other).exception(timeout=30)
        mine = system.spawn(Host, dedicated=True).ask(system).exception(timeout=30)
    assert str(shared) == (
        "drain() would block a worker of another system: spawn the actor with dedicated=True"
    )
    assert str(mine) == "drain() in an actor would wait for the actor itself"
