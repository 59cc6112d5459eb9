"""The base of streams: chaining of operators, and side outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from callboard.streams.checks import check_name
from callboard.streams.errors import FailedRow, GraphError
from callboard.streams.planning.operator import Errors, Operator, Outlet
from callboard.streams.planning.plan import UNCONSTRAINED, Constraint

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)


class Chainable(Generic[T]):
    """The base of the classes that have a stream's methods."""

    __slots__ = ("_outlet", "_constraint", "_max_workers")

    def __init__(
        self,
        outlet: Outlet,
        constraint: Constraint = UNCONSTRAINED,
        max_workers: int | None = None,
    ) -> None:
        self._outlet = outlet
        self._constraint = constraint  # of the operators that are made from this stream
        self._max_workers = max_workers  # at each of these

    def __repr__(self) -> str:
        operator, port = self._outlet
        output = f", output {operator.ports[port]!r}" if port else ""
        name = operator.name or operator.label or operator.kind
        return f"<Stream: {operator.kind} {name!r}{output}>"

    def _then(
        self,
        operator: Operator,
        name: str | None,
        errors: Errors = "fail",
        *,
        releases_gil: bool = False,
        others: tuple[Stream[Any], ...] = (),
    ) -> Stream[Any]:
        """Make the stream of an operator that has this one as its input, and maybe others."""
        inputs = (self._outlet, *(other._outlet for other in others))
        operator = replace(
            operator,
            inputs=inputs,
            name=name,
            errors=errors,
            releases_gil=releases_gil,
            constraint=self._constraint,
            max_workers=self._max_workers,
        )
        return self._of(Outlet(operator))

    def _of(self, outlet: Outlet) -> Stream[Any]:
        return cast("Stream[Any]", type(self)(outlet, self._constraint))

    def _outputs(self) -> tuple[Stream[Any], ...]:
        """Make the streams of all outputs of this one's operator."""
        operator = self._outlet.operator
        return tuple(self._of(Outlet(operator, port)) for port in range(len(operator.ports)))

    def side(self, name: str) -> Stream[Any]:
        """Return a side output of this stream's operator: "failures", "late", or one of `sides`."""
        check_name("a side output's name", name)
        ports = self._outlet.operator.ports
        if name not in ports[1:]:
            has = ", ".join(map(repr, ports[1:])) or "none"
            raise GraphError(f"{self!r} has no side output {name!r}: it has {has}")
        return self._outputs()[ports.index(name)]

    @property
    def failures(self) -> Stream[FailedRow]:
        """The inputs at which this stream's operator raised. The operator needs `errors="side"`."""
        return self.side("failures")
