"""Boxes of each kind: functions, generators, coroutines, classes, on threads and here."""

from __future__ import annotations

import math
import operator
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import pytest

from callboard import ActorSystem
from callboard.nets import Net, RecordError, Tag, box, choice, ordered, split, star
from callboard.nets import filter as filtering
from tests.nets.running.gate import TIMEOUT, Gate, rows, values_of, within


def plain(x: int) -> Any:
    return None if x == 0 else x


def generator(x: int) -> Iterator[Any]:
    for number in range(x):
        yield number
        yield None


async def coroutine(x: int) -> Any:
    return None if x == 0 else x


async def async_generator(x: int) -> AsyncIterator[Any]:
    for number in range(x):
        yield number
        yield None


class Instance:
    def __call__(self, x: int) -> Any:
        return plain(x)


class AsyncInstance:
    async def __call__(self, x: int) -> Any:
        return plain(x)


class GeneratorInstance:
    def __call__(self, x: int) -> Iterator[Any]:
        yield from generator(x)


ELSEWHERE: list[dict[str, Any]] = [
    {},
    {"threads": True},
    {"dedicated": True},
    {"threads": True, "concurrency": 3},
    {"timeout": 60.0},
    {"retries": 2},
]


@pytest.mark.parametrize("options", ELSEWHERE, ids=str)
@pytest.mark.parametrize("function", [plain, Instance, generator, GeneratorInstance])
def test_functions(system: ActorSystem, function: Any, options: dict[str, Any]) -> None:
    check(system, box(function, "(x) -> (y)", **options), "enerator" in function.__name__)


@pytest.mark.parametrize(
    "options", [{}, {"concurrency": 2}, {"timeout": 60.0}, {"retries": 2}], ids=str
)
@pytest.mark.parametrize("function", [coroutine, AsyncInstance, async_generator])
def test_coroutine_functions(system: ActorSystem, function: Any, options: dict[str, Any]) -> None:
    check(system, box(function, "(x) -> (y)", **options), function is async_generator)


class Methods:
    def __init__(self, name: str) -> None:
        self.name = name

    def plain(self, x: int) -> Any:
        return f"{self.name}{x}"

    def generator(self, x: int) -> Iterator[Any]:
        yield f"{self.name}{x}"

    async def coroutine(self, x: int) -> Any:
        return f"{self.name}{x}"

    async def async_generator(self, x: int) -> AsyncIterator[Any]:
        yield f"{self.name}{x}"


class Called(Methods):
    __call__ = Methods.plain


class CalledGenerator(Methods):
    __call__ = Methods.generator


class CalledCoroutine(Methods):
    __call__ = Methods.coroutine


class CalledAsyncGenerator(Methods):
    __call__ = Methods.async_generator


@pytest.mark.parametrize(
    "function",
    [
        Methods("m").plain,
        Methods("m").generator,
        Methods("m").coroutine,
        Methods("m").async_generator,
        *(cls("m") for cls in (Called, CalledGenerator, CalledCoroutine, CalledAsyncGenerator)),
        *(
            partial(cls, name="m")
            for cls in (Called, CalledGenerator, CalledCoroutine, CalledAsyncGenerator)
        ),
    ],
)
def test_methods_objects_and_classes_with_arguments(system: ActorSystem, function: Any) -> None:
    run = system.run(box(function, "(x) -> (y)"))
    assert run.ask({"x": 1}).result(TIMEOUT) == [{"y": "m1"}]


def check(system: ActorSystem, net: Net, generates: bool) -> None:
    run = system.run(net)
    answers = [values_of(run.ask({"x": x}).result(TIMEOUT), "y") for x in range(4)]
    if generates:
        assert answers == [[], [0], [0, 1], [0, 1, 2]]
    else:
        assert answers == [[], [1], [2], [3]]
    run.send(rows(range(50)), timeout=TIMEOUT)
    outputs = Counter(values_of(run.finish(TIMEOUT), "y"))
    expected = Counter(n for x in range(50) for n in (range(x) if generates else [x] * (x > 0)))
    assert outputs == expected


@pytest.mark.parametrize("options", [{}, {"threads": True}, {"dedicated": True}], ids=str)
def test_each_replica_has_its_instance(system: ActorSystem, options: dict[str, Any]) -> None:
    made: list[object] = []

    class Sum:
        def __init__(self) -> None:
            self.sum = 0
            made.append(self)

        def __call__(self, x: int) -> int:
            self.sum += x
            return self.sum

    run = system.run(split(box(Sum, "(x) -> (y)", **options), "<k>"))
    run.send([{"x": x, "<k>": k} for x in range(1, 5) for k in range(3)], timeout=TIMEOUT)
    outputs = run.finish(TIMEOUT)
    assert len(made) == 3
    for key in range(3):
        assert [row["y"] for row in outputs if row["<k>"] == key] == [1, 3, 6, 10]


