"""A pickler like Spark's that refuses objects bound to a task, without side effects."""

from __future__ import annotations

import io
from typing import Any

import pyspark
from pyspark.cloudpickle import Pickler

# The package that is for Spark Connect alone has neither.
Accumulator: Any = getattr(pyspark, "Accumulator", ())
Broadcast: Any = getattr(pyspark, "Broadcast", ())


class TaskBound(Exception):
    """Raised for an object of one task that would be kept for more."""


class ProbePickler(Pickler):
    """Pickles to check a value only: Spark pickles again when a job is run."""

    def __init__(self, file: io.BytesIO, *, keep: bool) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self._keep = keep

    def reducer_override(self, value: Any) -> Any:
        """Return how to pickle a value; called by the pickler for most objects."""
        # Broadcast.__reduce__ puts the variable on a list for the thread's next job, whatever that
        # is. If the variable is destroyed by then, it fails an unrelated job.
        if isinstance(value, Broadcast) and value._jbroadcast is not None:
            return str, (f"broadcast variable {value._jbroadcast.id()}",)
        if self._keep and isinstance(value, Accumulator):
            raise TaskBound(
                "Spark makes a new one for each task, and drops additions to the last task's"
            )
        return super().reducer_override(value)  # type: ignore[no-untyped-call]


def dumps(value: Any, *, keep: bool) -> bytes:
    """Pickle a value for one task, or to be kept for more."""
    with io.BytesIO() as file:
        ProbePickler(file, keep=keep).dump(value)  # type: ignore[no-untyped-call]
        return file.getvalue()
