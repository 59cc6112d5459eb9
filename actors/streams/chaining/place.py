"""A place in a graph: an output of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from callboard.streams.checks import check_name
from callboard.streams.errors import Failure, GraphError
from callboard.streams.planning.operator import Operator

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)


class Place(Generic[T]):
    """What the kinds of methods of a stream have in common."""

    __slots__ = ("_operator", "_port")

    def __init__(self, operator: Operator, port: int = 0) -> None:
        self._operator = operator
        self._port = port

    def __repr__(self) -> str:
        operator = self._operator
        output = f", output {operator.ports[self._port]!r}" if self._port else ""
        name = operator.name or operator.label or operator.kind
        return f"<Stream: {operator.kind} {name!r}{output}>"

    def _then(self, **what: Any) -> Stream[Any]:
        """Make the stream of an operator that has this one as its input."""
        return cast("Stream[Any]", type(self)(Operator(inputs=(cast("Any", self),), **what)))

    def _outputs(self) -> tuple[Stream[Any], ...]:
        """Make the streams of all outputs of this one's operator."""
        ports = range(len(self._operator.ports))
        return tuple(cast("Stream[Any]", type(self)(self._operator, port)) for port in ports)

    def side(self, name: str) -> Stream[Any]:
        """Give a side output of this stream's operator: "failures", "late", or one of its own."""
        check_name("a side output's name", name)
        ports = self._operator.ports
        if name not in ports[1:]:
            has = ", ".join(map(repr, ports[1:])) or "none"
            raise GraphError(f"{self!r} has no side output {name!r}: it has {has}")
        return self._outputs()[ports.index(name)]

    @property
    def failures(self) -> Stream[Failure]:
        """The inputs at which this stream's operator raised; it has `errors="side"`."""
        return self.side("failures")
