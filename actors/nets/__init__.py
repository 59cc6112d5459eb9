"""Nets: networks of plain functions, written as one formula, that grow at run time."""

from __future__ import annotations

from callboard.nets.building import (
    box,
    choice,
    feedback,
    filter,  # noqa: A004 - the term's name
    join,
    net,
    ordered,
    split,
    star,
    sync,
)
from callboard.nets.drawing import mermaid
from callboard.nets.errors import (
    BoxError,
    NetEnded,
    NetError,
    NetSyntaxError,
    NetTimeout,
    NetTypeError,
    RecordError,
)
from callboard.nets.language.parsing import parse
from callboard.nets.running.reports import Trace, TraceStep
from callboard.nets.running.run import NetResults, NetRun
from callboard.nets.running.sequential import NetOperator
from callboard.nets.terms.labels import Record
from callboard.nets.terms.network import Box, Net
from callboard.nets.types.hints import Tag
from callboard.nets.types.lint import lint
from callboard.nets.types.typed import Typed, accepts, infer
from callboard.worker_processes.errors import ProcessLost

__all__ = [
    "Box",
    "BoxError",
    "Net",
    "NetEnded",
    "NetError",
    "NetOperator",
    "NetResults",
    "NetRun",
    "NetSyntaxError",
    "NetTimeout",
    "NetTypeError",
    "ProcessLost",
    "Record",
    "RecordError",
    "Tag",
    "Trace",
    "TraceStep",
    "Typed",
    "accepts",
    "box",
    "choice",
    "feedback",
    "filter",
    "infer",
    "join",
    "lint",
    "mermaid",
    "net",
    "ordered",
    "parse",
    "split",
    "star",
    "sync",
]
