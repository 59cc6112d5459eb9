"""Errors at records: the exceptions that report them, and the box's options that handle them."""

from __future__ import annotations

from typing import Literal

from callboard.core.text import safe_repr
from callboard.nets.errors import BoxError, NetError, RecordError
from callboard.nets.kernel.executor import NetNode
from callboard.nets.kernel.record import MovingRecord, Shapes
from callboard.nets.terms.labels import is_binding


def run_error(node: NetNode, record: MovingRecord, error: BaseException) -> NetError:
    """Return the error of the run for an exception that a node raised at a record."""
    if isinstance(error, NetError):
        return error
    made = BoxError(node.place, record.as_dict())
    made.__cause__ = error
    return made


def effect_of(node: NetNode, error: BaseException) -> Literal["fail", "skip", "variant"]:
    """Return the effect of an error at this node, by its box's option `errors`.

    SystemExit and others that are not an Exception are failures.
    """
    if not isinstance(error, Exception):
        return "fail"
    effect: Literal["fail", "skip", "variant"] = getattr(node.options, "errors", "fail")
    return effect


def make_variant(node: NetNode, record: MovingRecord, error: NetError, shapes: Shapes) -> None:
    """Turn a record into `{error}`, with the labels that the box would have passed on."""
    consumed = node.consumed or frozenset()
    values = {
        label: value
        for label, value in record.as_dict().items()
        if label not in consumed and not is_binding(label)
    }
    record.become(shapes, {**values, "error": error})


def as_record_error(error: Exception) -> NetError:
    """Return the error of `send()` for a row that is not a record, or cannot be read."""
    if isinstance(error, NetError):
        return error
    made = RecordError(f"send(): a record cannot be read: {safe_repr(error)}")
    made.__cause__ = error
    return made


class RunFailed(BaseException):
    """Ends the run. A BaseException, so that the handler of unreadable records lets it pass."""

    def __init__(self, error: NetError, record: MovingRecord) -> None:
        super().__init__(error)
        self.error = error
        self.record = record
