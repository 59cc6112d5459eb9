"""A net as an operator of a stream graph, and Spark's functions of partitions."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from callboard import ActorSystem, DeadLetter
from callboard.nets import (
    BoxError,
    NetEnded,
    NetError,
    NetOperator,
    NetTypeError,
    box,
    join,
    split,
    star,
)
from callboard.nets import filter as filtering
from callboard.streams import RowCounts, entry
from tests.nets.running.gate import TIMEOUT, rows, values_of

count_down = star(filtering("{<n>} -> {<n=n-1>}"), "{<n>} if <n == 0>")


async def double(x: int) -> int:
    if x < 0:
        raise ValueError(x)
    return 2 * x


@pytest.mark.parametrize("how", ["sequentially", "in a system"])
def test_a_net_in_a_graph_keeps_the_order_of_rows(system: ActorSystem, how: str) -> None:
    net = box(double, "(x) -> (y)") >> filtering("{y} -> {z=y}; {z=y}")
    graph = entry("rows").stateful(NetOperator, net).map(lambda row: row["z"]).collect()
    records = rows(range(50))
    expected = [2 * x for x in range(50) for _ in range(2)]
    if how == "sequentially":
        outputs: Any = graph.run_sequentially({"rows": records})
    else:
        run = system.run(graph)
        run.send("rows", records)
        outputs = run.finish(TIMEOUT)
    assert outputs == expected


def test_an_operator_has_its_boxes_fail_as_their_options_say() -> None:
    operator = NetOperator(box(double, "(x) -> (y)"))
    assert operator.receive({"x": 1}) == [{"y": 2}]
    with pytest.raises(BoxError):
        operator.receive({"x": -1})
    operator = NetOperator(box(double, "(x) -> (y)", errors="skip"))
    assert operator.receive({"x": -1}) == []
    operator = NetOperator(box(double, "(x) -> (y)", errors="variant", retries=2))
    [output] = operator.receive({"x": -1, "more": 1})
    assert set(output) == {"error", "more"}
    assert operator.receive({"x": 2}) == [{"y": 4}]
    assert operator.on_final() == []


@pytest.mark.parametrize("options", [{}, {"threads": True}], ids=["here", "elsewhere"])
def test_an_operator_takes_its_first_row_if_it_has_initialisers(options: Any) -> None:
    first = box(lambda: 0, "-> (y)", name="first", **options)
    operator = NetOperator(first | filtering("{x} -> {y=x}"))
    assert operator.receive({"x": 1}) == [{"y": 0}, {"y": 1}]
    assert operator.receive({"x": 2}) == [{"y": 2}]


def test_an_initialiser_that_fails_ends_its_operator() -> None:
    def fail() -> None:
        raise ValueError("down")

    operator = NetOperator(box(fail, "-> (y)") | filtering("{x} -> {y=x}"))
    with pytest.raises(BoxError, match="down"):
        operator.receive({"x": 1})
    with pytest.raises(NetEnded, match="down"):
        operator.receive({"x": 1})


def test_an_operator_that_is_dropped_leaves_no_event_loop_open() -> None:
    ended: list[str] = []

    async def wait(x: int) -> int:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("cancelled")
        return x

    async def fail(x: int) -> int:
        raise ValueError(x)

    both = filtering("{x} -> {x}; {y=x}") >> (box(wait, "(x) -> (z)") | box(fail, "(y) -> (z)"))
    for net, record in ((box(double, "(x) -> (y)"), {"x": 1}), (both, {"x": 1})):
        operator = NetOperator(net)
        with suppress(BoxError):
            operator.receive(record)
        loop = operator._loop
        assert loop is not None
        del operator
        gc.collect()
        assert loop.is_closed()
    assert ended == ["cancelled"]


@pytest.mark.parametrize("how", ["sequentially", "in a system"])
def test_records_that_a_net_skips_count_as_skipped_by_the_graph(
    system: ActorSystem, letters: list[DeadLetter], how: str
) -> None:
    net = filtering("{x} -> {x}; {x=x, more=x}") >> box(odd_alone, "(x) -> (y)", errors="skip")
    graph = entry("rows").stateful(NetOperator, net, name="net").collect()
    records = rows(range(4))
    if how == "sequentially":
        counts = RowCounts()
        outputs: Any = graph.run_sequentially({"rows": records}, row_counts=counts)
        failures, skipped = counts.failures, counts.skips.total()
    else:
        run = system.run(graph)
        run.send("rows", records)
        outputs = run.finish(TIMEOUT)
        failures, skipped = run.row_counts.failures, run.statistics().skipped
        assert [letter.message for letter in letters] == failures
        assert {letter.reason for letter in letters} == {"skipped"}
    assert values_of(outputs, "y") == [1, 1, 3, 3]
    assert skipped == 4
    assert [(each.operator, each.serial, each.row) for each in failures] == [
        ("net", serial, {"x": serial}) for serial in (0, 0, 2, 2)
    ]
    assert all(isinstance(each.error, BoxError) for each in failures)


def odd_alone(x: int) -> int:
    if x % 2 == 0:
        raise ValueError(x)
    return x


def test_a_net_without_a_type_is_refused_when_the_graph_is_built() -> None:
    stream = entry("rows")
    net = box(len, "(x) -> (y)") >> box(len, "(x) -> (z)", name="second")
    with pytest.raises(NetTypeError, match=r"len.*second"):
        stream.stateful(NetOperator, net)
    with pytest.raises(TypeError, match="expects a net, got 5"):
        stream.stateful(NetOperator, 5)
    with pytest.raises(ValueError, match="unpaired"):
        stream.stateful(NetOperator, count_down, unpaired="keep")


def test_an_operator_passes_base_exceptions_on() -> None:
    def leave(x: int) -> int:
        raise SystemExit(x)

    several: list[dict[str, Any]] = [{}, {"retries": 2}]
    for options in several:
        operator = NetOperator(box(leave, "(x) -> (y)", errors="skip", **options))
        with pytest.raises(SystemExit):
            operator.receive({"x": 1})


def test_records_left_in_cells_are_an_error_at_the_end() -> None:
    net = join(on="id", of=("a", "b"))
    operator = NetOperator(net)
    assert operator.receive({"a": 1, "id": 1}) == []
    assert operator.receive({"b": 2, "id": 1}) == [{"a": 1, "b": 2, "id": 1}]
    assert operator.receive({"a": 3, "id": 2}) == []
    with pytest.raises(NetError, match="1 record"):
        operator.on_final()
    operator = NetOperator(net, unpaired="drop")
    operator.receive({"a": 1, "id": 1})
    assert operator.on_final() == []
    with pytest.raises(ValueError, match="unpaired"):
        NetOperator(net, unpaired="keep")


def test_classes_have_an_instance_for_each_replica_in_an_operator() -> None:
    class Sum:
        def __init__(self) -> None:
            self.sum = 0

        def __call__(self, x: int) -> int:
            self.sum += x
            return self.sum

    operator = NetOperator(split(box(Sum, "(x) -> (y)"), "<k>"))
    found = [operator.receive({"x": x, "<k>": x % 2}) for x in range(6)]
    assert [row["y"] for [row] in found] == [0, 1, 2, 4, 6, 9]


@pytest.mark.parametrize(
    "none",
    [float, lambda text: np.float32(text), Decimal, lambda _: np.datetime64("NaT"), complex],
    ids=["float", "numpy", "decimal", "time", "complex"],
)
@pytest.mark.parametrize("within", [lambda x: x, lambda x: (1, x), lambda x: (("a", (x, 2)), x)])
def test_keys_unequal_to_themselves_are_one(system: ActorSystem, none: Any, within: Any) -> None:
    run = system.run(join(on="id", of=("a", "b")))
    run.send([{"a": 1, "id": within(none("nan"))}, {"b": 2, "id": within(none("nan"))}])
    run.send([{"a": 3, "id": within("nan")}, {"b": 4, "id": within("nan")}], timeout=TIMEOUT)
    assert [(row["a"], row["b"]) for row in run.finish(TIMEOUT)] == [(1, 2), (3, 4)]
    assert run.statistics().in_cells == 0
    run = system.run(split(box(lambda _: 1, "(id) -> (n)", name="one"), "id"))
    run.send([{"id": within(none("nan"))} for _ in range(10)], timeout=TIMEOUT)
    assert len(run.finish(TIMEOUT)) == 10
    [box_seen] = [seen for path, seen in run.statistics().places.items() if "one" in path]
    assert box_seen["entities"] == 1


def test_an_operator_unfolds_stars() -> None:
    operator = NetOperator(count_down)
    assert operator.receive({"n": 500}) == [{"<n>": 0}]
    assert operator.receive({"n": 0}) == [{"<n>": 0}]
