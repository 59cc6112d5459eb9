"""Use all compiled classes of a module, as no program would: `python sweep.py MODULE CLASS...`.

Every failure must be an exception. test_safety.py looks for crashes and hangs.
"""

import copy
import importlib
import itertools
import operator
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

ODD: list[Any] = [
    *(None, 0, -1, 1.5, 10**30, "x", b"x", (), [], {}, [None], [1, 2], {1: 2}, object(), len, int)
]

# Classes whose arguments are objects of callboard. The others get no arguments, or odd ones.
MADE = {
    "WorkerThread": "w.WorkerThread(t.Team(False), p.Fifo(), 1, 'w')",
    "ManualWorker": "r.ManualWorker(r.ManualTeam(False), p.Fifo(), 1, 'w')",
    "GraphFlow": "f.GraphFlow(h.LastInPipeline(), 2, 0.1, 0, False)",
}

OPERATIONS: list[Callable[[Any], object]] = [
    repr, str, hash, bytes, len, iter, next, bool, int, float, list, dict, dir, vars, memoryview,
    format, operator.index, copy.copy, copy.deepcopy, pickle.dumps,
    lambda x: x == x, lambda x: x < x, lambda x: x + x, lambda x: 0 in x, lambda x: x[0],
    lambda x: x(), lambda x: x(None), lambda x: x.__enter__(), lambda x: x.__aiter__(),
    lambda x: x.__await__().send(None),
]  # fmt: skip


class TooLong(BaseException):
    """Raised by a signal in a call that would wait for ever."""


def give_up(*_: object) -> None:
    raise TooLong


def attempt(action: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `action` does, or None if it raises."""
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            return action(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException:
        return None


def arguments() -> Iterator[tuple[Any, ...]]:
    yield ()
    for count, odd in itertools.product(range(1, 7), ODD):
        yield (odd,) * count


def objects(cls: type) -> Iterator[Any]:
    """Make objects of the class in every possible way."""
    derived = attempt(type, "Derived", (cls,), {})
    for one in (cls, derived):
        if one is None:
            continue
        for make in (one, lambda *a: one.__new__(one, *a), lambda *a: object.__new__(one, *a)):  # noqa: B023
            made = (attempt(make, *some) for some in arguments())
            yield from itertools.islice((x for x in made if x is not None), 2)
    if cls.__name__ in MADE:
        modules = {
            "f": "callboard.streams.running.flow",
            "h": "callboard.scheduling.flow.heuristics",
            "p": "callboard.scheduling.priority",
            "r": "callboard.scheduling.replay",
            "t": "callboard.scheduling.team",
            "w": "callboard.scheduling.worker",
        }
        names = {name: importlib.import_module(module) for name, module in modules.items()}
        yield eval(MADE[cls.__name__], names)


def touch(made: Any) -> None:
    for operation in OPERATIONS:
        attempt(operation, made)
    for name in dir(type(made)):
        if name in ("__class__", "__init_subclass__", "__subclasshook__"):
            continue
        if name in ("run", "start") and type(made).__name__ == "WorkerThread":
            continue  # this thread would be the worker for ever; see test_safety.py
        value = attempt(getattr, made, name)
        if callable(value):
            for some in (*arguments(), (made,), (made, made)):
                attempt(value, *some)
        else:
            for odd in ODD:
                attempt(setattr, made, name, odd)
                attempt(getattr, made, name)
            attempt(delattr, made, name)
            attempt(getattr, made, name)


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, give_up)
    module, *names = sys.argv[1:]
    for name in names:
        print(f"{name}:", end=" ", flush=True)  # the last one that is named is the one that crashes
        touched = 0
        for made in objects(getattr(importlib.import_module(module), name)):
            touch(made)
            touched += 1
        print(f"{touched} objects")
