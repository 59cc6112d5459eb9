"""No Python code crashes the interpreter through the package's names."""

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import callboard
from callboard import Actor, ActorRef, ActorSystem, CallboardError
from callboard._inside.sending.native_ref import NativeRef
from callboard._inside.spawn import spawn
from callboard.native import NativeActor, NativeBuffer
from callboard.policies import Fifo
from callboard.scheduling.handle import Handle
from callboard.scheduling.worker import WorkerThread
from callboard.testing import ManualSystem

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made by a `class` statement


def compiled_classes() -> Iterator[tuple[str, str]]:
    """Find every compiled class that is an attribute of one of the package's modules."""
    found = set()
    for info in pkgutil.walk_packages(callboard.__path__, "callboard."):
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue  # it needs an extra, such as pyspark
        for cls in vars(module).values():
            if (
                isinstance(cls, type)
                and cls.__module__.startswith("callboard")
                and not cls.__flags__ & HEAP_TYPE
            ):
                found.add((cls.__module__, cls.__qualname__))
    yield from sorted(found)


CLASSES = list(compiled_classes())


def test_the_compiled_classes_are_found() -> None:
    assert {"ActorRef", "NativeActor", "WorkerThread", "Watermark"} <= {name for _, name in CLASSES}


@pytest.mark.parametrize("module", sorted({module for module, _ in CLASSES}))
def test_no_use_of_a_modules_compiled_classes_crashes(module: str, root: Path) -> None:
    names = [name for within, name in CLASSES if within == module]
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", root / "tests/sweep.py", module, *names],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-300:] + ran.stderr[-3000:]
    swept = [line.split(": ") for line in ran.stdout.splitlines()[-len(names) :]]
    assert [name for name, _ in swept] == names
    assert all(objects.endswith("objects") for _, objects in swept)


@pytest.mark.parametrize("cls", [Handle, ActorRef, NativeRef])
def test_refs_are_made_by_spawn_alone(cls: type[Handle]) -> None:
    made: Any = cls
    for make in (made, lambda: made.__new__(made), lambda: made.__new__(made, object())):
        with pytest.raises(TypeError, match=rf"refs come from spawn\(\), not from {cls.__name__}"):
            make()


def test_native_memory_comes_from_native_actors_alone() -> None:
    with pytest.raises(TypeError, match="come from native actors, not from NativeBuffer"):
        bytes(NativeBuffer())


def test_a_native_actor_made_by_hand_has_no_system() -> None:
    class Alone(NativeActor):
        pass

    alone = Alone()
    cls: Any = Alone
    uses: list[Callable[[], object]] = [
        lambda: alone.ref,
        lambda: alone.system,
        lambda: alone.spawn(cls),
        lambda: alone.fail_with(ValueError()),
    ]
    for use in uses:
        with pytest.raises(CallboardError, match="this Alone was made by calling the class"):
            use()


def test_none_is_not_taken_for_a_team_or_a_system() -> None:
    with pytest.raises(TypeError, match="incorrect type"):
        WorkerThread(None, Fifo(), 64, "")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="incorrect type"):
        spawn(None, None, Actor, (), {})  # type: ignore[arg-type]


def test_a_worker_has_one_thread() -> None:
    class Quiet(Actor[object]):
        def receive(self, message: object) -> None:
            pass

    with ActorSystem() as system:
        worker = system.spawn(Quiet).worker
        assert worker is not None
        system.drain()
        for action in (worker.start, worker.run):
            with pytest.raises(CallboardError, match="a worker has one thread"):
                action()
    with ManualSystem() as manual:
        worker = manual.spawn(Quiet).worker
        assert worker is not None
        for action in (worker.start, worker.run):
            with pytest.raises(CallboardError, match="is run by the thread that made it"):
                action()


def test_a_live_system_survives_the_touch_of_all_its_parts() -> None:
    program = """
import gc, signal, sys
sys.argv = ["sweep.py", "", ""]
import sweep
from callboard import Actor, ActorSystem
from callboard.streams import entry
class Quiet(Actor):
    def receive(self, message):
        return message
signal.signal(signal.SIGALRM, sweep.give_up)
system = ActorSystem(workers=2)
quiet, alone = system.spawn(Quiet), system.spawn(Quiet, dedicated=True)
future = quiet.ask(1)
run = system.run(entry("a").map(str).collect())
run.send("a", range(1000))
system.drain()
ours = [x for x in gc.get_objects()
        if str(type(x).__module__).startswith("callboard") and not type(x).__flags__ & 1 << 9]
assert len({type(x) for x in ours}) > 5, ours
for x in ours:
    for name in dir(type(x)):
        if not callable(sweep.attempt(getattr, x, name)):
            continue
        if name in ("__init__", "__setattr__", "__delattr__", "run", "end", "sweep", "join"):
            continue
        for odd in sweep.ODD:
            sweep.attempt(getattr(x, name), odd)
print("alive", flush=True)
import os
os._exit(0)
"""
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.stdout.endswith("alive\n"), ran.stderr[-3000:]