def test_replicas_of_one_net_in_several_runs_share_no_instance(system: ActorSystem) -> None:
    class Count:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, x: int) -> int:
            self.calls += 1
            return self.calls

    net = box(Count, "(x) -> (y)")
    for _ in range(2):
        run = system.run(net)
        run.send(rows("ab"), timeout=TIMEOUT)
        assert values_of(run.finish(TIMEOUT), "y") == [1, 2]


def test_calls_here_share_a_thread_and_dedicated_ones_do_not(system: ActorSystem) -> None:
    def thread(x: int) -> int:
        return threading.get_ident()

    run = system.run(split(box(thread, "(x) -> (y)", dedicated=True), "<k>"))
    run.send([{"x": x, "<k>": x % 2} for x in range(20)], timeout=TIMEOUT)
    outputs = run.finish(TIMEOUT)
    idents = {row["y"] for row in outputs}
    assert threading.get_ident() not in idents
    assert len(outputs) == 20


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("kind", ["async", "dedicated"])
def test_calls_are_limited_by_concurrency(system: ActorSystem, most: int, kind: str) -> None:
    gate = Gate()
    if kind == "async":
        net = box(gate.wait_here, "(x) -> (y)", concurrency=most)
    else:
        net = box(gate.wait, "(x) -> (y)", concurrency=most, dedicated=True)
    run = system.run(net)
    run.send(rows(range(20)), timeout=TIMEOUT)
    assert gate.several(most) == set(range(most))
    for x in range(20 - most):
        gate.open(x)
        gate.next()
        assert gate.now <= most + 1
    gate.open(*range(20 - most, 20))
    assert sorted(values_of(run.finish(TIMEOUT), "y")) == list(range(20))
    assert gate.most == most


def test_coroutine_functions_have_no_limit_of_their_own(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)"))
    run.send(rows(range(100)), timeout=TIMEOUT)
    assert gate.several(100) == set(range(100))
    gate.open(*range(100))
    assert len(run.finish(TIMEOUT)) == 100
    assert gate.most == 100


@pytest.mark.parametrize(("options", "workers"), [({"dedicated": True}, 1), ({"threads": True}, 2)])
def test_a_box_elsewhere_does_not_hold_up_others(options: dict[str, Any], workers: int) -> None:
    gate = Gate()
    net = box(gate.wait, "(slow) -> (y)", **options) | box(abs, "(quick) -> (z)")
    with ActorSystem(workers=workers) as system:
        run = system.run(net)
        results = run.results()
        run.send([{"slow": 1}, {"quick": -1}], timeout=TIMEOUT)
        assert within(next, results).result(TIMEOUT) == {"z": 1}
        gate.open(1)
        assert run.finish(TIMEOUT) == [{"y": 1}]


def test_the_error_of_a_thread_that_takes_too_long_is_a_timeout_error() -> None:
    gate = Gate()
    net = box(gate.wait, "(slow) -> (y)", threads=True, timeout=0.01, name="slow")
    with ActorSystem(workers=2) as system:
        run = system.run(net)
        error = run.ask({"slow": 1}).exception(TIMEOUT)
        gate.open(1)
        run.cancel()
    assert type(error.__cause__) is TimeoutError
    assert "TimeoutError: /slow: the call took more than 0.01 s" in str(error).replace(
        "asyncio.", ""
    ), str(error)


