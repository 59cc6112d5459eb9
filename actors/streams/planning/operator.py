"""Operators: the boxes of a graph. A run makes a program of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from callboard.streams.checks import check_choice, check_flag, check_name
from callboard.streams.errors import GraphError
from callboard.streams.planning.plan import UNCONSTRAINED, Constraint
from callboard.streams.programs.program import Program

Errors = Literal["fail", "skip", "side"]
Late = Literal["drop", "side", "include"]


class Outlet(NamedTuple):
    """An output of an operator, which others read."""

    operator: Operator
    port: int = 0

    @property
    def label(self) -> str:
        """The output's name, where that is not an operator's main one; else nothing."""
        operator, port = self
        return operator.ports[port] if port or operator.kind == "branch" else ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Operator:
    """A box of a graph.

    `program` is called with the operator's name, and by keyword what all programs take; None for an
    entry. An operator that several branches join in takes a plan's knowledge of lineage behind its
    name.
    """

    kind: str
    program: Callable[..., Program] | None
    in_chunks: bool = False
    """Its program takes many rows at once, so the outputs of a single row are unknown; or its
    outputs leave in another order."""
    program_by_row: Callable[..., Program] | None = None
    """For such a one: the same row by row, for where branches join. None: it cannot."""
    ahead: tuple[tuple[str, Callable[..., Program]], ...] = ()
    """Programs before its own, each a planned operator: what it does in words, and its maker."""
    inputs: tuple[Outlet, ...] = field(default=(), repr=False)
    name: str | None = None
    label: str = ""
    ports: tuple[str, ...] = ("out",)
    errors: Errors = "fail"
    releases_gil: bool = False
    stateful: bool = False
    partitions: int | None = 1
    """The number of parts that keys are divided into; None: each run decides."""
    is_keyed: bool = False
    detail: str = ""
    constraint: Constraint = UNCONSTRAINED
    waits: bool = False
    """It may wait for another process, so it does not share a worker unless its constraint
    says so."""
    max_workers: int | None = None
    """That may be at it at a time; None: as many as there are."""
    joins: bool = False
    """It has several inputs, and how their rows follow each other matters to its outputs."""

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name("an operator's name", self.name)
        check_choice("errors", self.errors, ("fail", "skip", "side"))
        check_flag("releases_gil", self.releases_gil)
        if self.errors == "side" and not self.ports:
            raise GraphError("a sink has no side output, so its errors are 'fail' or 'skip'")
        ports = (*self.ports, "failures") if self.errors == "side" else self.ports
        if len(set(ports)) < len(ports):
            raise GraphError(f"an operator's outputs must have distinct names, got {ports!r}")
        object.__setattr__(self, "ports", ports)

    def make(self, name: str, *lineage: Any, by_row: bool = False) -> Program:
        """Make the program of one run."""
        make = self.program_by_row if by_row else self.program
        assert make is not None
        program = make(name, *lineage, ports=self.ports, errors=self.errors)
        program.releases_gil = self.releases_gil
        return program

    @property
    def work(self) -> Literal["stateless", "partitioned", "stateful", "end"]:
        """The kind of work, which says how workers share it. An entry is an end, too."""
        if self.program is None or not self.ports:
            return "end"
        if self.partitions != 1:
            return "partitioned"
        return "stateful" if self.stateful or self.joins else "stateless"


def itself(row: Any) -> Any:
    """Return the row, for operators without a function."""
    return row


def label_of(function: Any, kind: str) -> str:
    """Return the label of an operator without a name: its function's name, if that has one."""
    name = "" if function is itself else getattr(function, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else kind
