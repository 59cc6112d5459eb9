"""Actors and messages leak no memory."""

import ctypes
import gc
import subprocess
import sys
import sysconfig
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from callboard import Actor, ActorStopped, ActorSystem, BoundedMailbox, PriorityMailbox
from callboard.testing import ManualSystem


class Thing:
    """Something whose end can be seen."""


class Holder(Actor[Any]):
    def __init__(self) -> None:
        born.append(weakref.ref(self))
        self.cycle = self

    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise ValueError("as told")
        if isinstance(message, list):
            self.stash()
        return message


born: list[weakref.ref[Holder]] = []


@pytest.fixture(autouse=True)
def forget_the_born() -> None:
    born.clear()


@pytest.mark.parametrize(
    "mailbox",
    [None, BoundedMailbox(5), BoundedMailbox(5, "drop_oldest"), PriorityMailbox(lambda m: 0)],
    ids=["plain", "bounded", "drop_oldest", "priority"],
)
def test_handled_messages_and_answers_are_freed(system: ActorSystem, mailbox: Any) -> None:
    ref = system.spawn(Holder, mailbox=mailbox)
    things = [Thing() for _ in range(20)]
    watch = [weakref.ref(thing) for thing in things]
    for thing in things:
        ref.tell(thing)
        ref.tell_many([thing])
        ref.ask(thing)
    system.drain()
    del things, thing
    gc.collect()
    assert [reference() for reference in watch] == [None] * 20


def test_messages_that_are_dropped_or_dead_are_freed(system: ActorSystem) -> None:
    stopped = system.spawn(Holder)
    stashed: list[Any] = [Thing()]
    watch = [weakref.ref(stashed[0])]
    stopped.tell([stashed[0]])
    system.drain()
    stopped.stop()
    system.drain()
    thing = Thing()
    watch.append(weakref.ref(thing))
    stopped.tell(thing)
    stopped.ask(thing)
    system.drain()
    del thing, stashed
    gc.collect()
    assert [reference() for reference in watch] == [None, None]


def test_an_actors_object_is_freed_when_it_stops_though_its_ref_lives(system: ActorSystem) -> None:
    refs = [system.spawn(Holder) for _ in range(10)]
    system.drain()
    for ref in refs:
        ref.stop()
    system.drain()
    gc.collect()
    assert [reference() for reference in born] == [None] * 10


def test_an_actors_old_object_is_freed_at_a_restart(system: ActorSystem) -> None:
    ref = system.spawn(Holder, supervision="resume")
    system.spawn(Holder, supervision="restart").ask("x").result(timeout=30)
    ref.tell("fail")
    restarting = system.actors[1]
    restarting.ask("fail").exception(timeout=30)
    restarting.ask("x").result(timeout=30)
    gc.collect()
    assert [reference() is None for reference in born].count(True) == 1


def test_refs_are_freed_with_their_actors_end(system: ActorSystem) -> None:
    references = []
    for _ in range(10):
        ref = system.spawn(Holder)
        references.append(weakref.ref(ref))
        ref.stop()
    system.drain()
    del ref
    gc.collect()
    assert [reference() for reference in references] == [None] * 10


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and sys.version_info < (3, 14),
    reason="free-threaded CPython 3.13 makes classes immortal",
)
def test_classes_are_freed_when_nobody_uses_them(system: ActorSystem) -> None:
    cls: Any = type("Short", (Holder,), {})
    reference = weakref.ref(cls)
    ref = system.spawn(cls)
    ref.stop()
    system.drain()
    del cls, ref
    gc.collect()
    assert reference() is None


def test_a_system_is_freed_with_its_actors() -> None:
    system = ActorSystem()
    reference = weakref.ref(system)
    with system:
        for _ in range(10):
            system.spawn(Holder).tell(Thing())
    del system
    gc.collect()
    assert reference() is None
    assert [reference() for reference in born] == [None] * 10


@pytest.mark.parametrize("make", [ActorSystem, ManualSystem])
def test_a_stopped_system_is_freed_despite_its_failure(make: Callable[[], ActorSystem]) -> None:
    class Tells(Actor[Any]):
        def __init__(self, system: ActorSystem) -> None:
            self.mine = system

        def receive(self, message: Any) -> None:
            raise LookupError(message)

    def fail() -> weakref.ref[ActorSystem]:
        with pytest.raises(LookupError), make() as system:
            system.spawn(Tells, system, supervision="escalate").tell("x")
        return weakref.ref(system)

    reference = fail()
    gc.collect()
    assert reference() is None


def test_a_manual_system_that_nobody_stopped_is_freed_with_its_actors() -> None:
    system = ManualSystem()
    thing = Thing()
    reference = weakref.ref(thing)
    system.spawn(Holder).tell([thing])  # which it keeps
    system.run_until_idle()
    del system, thing
    gc.collect()
    assert [reference() for reference in born] == [None]
    assert reference() is None


def test_messages_waiting_in_a_dropped_manual_system_are_freed() -> None:
    system = ManualSystem()
    things = [Thing(), Thing()]
    references = [weakref.ref(thing) for thing in things]
    ref = system.spawn(Holder)
    ref.tell_many(things)
    ref.stop()
    del system, things, ref
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_an_ask_of_a_manual_system_that_was_dropped_comes_to_an_end() -> None:
    future = ManualSystem().spawn(Holder).ask("x")
    gc.collect()
    with pytest.raises(ActorStopped, match="its manual system was dropped"):
        future.result(timeout=30)
    assert future.done()


