"""The boxes of a net in a worker process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import repeat
from operator import attrgetter
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from callboard.nets.kernel.node_builder import accepting
from callboard.nets.terms.network import Box
from callboard.worker_processes.pickling import dumps_in_process, loads, sendable

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

Function = Callable[..., Any]
Errors = dict[int, BaseException]  # by the numbers of the records

_UNSENDABLE = "An output of a box in a worker process must be picklable."


def function_named(module: str, name: str) -> Function:
    """Return the function of a box, which a module has by this name."""
    box: Box = attrgetter(name)(import_module(module))
    assert box.function is not None
    return accepting(box, box.function)


class BoxWork:
    """The functions of the boxes of a run. If they cannot be made here, each call fails."""

    def __init__(self, boxes: bytes) -> None:
        self._boxes: list[tuple[Function, bool]] = []
        self._error: Exception | None = None
        try:
            self._boxes = pickle.loads(boxes)
        except Exception as error:
            self._error = error

    def answer(self, parts: Parts) -> Parts:
        """Call a box for each record of a batch.

        Returns None and the outputs, the exceptions, and the nanoseconds of all calls and of the
        longest one; or why the values cannot be decoded.
        """
        number, count, columns = loads(parts)
        try:
            if self._error is not None:
                raise self._error
            rows = zip(*pickle.loads(columns), strict=True) if columns else repeat((), count)
        except Exception as error:
            return [dumps_in_process((sendable(error), None, None, 0, 0))]
        function, generates = self._boxes[number]
        return [_encoded(*_called(function, generates, rows), generates=generates)]

    def close(self) -> None:
        """Do nothing: there is nothing open."""


def _called(
    function: Function, generates: bool, rows: Iterable[tuple[Any, ...]]
) -> tuple[list[Any], Errors, int, int]:
    """Return the outputs of calls, their exceptions, and nanoseconds of all and of the longest."""
    outputs: list[Any] = []
    errors: Errors = {}
    worst = 0
    begun = last = perf_counter_ns()
    for row in rows:
        output: Any = [] if generates else None
        try:
            if generates:
                for value in function(*row):
                    if value is not None:
                        output.append(value)
            else:
                output = function(*row)
        except BaseException as error:  # also SystemExit, which is for the run
            errors[len(outputs)] = error
        outputs.append(output)
        now = perf_counter_ns()
        if now - last > worst:
            worst = now - last
        last = now
    return outputs, errors, last - begun, worst


def _encoded(
    outputs: list[Any], errors: Errors, spent: int, worst: int, *, generates: bool
) -> bytes:
    """Encode what came of calls. An output that cannot be pickled is an error of its record."""
    sent = {place: sendable(error) for place, error in errors.items()}
    try:
        return dumps_in_process((None, outputs, sent, spent, worst))
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
                    break
        return dumps_in_process((None, outputs, sent, spent, worst))
