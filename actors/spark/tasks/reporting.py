"""Ensures that PySpark can report a task's exception.

A worker announces an error before it encodes its text as UTF-8. If that fails, as at a lone
surrogate, or if there is no text at all, Spark waits for the rest of it for ever.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from callboard.failures import FailureReport
from callboard.spark.context import PartitionContext
from callboard.spark.errors import LONGEST, PartitionFailed

P = ParamSpec("P")
T = TypeVar("T")


def reported(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a task's function or generator: errors that PySpark cannot report are replaced.

    It raises PartitionFailed instead of them.
    """
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def generating(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
            with _reported():
                yield from function(*args, **kwargs)

        return generating  # type: ignore[return-value]

    @wraps(function)
    def calling(*args: P.args, **kwargs: P.kwargs) -> T:
        with _reported():
            return function(*args, **kwargs)

    return calling


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except GeneratorExit:  # the reader of the results has stopped
        raise
    except BaseException as error:
        if _can_be_reported(error):
            raise
        partition = PartitionContext.current().partition_id
        raise PartitionFailed("the task", FailureReport.of(error), partition) from None


def _can_be_reported(error: BaseException) -> bool:
    """Tell whether an error has a text that PySpark can send. An attribute of it may raise."""
    try:
        text = "".join(traceback.format_exception(error))
        return len(text.encode()) <= 4 * LONGEST
    except Exception:
        return False
