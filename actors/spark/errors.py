"""Errors of partitions in Spark."""

from __future__ import annotations

from pickle import PicklingError

from callboard.core.errors import CallboardError
from callboard.core.text import cut, sendable
from callboard.failures import FailureReport

__all__ = [
    "CaptureError",
    "OrderError",
    "PartitionFailed",
    "SchemaError",
]

LONGEST = 65_536  # characters of one text of an error, which goes through sockets and logs


class SchemaError(CallboardError, TypeError):
    """Raised in a task when an answer has no rows, or rows do not have the given schema."""


class OrderError(CallboardError, ValueError):
    """Raised in a task for rows of joined frames that have no place in the order: null, or late."""


class CaptureError(CallboardError, PicklingError):
    """Raised on the driver when an object captured by `build` cannot be sent to the workers."""


class PartitionFailed(CallboardError):
    """Raised in a task when an actor or an operator of its graph failed; `error` is the cause.

    The traceback, with all causes, is a note on this exception and not its cause, because Spark's
    SQL paths show an exception's notes but drop its causes.

    Very long texts are cut in the middle. Lone surrogates, which UTF-8 cannot encode, are escaped,
    because PySpark could not send them.
    """

    def __init__(self, who: str, error: FailureReport, partition_id: int, where: str = "") -> None:
        self.error = error
        summary, trace = _texts(error)
        super().__init__(_told(f"{who} failed{where} in partition {partition_id}: {summary}"))
        self.add_note(_told(f"In {who}:\n{trace}"))


def _texts(error: FailureReport) -> tuple[str, str]:
    try:
        return error.summary, error.traceback
    except Exception:  # an attribute that a traceback shows may be a property that raises
        summary = f"{error.type.__qualname__}: {error.text}"
        return summary, f"{summary}\n"


def _told(text: str) -> str:
    return cut(sendable(text), LONGEST)


def without_pyspark(missing: ImportError) -> ImportError:
    """Make the error that says what to install."""
    return ModuleNotFoundError(
        "callboard.spark needs PySpark: pip install 'callboard[spark]'", name=missing.name
    )
