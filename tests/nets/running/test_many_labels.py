"""Records, boxes and cells of any size: no array of the compiled parts is too short for them."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import asdict, make_dataclass
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.nets import RecordError, box, join, ordered, sync
from callboard.nets import filter as filtering
from tests.nets.running.gate import TIMEOUT, send_all

SIZES = [2, 63, 64, 65, 66, 67, 68, 90, 255, 256, 257, 1000]


def labels(number: int, start: str = "a") -> list[str]:
    return [f"{start}{at}" for at in range(number)]


def returns(*values: int) -> tuple[int, ...]:
    return values


async def returns_later(*values: int) -> tuple[int, ...]:
    return values


def yields(*values: int) -> Iterator[tuple[int, ...]]:
    yield values


async def yields_later(*values: int) -> AsyncIterator[tuple[int, ...]]:
    yield values


@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize("function", [returns, returns_later, yields, yields_later])
def test_a_box_has_any_number_of_values(system: ActorSystem, function: Any, number: int) -> None:
    net = box(function, f"({', '.join(labels(number))}) -> ({', '.join(labels(number, 'b'))})")
    record = dict(zip(labels(number), range(number), strict=True))
    expected = dict(zip(labels(number, "b"), range(number), strict=True))
    rest = dict.fromkeys(labels(number, "z"), "as it is")  # inherited
    assert send_all(system.run(net), [record | rest] * 3) == [expected | rest] * 3


@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize("threads", [False, True])
def test_a_dataclass_has_any_number_fields(system: ActorSystem, threads: bool, number: int) -> None:
    fields = make_dataclass("Fields", [(name, int) for name in labels(number)])

    def copy(record: Any) -> Any:
        return fields(**asdict(record))

    copy.__annotations__ = {"record": fields, "return": fields}
    record = dict(zip(labels(number), range(number), strict=True))
    run = system.run(box(copy, threads=threads))
    run.send([fields(**record), record], timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == [record, record]


@pytest.mark.parametrize("number", SIZES)
def test_tags_in_any_number_are_integers(system: ActorSystem, number: int) -> None:
    tags = [f"<{name}>" for name in labels(number)]
    net = filtering(f"{{{', '.join(tags)}}} -> {{{', '.join(tags)}, <n=a0+1>}}")
    [output] = send_all(system.run(net), [dict.fromkeys(tags, True)])
    assert output == dict.fromkeys(tags, 1) | {"<n>": 2}
    assert {type(value) for value in output.values()} == {int}
    with pytest.raises(RecordError, match="integer"):
        system.run(net).send([dict.fromkeys(tags, "1")], timeout=TIMEOUT)


@pytest.mark.parametrize("number", [2, 31, 32, 62, 63, 64, 65, 100])
def test_a_cell_has_any_number_of_patterns(system: ActorSystem, number: int) -> None:
    parts = [{name: at} for at, name in enumerate(labels(number))]
    whole = {name: at for part in parts for name, at in part.items()}
    cell = sync(*(f"{{{name}}}" for name in whole))
    again = [*parts[:-1], *parts]  # a pattern that is filled lets further records pass
    assert send_all(system.run(cell), again) == [*parts[:-1], whole]
    rows = [part | {"id": key} for key in range(2) for part in parts]
    assert send_all(system.run(join(on="id", of=list(whole))), rows) == [
        whole | {"id": key} for key in range(2)
    ]


def test_a_guard_keeps_a_record_out_of_one_pattern_of_many(system: ActorSystem) -> None:
    others = [f"{{{name}}}" for name in labels(70)]
    run = system.run(sync("{<n>} if <n > 1>", *others))
    run.send([{name: 0} for name in labels(70)], timeout=TIMEOUT)
    run.send([{"<n>": 1}, {"<n>": 2}], timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == [{"<n>": 1}, {"<n>": 2} | dict.fromkeys(labels(70), 0)]


def test_the_largest_bounds_are_taken(system: ActorSystem) -> None:
    most = 2**63 - 1
    net = box(returns_later, "(a, b) -> (c, d)", concurrency=most, retries=most)
    run = system.run(ordered(net), window=most)
    assert list(run.results([{"a": 1, "b": 2}], limit=most)) == [{"c": 1, "d": 2}]


def test_a_finalizer_may_empty_a_row_that_is_being_read(system: ActorSystem) -> None:
    names = labels(30)  # a tuple of so many is made anew, and the garbage collector may run
    kept: list[list[int]] = []
    before = gc.get_threshold()

    class Empties:
        def __init__(self, row: dict[str, object]) -> None:
            self.row = row
            self.itself = self

        def __del__(self) -> None:
            self.row.clear()

    def give(x: int) -> dict[str, object]:
        row = {name: object() for name in names}
        if x:
            gc.disable()
            Empties(row)
            kept.extend([] for _ in range(2000))
            gc.set_threshold(1, *before[1:])
            gc.enable()
        return row

    run = system.run(box(give, f"(x) -> ({', '.join(names)})"))
    try:
        with suppress(RecordError):  # the row was empty before it was read
            run.send([{"x": 0}, {"x": 1}], timeout=TIMEOUT)
            assert [len(output) for output in run.finish(TIMEOUT)] == [30, 30]
    finally:
        gc.set_threshold(*before)
