"""Checks on the driver whether a task's objects can be pickled, and kept on workers."""

from __future__ import annotations

from functools import partial
from typing import Any

from callboard.core.captured import culprit
from callboard.spark.errors import CaptureError, without_pyspark

_ADVICE = (
    "Objects must be pickled to reach a worker process, which open files, locks, connections, "
    "actor systems and refs cannot be. Make it inside build, which runs in the worker"
)
_TASK_ADVICE = (
    "Use lifetime='task', or answer PartitionEnd with what was counted and add it up as results"
)


def pickle_for_tasks(name: str, value: Any, *, keep: bool) -> bytes:
    """Pickle the objects that tasks need, or raise a CaptureError that begins with the name.

    With `keep` it is for actors that outlive a task, and objects bound to one task are refused too.
    The bytes are only compared; Spark pickles again for the workers.
    """
    try:
        return _dumps(value, keep)
    except ImportError:
        raise
    except Exception as error:  # whatever a __reduce__ may raise
        raise _refusal(*culprit(name, value, partial(_dumps, keep=keep), error)) from error


def name_of(build: Any) -> str:
    """Return the name of a build function in errors."""
    return getattr(build, "__qualname__", None) or type(build).__qualname__


def _dumps(value: Any, keep: bool) -> bytes:
    try:
        from callboard.spark.tasks.probe_pickler import dumps
    except ImportError as error:
        raise without_pyspark(error) from error
    return dumps(value, keep=keep)


def _refusal(path: str, value: Any, reason: Exception) -> CaptureError:
    from callboard.spark.tasks.probe_pickler import TaskBound

    what = f"{path} ({type(value).__name__})"
    if isinstance(reason, TaskBound):
        return CaptureError(f"{what} cannot be kept from task to task: {reason}. {_TASK_ADVICE}")
    return CaptureError(f"{what} cannot be pickled: {reason}. {_ADVICE}")
