"""Errors that only partitions have."""

from __future__ import annotations

from pickle import PicklingError

from callboard.core.errors import CallboardError
from callboard.failures import FailureReport


class EntryPointError(CallboardError):
    """Raised when `build` does not return the entry point that was asked for."""


class AnswerError(CallboardError, TypeError):
    """Raised when an entry point's answer is not what the partition function can pass on."""

    def __init__(self, wanted: str, answer: object) -> None:
        kind = type(answer).__name__
        super().__init__(f"the entry point must answer {wanted}, not {answer!r:.100} ({kind})")


class SchemaError(CallboardError, TypeError):
    """Raised when the record batches that come back do not have the schema that was given."""


class OrderError(CallboardError, ValueError):
    """Raised in a task for rows of joined frames without a place in their order: null, or late."""


class CaptureError(CallboardError, PicklingError):
    """Raised on the driver when something captured by `build` cannot travel to the workers."""


class PartitionFailed(CallboardError):
    """Raised in a task when an actor or an operator of its graph failed; `error` says with what.

    The traceback, with all causes, is a note on this exception and not its cause, because Spark's
    SQL paths show an exception's notes but drop its causes.
    """

    def __init__(self, who: str, error: FailureReport, partition_id: int, where: str = "") -> None:
        self.error = error
        super().__init__(f"{who} failed{where} in partition {partition_id}: {error.summary}")
        self.add_note(f"In {who}:\n{error.traceback}")