MILLION = """
import resource
import sysconfig
from callboard import Actor, ActorSystem

class Idle(Actor):
    __slots__ = ()
    def receive(self, message):
        return message

def used():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()

with ActorSystem() as system:
    for ref in [system.spawn(Idle) for _ in range(1000)]:
        ref.tell("x")
    system.drain()
    before = used()
    refs = [system.spawn(Idle) for _ in range(50_000)]
    for ref in refs:
        ref.tell("x")
    system.drain()
    print((used() - before) / 50_000)
"""


def test_an_idle_actor_costs_at_most_a_kibibyte() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MILLION], capture_output=True, text=True, check=True
    )
    assert 100 < float(done.stdout) <= 1024


def test_no_failed_actor_or_message_lives_on_in_the_dead_letters(system: ActorSystem) -> None:
    refs = [system.spawn(Failing, supervision=s) for s in ("stop", "resume", "restart") * 50]
    things = [Thing() for _ in refs]
    watch = [weakref.ref(thing) for thing in things]
    for ref, thing in zip(refs, things, strict=True):
        ref.tell(thing)
    system.drain()
    del things, thing
    gc.collect()
    assert [reference() for reference in watch] == [None] * len(refs)
    assert [reference() is None for reference in born].count(False) == 100, "those that go on"
    path, error = system.dead_letters.fatal[0]
    assert path in {ref.path for ref in refs}
    assert (error.type, error.text) == (LookupError, "as told")
    assert error.summary == "LookupError: as told"
    assert error.traceback.startswith("Traceback (most recent call last):")
    assert "raise LookupError" in error.traceback
    assert "ValueError: the cause" in error.traceback


def test_a_report_of_an_error_without_texts_has_stand_ins(system: ActorSystem) -> None:
    class Mute(Exception):
        @property
        def __notes__(self) -> list[str]:  # type: ignore[override]
            raise RuntimeError("no notes")

        def __str__(self) -> str:
            raise RuntimeError("no text")

        __repr__ = __str__

    class Raises(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise Mute

    ref = system.spawn(Raises)
    assert isinstance(ref.ask("x").exception(timeout=30), Mute)
    system.drain()
    ((_, error),) = system.dead_letters.failures
    assert error.text.endswith("Mute, whose str() raised RuntimeError>")
    assert "Mute" in error.summary
    assert "Mute" in error.traceback


def test_a_report_has_the_error_and_its_traceback_has_the_notes(system: ActorSystem) -> None:
    class Noting(Actor[Any]):
        def receive(self, message: Any) -> None:
            error = ValueError("as told")
            error.add_note("a note")
            raise error

    system.spawn(Noting).ask("x").exception(timeout=30)
    system.drain()
    ((_, error),) = system.dead_letters.failures
    assert error.summary == "ValueError: as told"
    assert error.traceback.endswith("ValueError: as told\na note\n")


@pytest.mark.parametrize("mailbox", [None, PriorityMailbox(lambda m: 0)], ids=["plain", "priority"])
def test_a_stopped_actors_ref_keeps_no_arguments(system: ActorSystem, mailbox: Any) -> None:
    class Given(Actor[Any]):
        def __init__(self, thing: Thing, *, other: Thing) -> None:
            pass

        def receive(self, message: Any) -> None:
            raise ValueError

    things = [Thing(), Thing()]
    watch = [weakref.ref(thing) for thing in things]
    given = partial(Given, things[0], other=things[1])
    ref = system.spawn(given, mailbox=mailbox, supervision="restart")
    del things, given
    ref.ask("x").exception(timeout=30)
    assert None not in [reference() for reference in watch], "it was made anew from them"
    ref.stop()
    system.drain()
    gc.collect()
    assert [reference() for reference in watch] == [None, None]
    assert (ref.name, ref.actor_class, ref.is_alive) == (f"Given-{ref._number}", Given, False)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="glibc 2.33 has it")
def test_the_nodes_of_a_burst_are_given_back_when_the_worker_rests(system: ActorSystem) -> None:
    # A batch of 256 for each mailbox and the threads' own are kept, 1 MB, and the slabs that these
    # lie in, of 30 nodes each: how many, is chance. 8,192 for each mailbox would be 26 MB.
    most = 6_000_000
    refs = [system.spawn(Holder) for _ in range(50)]
    before = allocated()
    for ref in refs:
        ref.tell_many(range(10_000))
    system.drain()
    end = time.monotonic() + 60
    while allocated() - before > most and time.monotonic() < end:
        pass  # they are freed without the interpreter, 10 ms after the last message
    assert allocated() - before < most


class Failing(Holder):
    def receive(self, message: Any) -> None:
        try:
            raise ValueError("the cause")
        except ValueError as cause:
            raise LookupError("as told") from cause


def allocated() -> int:
    """Return how many bytes the C allocator has given out."""

    class Info(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t)
            for name in (
                *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
                *("uordblks", "fordblks", "keepcost"),
            )
        ]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Info
    return int(mallinfo2().uordblks)
