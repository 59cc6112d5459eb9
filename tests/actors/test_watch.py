"""`watch`: notification of another actor's end."""

import gc
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, Terminated
from callboard.testing import ManualSystem


class Watcher(Actor[Any]):
    """Watches the refs that it is told, and keeps all else."""

    def __init__(self, *refs: ActorRef[Any]) -> None:
        self.seen: list[Any] = []
        for ref in refs:
            self.watch(ref)

    def receive(self, message: Any) -> Any:
        if isinstance(message, ActorRef):
            self.watch(message)
        elif callable(message):
            return message(self)
        elif message == "report":
            return list(self.seen)
        else:
            self.seen.append(message)
        return None


class Mortal(Actor[Any]):
    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise ValueError("as told")
        if isinstance(message, ActorRef):
            message.tell("last words")
            self.stop()
        return message


def threads_of(system: ActorSystem) -> list[threading.Thread]:
    """Return the threads of a system's workers."""
    threads = [worker.thread for worker in system._runtime.team.everyone]
    return [thread for thread in threads if thread is not None]


def stop_it(ref: ActorRef[Any]) -> None:
    ref.stop()


def fail_it(ref: ActorRef[Any]) -> None:
    ref.tell("fail")


def report(watcher: ActorRef[Any]) -> Any:
    return watcher.ask("report").result(timeout=30)


@pytest.mark.parametrize("end", [stop_it, fail_it])
def test_a_watcher_is_told(system: ActorSystem, end: Callable[[ActorRef[Any]], None]) -> None:
    ref = system.spawn(Mortal)
    watcher = system.spawn(Watcher, ref)
    system.drain()
    assert report(watcher) == []
    end(ref)
    system.drain()
    assert report(watcher) == [Terminated(ref)]


def test_watching_a_stopped_actor_tells_at_once(system: ActorSystem) -> None:
    ref = system.spawn(Mortal)
    ref.stop()
    system.drain()
    watcher = system.spawn(Watcher, ref)
    system.drain()
    assert report(watcher) == [Terminated(ref)]


def test_watching_twice_tells_once(system: ActorSystem) -> None:
    ref = system.spawn(Mortal)
    watcher = system.spawn(Watcher, ref, ref)
    watcher.tell(ref)
    system.drain()
    ref.stop()
    system.drain()
    assert report(watcher) == [Terminated(ref)]


def test_an_unwatched_end_is_not_told(system: ActorSystem) -> None:
    ref = system.spawn(Mortal)
    watcher = system.spawn(Watcher, ref)
    watcher.ask(lambda actor: actor.unwatch(ref)).result(timeout=30)
    watcher.ask(lambda actor: actor.unwatch(ref)).result(timeout=30)  # and once more: no matter
    ref.stop()
    system.drain()
    assert report(watcher) == []


def test_the_last_words_come_before_the_news_of_the_end(system: ActorSystem) -> None:
    ref = system.spawn(Mortal)
    watcher = system.spawn(Watcher, ref)
    system.drain()
    ref.tell(watcher)
    system.drain()
    assert report(watcher) == ["last words", Terminated(ref)]


def test_everyone_who_watches_is_told(system: ActorSystem) -> None:
    ref = system.spawn(Mortal)
    watchers = [system.spawn(Watcher, ref) for _ in range(20)]
    system.drain()
    ref.stop()
    system.drain()
    assert [report(watcher) for watcher in watchers] == [[Terminated(ref)]] * 20


def test_a_restart_is_not_an_end(system: ActorSystem) -> None:
    ref = system.spawn(Mortal, supervision="restart")
    watcher = system.spawn(Watcher, ref)
    system.drain()
    ref.tell("fail")
    system.drain()
    assert report(watcher) == []
    ref.stop()
    system.drain()
    assert report(watcher) == [Terminated(ref)]


def test_a_watcher_that_is_gone_is_told_nothing(system: ActorSystem) -> None:
    ref = system.spawn(Mortal)
    watcher = system.spawn(Watcher, ref)
    system.drain()
    watcher.stop()
    system.drain()
    ref.stop()
    system.drain()
    assert system.dead_letters.count == 0


def test_two_actors_may_watch_each_other(system: ActorSystem) -> None:
    first = system.spawn(Watcher)
    second = system.spawn(Watcher, first)
    first.tell(second)
    system.drain()
    first.stop()
    system.drain()
    assert report(second) == [Terminated(first)]


def test_a_parent_may_watch_its_child(system: ActorSystem) -> None:
    class Parent(Watcher):
        def on_start(self) -> None:
            self.child = self.spawn(Mortal)
            self.watch(self.child)

    parent = system.spawn(Parent)
    child = parent.ask(lambda actor: actor.child).result(timeout=30)
    child.tell("fail")
    system.drain()
    assert report(parent) == [Terminated(child)]
    assert parent.ask(lambda actor: actor.children).result(timeout=30) == []


