"""A pickler like Spark's that refuses objects bound to a task, and leaves no trace."""

from __future__ import annotations

import io
from typing import Any

import pyspark
from pyspark.cloudpickle import Pickler

# The package that is for Spark Connect alone has neither.
Accumulator: Any = getattr(pyspark, "Accumulator", ())
Broadcast: Any = getattr(pyspark, "Broadcast", ())


class TaskBound(Exception):
    """Raised for an object of one task only, where it would be kept for more."""


class ProbePickler(Pickler):
    """Pickles to check a value only: Spark pickles again when a job is run."""

    def __init__(self, file: io.BytesIO, *, keep: bool) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self._keep = keep

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is pickled; called by the pickler for most that it meets."""
        # Broadcast.__reduce__ puts the variable on a list that the thread's next job takes along,
        # whatever that job is. If the variable is destroyed by then, it fails a job that never knew
        # it.
        if isinstance(value, Broadcast) and value._jbroadcast is not None:
            return str, (f"broadcast variable {value._jbroadcast.id()}",)
        if self._keep and isinstance(value, Accumulator):
            raise TaskBound(
                "Spark makes it anew for each task, and drops what is added to the last task's"
            )
        return super().reducer_override(value)  # type: ignore[no-untyped-call]


def dumps(value: Any, *, keep: bool) -> bytes:
    """Pickle a value that is to be used in one task, or kept for more."""
    with io.BytesIO() as file:
        ProbePickler(file, keep=keep).dump(value)  # type: ignore[no-untyped-call]
        return file.getvalue()
