"""Context variables: those set by a graph's functions belong to the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import Graph, entry
from callboard.testing import ManualSystem

variable = ContextVar("variable", default="nobody's")


def sets(row: int) -> str:
    seen = variable.get()
    variable.set(f"of row {row}")
    return seen


class SetsAtEachStep:
    def __init__(self) -> None:
        variable.set("of __init__")

    def receive(self, row: int) -> None:
        variable.set("of receive")

    def on_final(self) -> None:
        variable.set("of the end")


rows = entry("rows", int)
GRAPH = Graph(
    rows.map(sets).collect(name="seen"),
    rows.stateful(SetsAtEachStep).collect(name="end"),
    rows.to(lambda row: variable.set("of a sink")),
)


def arriving() -> Iterator[int]:
    """Run in the caller's context, as any generator of the caller's does."""
    for row in range(3):
        variable.set(f"before row {row}")
        yield row


def in_sequence(graph: Graph[Any]) -> Any:
    return graph.run_sequentially({"rows": arriving()}, batch_size=1)


def in_system(model: Model, make: Callable[[], ActorSystem]) -> Callable[[Graph[Any]], Any]:
    def run(graph: Graph[Any]) -> Any:
        with make() as system:
            run = system.run(graph, threading=model, batch_size=1)
            run.send("rows", arriving())
            return run.finish(timeout=60)

    return run


WAYS: dict[str, Callable[[Graph[Any]], Any]] = {"in sequence": in_sequence}
WAYS |= {model: in_system(model, ActorSystem) for model in MODELS}
WAYS |= {f"{model}, by hand": in_system(model, ManualSystem) for model in MODELS}


@pytest.mark.parametrize("way", WAYS)
def test_a_functions_variables_are_not_seen_by_the_caller(way: str) -> None:
    token = variable.set("the caller's")
    try:
        seen = WAYS[way](GRAPH)["seen"]
        assert variable.get() == "before row 2"
        assert "before" not in "".join(seen[1:])
    finally:
        variable.reset(token)


def test_functions_of_a_sequential_run_see_the_callers_and_each_others() -> None:
    token = variable.set("the caller's")
    try:
        graph = rows.map(sets).collect()
        assert graph.run_sequentially({"rows": [0, 1]}) == ["the caller's", "of row 0"]
        assert graph.run_sequentially({"rows": [0, 1]}) == ["the caller's", "of row 0"]
    finally:
        variable.reset(token)


def test_a_failed_run_leaves_nothing_behind_either() -> None:
    def fails(row: int) -> None:
        variable.set("of a failure")
        raise ValueError(row)

    with pytest.raises(ValueError, match="no more"):
        rows.map(sets).collect().run_sequentially({"rows": failing()})
    assert rows.map(fails, errors="skip").collect().run_sequentially({"rows": [1]}) == []
    assert variable.get() == "nobody's"


def failing() -> Iterator[int]:
    yield 1
    raise ValueError("no more")
