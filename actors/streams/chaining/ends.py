"""Sinks: where a stream ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from typing import Any, TypeVar

from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.streams.chaining.place import Place
from callboard.streams.checks import check_function, check_name
from callboard.streams.errors import GraphError
from callboard.streams.planning.graph import Graph
from callboard.streams.planning.operator import Errors, label_of
from callboard.streams.programs.files import to_file
from callboard.streams.programs.sinks import Call, Collect, Tell

T = TypeVar("T", covariant=True)


class Ends(Place[T]):
    """What makes a graph of a stream. Watermarks end here, too."""

    __slots__ = ()

    def collect(self, *, name: str | None = None) -> Graph[list[T]]:
        """End in a list, which is the run's result, or a part of it by this name."""
        return self._end({"kind": "collect", "program": Collect}, "collect", name, "fail")

    def to(
        self,
        sink: Callable[[T], object] | ActorRef[T] | str | PathLike[str],
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Graph[None]:
        """End in a function, which is called with each row, in an actor, or in a file.

        An actor is told each row. A row that its mailbox refuses, by MailboxFull, is one at which
        the sink raised; one that comes to a stopped actor is a dead letter. In a file each row is a
        line: strings as they are, and all else as JSON, objects of dataclasses among it. A file of
        that name is replaced when a run starts, which raises RunError if another run is writing it.
        """
        if isinstance(sink, ActorRef):
            what = {"program": Tell, "args": (sink,), "detail": sink.path}
            return self._end(what, "tell", name, errors)
        if isinstance(sink, str | PathLike):
            check_name("a file's name", os.fspath(sink))
            what = {"program": to_file, "args": (sink,), "detail": str(sink)}
            return self._end(what, "write", name, errors)
        if isinstance(sink, type) and issubclass(sink, Actor):
            raise GraphError(f"an actor that ends a stream is given by its ref, not as {sink!r}")
        check_function("a sink", sink)
        what = {"program": Call, "args": (sink,)}
        return self._end(what, label_of(sink, "to"), name, errors)

    def _end(
        self, what: dict[str, Any], label: str, name: str | None, errors: Errors
    ) -> Graph[Any]:
        what = {"kind": "to", "label": label, **what}
        end = self._then(**what, ports=(), stateful=True, name=name, errors=errors)
        return Graph._of(end._operator)
