"""The encoding of functions and rows between a program and its worker processes.

A process does not import the program's main module, which might start the program again. So
functions and classes of that module travel as their code, by cloudpickle. A class is made once in a
process. There it has its place in `__main__`, so its objects come back as those of the program's
own class.
"""

from __future__ import annotations

import io
import pickle
import sys
import traceback
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import cloudpickle

from callboard.core.errors import CallboardError
from callboard.core.text import safe_str
from callboard.worker_processes.message_blocks import LARGE

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

_definitions: WeakKeyDictionary[type, bytes] = WeakKeyDictionary()
_by_name: WeakSet[Any] = WeakSet()  # classes and functions that other modules have by their names
_made: dict[str, bytes] = {}  # in a process: the definitions of its classes, by their names


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, value: Any) -> Any:
        """Return how to pickle a value; called for all but those of the simplest types."""
        if not isinstance(value, (type, FunctionType)) or value in _by_name:
            return NotImplemented  # as pickle does
        is_of_main = value.__module__ == "__main__"
        if is_of_main and isinstance(value, type) and _is_in_main(value):
            definition = _definitions.get(value)
            if definition is None:
                definition = _definitions[value] = cloudpickle.dumps(value)
            return _class_of_main, (value.__qualname__, definition)
        reduced = super().reducer_override(value)
        if reduced is NotImplemented and not is_of_main:
            _by_name.add(value)
        return reduced


def _is_in_main(cls: type) -> bool:
    return getattr(sys.modules["__main__"], cls.__qualname__, None) is cls


def _class_of_main(name: str, definition: bytes) -> Any:
    """Return a class of the main module; make it where that is not its latest definition."""
    main = sys.modules["__main__"]
    if _made.get(name) != definition:
        setattr(main, name, pickle.loads(definition))
        _made[name] = definition
    return getattr(main, name)


def dumps(value: Any, protocol: int = pickle.HIGHEST_PROTOCOL, **options: Any) -> bytes:
    """Encode a value of the program for its processes. Raises what the value's pickling raises."""
    with io.BytesIO() as file:
        _Pickler(file, protocol, **options).dump(value)
        return file.getvalue()


def parts_of(value: Any) -> Parts:
    """Encode a value of the program as its pickle and large buffers, which are not copied."""
    return _parts_by(dumps, value)


def dumps_in_process(value: Any) -> bytes:
    """Encode a value of a process for the program."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # classes that were made in a function have no name to be found by
        made: bytes = cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        return made


def parts_in_process(value: Any) -> Parts:
    """Encode a value of a process as its pickle and large buffers, which are not copied."""
    try:
        return _parts_by(pickle.dumps, value)
    except Exception:  # as above
        return _parts_by(cloudpickle.dumps, value)


def loads(parts: Parts) -> Any:
    """Decode a value. Its large buffers are for reading only."""
    pickled, *buffers = parts
    return pickle.loads(pickled, buffers=buffers)


def _parts_by(dumps: Callable[..., bytes], value: Any) -> Parts:
    large: list[memoryview] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < LARGE:
            return True
        large.append(raw)
        return False

    return [dumps(value, pickle.HIGHEST_PROTOCOL, buffer_callback=is_small), *large]


def sendable(error: BaseException | None) -> BaseException | None:
    """Return an exception that can be pickled, with its traceback as a note."""
    if error is None:
        return None
    error.add_note("In a worker process:\n" + "".join(traceback.format_exception(error)).rstrip())
    try:
        pickle.loads(dumps_in_process(error))
    except Exception:
        text = f"{type(error).__qualname__}: {safe_str(error)}"
        replacement = CallboardError(text)
        replacement.__notes__ = error.__notes__
        return replacement
    return error
