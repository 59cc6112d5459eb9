"""Immortal constants, for Python functions that several threads run without an interpreter lock.

A function counts a reference to a constant each time that it loads it. CPython 3.13 without a lock
makes the constants of code that it compiles immortal: they have no count. It does not do so for
code from a `.pyc` file, which is the code of most modules. Threads that run such a function contend
for the counts: two threads were slower than one. `code.replace()` makes the constants immortal, and
puts them into the tuple that the new code object shares with the old one. So the old one has them,
too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from callboard.core.threads.interpreter import has_gil

_MOST = 1_000  # things to look at for each root: a function may lead into a large library
_replaced: list[object] = []  # constants that another thread may be about to load: they live on


def make_constants_immortal(*roots: object) -> None:
    """Make the constants of the functions immortal that calls of `roots` may reach.

    These are the functions in closures, defaults, partial objects and attributes of objects, those
    in variables of modules that a function names, and all methods of classes. The nearest come
    first, up to a limit. Classes of callboard are left out. With an interpreter lock this does
    nothing. In any thread, also while others run the functions.
    """
    if has_gil():
        return
    seen: set[int] = set()
    waiting: deque[Any] = deque(roots)
    while waiting and len(seen) < _MOST * len(roots):
        each = waiting.popleft()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, CodeType):
            _settle(each)
        waiting.extend(_parts_of(each))


def _settle(code: CodeType) -> None:
    before = list(code.co_consts)
    code.replace()
    _replaced.extend(old for old, new in zip(before, code.co_consts, strict=True) if old is not new)


def _parts_of(thing: object) -> Iterable[object]:
    match thing:
        case CodeType():
            return [one for one in thing.co_consts if isinstance(one, CodeType)]
        case FunctionType():
            return _used_by(thing)
        case MethodType():
            return thing.__func__, thing.__self__
        case partial():
            return thing.func, *thing.args, *thing.keywords.values()
        case staticmethod() | classmethod():
            return (thing.__func__,)
        case property():
            return thing.fget, thing.fset
        case type():
            own = [base for base in thing.__mro__ if _is_of_a_user(base)]
            return [value for base in own for value in vars(base).values()]
    return type(thing), *getattr(thing, "__dict__", {}).values()


def _is_of_a_user(cls: type) -> bool:
    made_by_statement = cls.__flags__ & 1 << 9  # Py_TPFLAGS_HEAPTYPE
    return bool(made_by_statement) and not cls.__module__.startswith("callboard.")


def _used_by(function: FunctionType) -> Iterator[object]:
    yield function.__code__
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a variable that has no value yet
            yield cell.cell_contents
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = set(_names_in(function.__code__))
    for name in names & function.__globals__.keys():
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from [vars(value).get(inner) for inner in names]
        else:
            yield value


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
