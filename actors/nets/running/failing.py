"""Errors at records: by which exception they are told, and what the box's options make of them."""

from __future__ import annotations

from typing import Literal

from callboard.nets.errors import BoxError, NetError
from callboard.nets.kernel.carrier import NetNode
from callboard.nets.kernel.record import MovingRecord, Shapes
from callboard.nets.terms.labels import is_binding


def told_as(node: NetNode, record: MovingRecord, error: BaseException) -> NetError:
    """Return the error of the run for an exception that a node raised at a record."""
    if isinstance(error, NetError):
        return error
    made = BoxError(node.place, record.as_dict())
    made.__cause__ = error
    return made


def effect_of(node: NetNode) -> Literal["fail", "skip", "variant"]:
    """Return what errors at this node do: as a box's option `errors` says."""
    effect: Literal["fail", "skip", "variant"] = getattr(node.options, "errors", "fail")
    return effect


def make_variant(node: NetNode, record: MovingRecord, error: NetError, shapes: Shapes) -> None:
    """Let a record become `{error}`, with the labels that the box would have passed on."""
    consumed = node.consumed or frozenset()
    values = {
        label: value
        for label, value in record.as_dict().items()
        if label not in consumed and not is_binding(label)
    }
    record.become(shapes, {**values, "error": error})