@pytest.mark.parametrize("options", [{}, {"threads": True}], ids=str)
def test_functions_in_c(system: ActorSystem, options: dict[str, Any]) -> None:
    net = (
        box(operator.neg, "(x) -> (x)", **options)
        >> box(divmod, "(x, d) -> (q, <r>)", **options)
        >> box(math.floor, "(q) -> (<q>)", **options)
    )
    run = system.run(net)
    run.send([{"x": -17, "d": 5}, {"x": -4, "d": 2, "more": "m"}], timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == [{"<q>": 3, "<r>": 2}, {"<q>": 2, "<r>": 0, "more": "m"}]


@dataclass
class Order:
    item: str
    n: Tag


class Bill(TypedDict):
    total: int
    n: Tag


@box
async def weigh(order: Order) -> Bill:
    return {"total": len(order.item), "n": order.n}


@box(threads=True)
def count(order: Order) -> Iterator[Bill]:
    yield {"total": len(order.item), "n": order.n}


@pytest.mark.parametrize("net", [weigh, count])
def test_a_dataclass_goes_to_a_coroutine_and_to_a_thread(system: ActorSystem, net: Net) -> None:
    assert system.run(net).ask({"item": "pen", "n": 2}).result(TIMEOUT) == [{"total": 3, "<n>": 2}]


@box
def deliver(order: Order, user: str) -> Bill:
    return {"total": len(order.item), "n": order.n}


@pytest.mark.parametrize(
    ("net", "record", "note"),
    [
        (
            deliver,
            {"item": "pen", "n": 2, "user": "ann"},
            "; order is a field with a value of the class Order",
        ),
        (
            weigh,
            {"order": Order("pen", 2)},
            "; the box's only parameter stands for a record, Order",
        ),
    ],
)
def test_a_record_that_does_not_fit_the_hints_is_told_how_they_are_read(
    system: ActorSystem, net: Net, record: dict[str, Any], note: str
) -> None:
    with pytest.raises(RecordError, match=note):
        system.run(net).ask(record).result(TIMEOUT)
    given = {"order": Order("pen", 2), "user": "ann"}
    assert system.run(deliver).ask(given).result(TIMEOUT) == [{"total": 3, "<n>": 2}]


@box
def bill(order: Order) -> Bill:
    return {"total": len(order.item) * order.n, "n": order.n}


@box
async def pack(total: int) -> AsyncIterator[Order]:
    for number in range(total):
        yield Order(f"box {number}", number)


@box
def with_tag(item: str, n: Tag) -> None:
    assert type(n) is int


def test_hints_make_records(system: ActorSystem) -> None:
    run = system.run(bill)
    assert run.ask({"item": "abc", "<n>": 2, "more": 1}).result(TIMEOUT) == [
        {"total": 6, "<n>": 2, "more": 1}
    ]
    run = system.run(pack)
    assert run.ask({"total": 2}).result(TIMEOUT) == [
        {"item": "box 0", "<n>": 0},
        {"item": "box 1", "<n>": 1},
    ]
    assert system.run(with_tag).ask({"item": "a", "n": True}).result(TIMEOUT) == []


def test_a_large_integer_and_a_truth_value_are_tags(system: ActorSystem) -> None:
    run = system.run(filtering("{<n>} -> {<n=n*n>}"))
    assert run.ask({"n": 10**30}).result(TIMEOUT) == [{"<n>": 10**60}]
    [output] = run.ask({"n": True}).result(TIMEOUT)
    assert type(output["<n>"]) is int


def test_an_initialiser_runs_once_at_the_start(system: ActorSystem) -> None:
    calls: list[int] = []

    def first() -> int:
        calls.append(1)
        return 0

    both: list[dict[str, Any]] = [{}, {"threads": True}]
    for options in both:
        calls.clear()
        run = system.run(box(first, "-> (x)", **options) | star(filtering("{x} -> {y=x}"), "{y}"))
        run.send(rows([1, 2]), timeout=TIMEOUT)
        outputs = run.finish(TIMEOUT)
        assert calls == [1]
        assert sorted(map(str, map(dict, outputs))) == ["{'x': 0}", "{'y': 1}", "{'y': 2}"]


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("inner", [False, True], ids=["", "in a replica"])
def test_initialisers_elsewhere_come_first(system: ActorSystem, inner: bool, number: int) -> None:
    first = box(lambda: 0, "-> (y)", name="first", threads=True)
    second = box(lambda: 1, "-> (y)", name="second", threads=True)
    net: Net = choice(first, second, filtering("{x} -> {y=x}"))
    expected = [0, 1, *range(2, 2 + number)]
    if inner:
        net = split(net, "<k>")
        expected = expected if number else []
    run = system.run(ordered(net))
    run.send([{"x": x, "<k>": 0} for x in range(2, 2 + number)], timeout=TIMEOUT)
    assert values_of(run.finish(TIMEOUT), "y") == expected


@pytest.mark.parametrize("placed", ["number", "split"])
def test_hints_of_places(placed: str) -> None:
    idents: dict[int, set[int]] = {0: set(), 1: set()}

    def noted(x: int, where: int) -> int:
        idents[where].add(threading.get_ident())
        return x

    work = box(noted, "(x, <where>) -> (y)", threads=True)
    if placed == "split":
        net: Net = split(work, "<where>", placed=True)
    else:
        net = split(work, "<where>").at(1)
    with ActorSystem(workers=2, threading="assigned") as system:
        run = system.run(net)
        run.send([{"x": x, "<where>": x % 2} for x in range(40)], timeout=TIMEOUT)
        assert sorted(values_of(run.finish(TIMEOUT), "y")) == list(range(40))
    if placed == "split":
        assert all(len(each) == 1 for each in idents.values())
    else:
        assert idents[0] == idents[1]
        assert len(idents[0]) == 1
