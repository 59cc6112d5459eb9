"""Operators: the nodes of a graph, as they were asked for. A run makes a program of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from callboard.streams.checks import check_choice, check_flag, check_name
from callboard.streams.errors import GraphError

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream
    from callboard.streams.programs.program import Program

Errors = Literal["fail", "skip", "side"]
Late = Literal["drop", "side", "include"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Operator:
    """A node of a graph.

    `program` is called with the operator's name, `args` and `options`, and those that all programs
    take; None for an entry. What several branches join in takes first what a plan knows of origins.
    """

    kind: str
    program: Callable[..., Program] | None
    program_by_row: Callable[..., Program] | None = None
    """One for the same that is handed row by row: where branches join, if the other is not."""
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Stream[Any], ...] = ()
    name: str | None = None
    label: str = ""
    ports: tuple[str, ...] = ("out",)
    errors: Errors = "fail"
    releases_gil: bool = False
    stateful: bool = False
    partitions: int = 1
    detail: str = ""
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
            raise GraphError(f"an operator's outputs have names of their own, not {ports!r}")
        object.__setattr__(self, "ports", ports)

    def make(self, name: str, *origins: Any, by_row: bool = False) -> Program:
        """Make the program of one run."""
        make = self.program_by_row if by_row and self.program_by_row else self.program
        assert make is not None
        program = make(
            name, *origins, *self.args, ports=self.ports, errors=self.errors, **self.options
        )
        program.releases_gil = self.releases_gil
        return program


def label_of(function: Any, kind: str) -> str:
    """Say what to call an operator that has no name: as its function, if that has one."""
    name = getattr(function, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else kind
