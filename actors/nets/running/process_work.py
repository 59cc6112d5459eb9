"""The box of a net in a worker process."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from time import thread_time_ns
from typing import TYPE_CHECKING, Any

from callboard.nets.kernel.node_builder import accepting, new_instance
from callboard.nets.running.batch_calls import Errors, called, rows_of
from callboard.nets.terms.network import Box
from callboard.worker_processes.pickling import dumps_in_process, loads, sendable

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

Function = Callable[..., Any]

_UNSENDABLE = "An output of a box in a worker process must be picklable."


def function_named(module: str, name: str) -> Function:
    """Return the function of a box, which a module has by this name."""
    box: Box = attrgetter(name)(import_module(module))
    return function_of(box)


def function_of(box: Box) -> Function:
    """Return the function of a box. With a state, it takes the number of the replica first."""
    assert box.function is not None
    return _Replicas(box) if box._makes_instances else accepting(box, box.function)


class _Replicas:
    """The replicas of a box in one process."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._made: dict[int, Function] = {}

    def __call__(self, replica: int, *values: Any) -> Any:
        function = self._made.get(replica)
        if function is None:
            function = self._made[replica] = new_instance(self._box)
        return function(*values)


class BoxWork:
    """A box of a run. If its function cannot be made here, each call fails."""

    def __init__(self, name: str, function: bytes, generates: bool) -> None:
        self.name = name
        self.rows = 0  # of the latest batch
        self._generates = generates
        self._error: Exception | None = None
        try:
            self._function: Function = pickle.loads(function)
        except Exception as error:
            self._error = error

    def answer(self, parts: Parts) -> Parts:
        """Call the box for each record of a batch.

        Returns None and the outputs, the exceptions, the places of outputs that cannot be sent, and
        the nanoseconds of all calls, of the longest one, and of processor time; or why the values
        cannot be decoded.
        """
        count, columns = loads(parts)
        try:
            if self._error is not None:
                raise self._error
            rows = rows_of(pickle.loads(columns) if columns else [], count)
        except Exception as error:
            return [dumps_in_process((sendable(error), None, None, [], 0, 0, 0))]
        self.rows = count
        begun = thread_time_ns()
        outputs, errors, spent, worst = called(self._function, rows, generates=self._generates)
        times = spent, worst, thread_time_ns() - begun
        return [_encoded(outputs, errors, times, generates=self._generates)]

    def close(self) -> None:
        """Do nothing: there is nothing open."""


def _encoded(
    outputs: list[Any], errors: Errors, times: tuple[int, int, int], *, generates: bool
) -> bytes:
    """Encode what came of calls. An output that cannot be pickled is an error of its record."""
    sent = {place: sendable(error) for place, error in errors.items()}
    refused: list[int] = []
    try:
        return dumps_in_process((None, outputs, sent, refused, *times))
    except Exception:
        for place, output in enumerate(outputs):
            values = output if generates else [output]
            for at, value in enumerate(values):
                try:
                    dumps_in_process(value)
                except Exception as error:
                    error.add_note(_UNSENDABLE)
                    sent[place] = sendable(error)
                    outputs[place] = values[:at] if generates else None
                    refused.append(place)
                    break
        return dumps_in_process((None, outputs, sent, refused, *times))
