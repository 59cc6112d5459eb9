"""Graphs of streams, and nets, as an actor system starts them."""

from __future__ import annotations

from inspect import signature
from types import BuiltinFunctionType, FunctionType
from typing import Any, ParamSpec, Protocol, TypeVar

from callboard.core.errors import GraphError, SystemClosed
from callboard.core.text import did_you_mean, safe_repr

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Runnable(Protocol[P, R]):
    """A graph as a system sees it. Its options are the parameters of the method that starts it."""

    def _run_in(self, system: Any, /, *args: P.args, **options: P.kwargs) -> R: ...


def start(system: Any, graph: Runnable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Start a graph in a system. Raises GraphError, TypeError, SystemClosed, ForkedSystem."""
    system._runtime.refuse_fork()
    if system._runtime.closed:
        raise SystemClosed(f"the system {system.name!r} was stopped: it runs no graph")
    if not hasattr(type(graph), "_run_in"):
        is_function = isinstance(graph, FunctionType | BuiltinFunctionType | type)
        hint = ": make it a box, with callboard.nets.box" if is_function else ""
        raise GraphError(
            "run() expected a net, or a graph, which a sink such as collect() makes of a stream, "
            f"got {safe_repr(graph)}{hint}"
        )
    known = signature(graph._run_in).parameters
    for name in options:
        if name not in known:
            raise TypeError(
                f"run() of a {type(graph).__name__} got an unexpected option {name!r}"
                f"{did_you_mean(name, known)}"
            )
    return graph._run_in(system, *args, **options)