def test_the_news_of_an_end_comes_through_a_full_mailbox(system: ActorSystem) -> None:
    gate, entered = threading.Event(), threading.Event()

    class Busy(Watcher):
        def receive(self, message: Any) -> Any:
            if message == "wait":
                entered.set()
                assert gate.wait(30)
                return None
            return super().receive(message)

    ref = system.spawn(Mortal, dedicated=True)
    watcher = system.spawn(Busy, ref, mailbox=BoundedMailbox(1, "fail"))
    watcher.ask("report").result(timeout=30)
    watcher.tell("wait")
    assert entered.wait(30)
    watcher.tell("the mailbox is full now")
    ended = system.spawn(Watcher, ref, dedicated=True)
    ended.ask("report").result(timeout=30)
    ref.stop()
    while not report(ended):  # told in any order
        pass
    gate.set()
    system.drain()
    assert report(watcher) == ["the mailbox is full now", Terminated(ref)]


@pytest.mark.parametrize("what", [None, Mortal])
def test_only_refs_can_be_watched(system: ActorSystem, what: Any) -> None:
    watcher = system.spawn(Watcher)
    with pytest.raises(TypeError, match=rf"ref of an actor in this process, got {what!r}"):
        watcher.ask(lambda actor: actor.watch(what)).result(timeout=30)


def test_watchers_are_told_in_the_order_in_which_they_began_to_watch() -> None:
    told: list[ActorRef[Any]] = []

    class Notes(Watcher):
        def receive(self, message: Any) -> Any:
            if isinstance(message, Terminated):
                told.append(self.ref)
            return super().receive(message)

    with ActorSystem() as system:
        ref = system.spawn(Mortal)
        watchers = [system.spawn(Notes) for _ in range(20)]
        random.Random(0).shuffle(watchers)  # so that their addresses are no order
        for watcher in watchers:
            watcher.ask(ref).result(timeout=30)
        ref.stop()
    assert told == watchers


def test_however_a_watch_and_an_end_race_the_end_is_told_once() -> None:
    with ActorSystem(workers=2) as system:
        watchers, refs = [], []
        for _ in range(300):
            ref = system.spawn(Mortal)
            watchers.append(system.spawn(Watcher))
            ref.stop()
            watchers[-1].tell(ref)
            refs.append(ref)
        system.drain()
        assert [report(watcher) for watcher in watchers] == [[Terminated(ref)] for ref in refs]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_actor_of_a_system_that_was_dropped_is_known_to_have_ended(workers: int) -> None:
    dropped = ActorSystem(workers=workers, threading="assigned")
    ref, threads = dropped.spawn(Mortal), threads_of(dropped)
    assert len(threads) == workers
    del dropped
    gc.collect()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    with ActorSystem(workers=1) as system:
        watcher = system.spawn(Watcher, ref)
        system.drain()
        assert report(watcher) == [Terminated(ref)]


def test_a_watcher_of_many_that_end_forgets_them() -> None:
    with ManualSystem(trace=False) as system:
        watcher = system.spawn(Watcher)
        refs: list[weakref.ref[Any]] = []
        for _ in range(1_000):
            ref = system.spawn(Mortal)
            refs.append(weakref.ref(ref))
            watcher.tell(ref)
            system.run_until_idle()
            ref.stop()
            system.run_until_idle()
            del ref
        watcher.ask(lambda actor: actor.seen.clear()).result()
        gc.collect()
        assert sum(ref() is not None for ref in refs) < 200
        last = system.spawn(Mortal)
        watcher.tell(last)
        last.stop()
        system.run_until_idle()
        assert report(watcher) == [Terminated(last)]


def test_a_new_object_is_not_told_of_the_children_that_its_restart_stopped() -> None:
    class Parent(Actor[Any]):
        def __init__(self, other: ActorRef[Any]) -> None:
            self.seen: list[Any] = []
            self.watch(other)
            for name in ("a", "b"):
                self.watch(self.spawn(Mortal, name=name))

        def receive(self, message: Any) -> Any:
            if message == "fail":
                raise ValueError("as told")
            if message == "report":
                return self.seen
            self.seen.append(message.ref)
            return None

    for seed in range(10):
        with ManualSystem(seed=seed) as system:
            other = system.spawn(Mortal)
            parent = system.spawn(Parent, other, supervision="restart")
            parent.tell("fail")
            system.run_until_idle()
            first, second = parent.children
            first.stop()
            other.stop()
            system.run_until_idle()
            seen = parent.ask("report").result()
            assert sorted(seen, key=str) == sorted([first, other], key=str)  # as it watches these
            assert parent.children == [second]
