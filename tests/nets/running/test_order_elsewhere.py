"""Order, where boxes elsewhere end in another order than they began."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.nets import Net, box, choice, feedback, ordered, split, star
from callboard.nets import filter as filtering
from tests.nets.running.gate import TIMEOUT, Gate, rows, values_of, within

NUMBER = 12


def nets(gate: Gate) -> dict[str, Net]:
    """Return nets around one box, which takes `x` and puts out `y`."""
    work = box(gate.wait_here, "(x) -> (y)", name="work")
    quick = filtering("{z} -> {y=z}")
    again = filtering("{y, <n>} -> if <n < 3> then {x=y, <n=n+1>} else {y}")
    return {
        "box": ordered(work),
        "choice": choice(work, quick, ordered=True),
        "star": star(work, "{y}", ordered=True),
        "stars": star(star(work, "{y}", ordered=True), "{y}", ordered=True),
        "split": split(work, "<k>", ordered=True),
        "split of stars": ordered(split(star(work, "{y}"), "<k>")),
        "feedback": ordered(feedback(work, "{x}")),
        "two": ordered(work >> filtering("{y} -> {y}; {y}")),
        "later": ordered(filtering("{x} -> {x}") >> work >> (again | filtering("{y} -> {y}"))),
    }


@pytest.mark.parametrize("name", [*nets(Gate())])
def test_an_ordered_net_puts_out_in_the_order_of_its_inputs(system: ActorSystem, name: str) -> None:
    gate = Gate()
    run = system.run(nets(gate)[name])
    run.send([{"x": x, "<k>": x % 3} for x in range(NUMBER)], timeout=TIMEOUT)
    if name != "feedback":  # one is in its body at a time
        assert gate.several(NUMBER) == set(range(NUMBER))
    gate.open(*reversed(range(NUMBER)))
    outputs = values_of(run.finish(TIMEOUT), "y")
    copies = 2 if name == "two" else 1
    assert outputs == [x for x in range(NUMBER) for _ in range(copies)]


def test_a_quick_branch_waits_for_nothing(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)") | filtering("{z} -> {y=z}"))
    results = run.results()
    run.send({"x": "slow"}, timeout=TIMEOUT)
    for z in range(20):
        run.send({"z": z}, timeout=TIMEOUT)
        assert within(next, results).result(TIMEOUT) == {"y": z}
    gate.open("slow")
    assert run.finish(TIMEOUT) == [{"y": "slow"}]


def test_each_branch_keeps_its_order(system: ActorSystem) -> None:
    def same(x: Any) -> Any:
        return x

    branches = [box(same, f"({label}) -> (y)", threads=label != "a") for label in "abc"]
    run = system.run(choice(*branches) >> box(same, "(y) -> (z)", dedicated=True))
    records = [{label: (label, x)} for x in range(30) for label in "abc"]
    run.send(records, timeout=TIMEOUT)
    outputs = values_of(run.finish(TIMEOUT), "z")
    for label in "abc":
        assert [x for of, x in outputs if of == label] == list(range(30))


def test_a_record_waits_in_an_ordered_part_for_those_before_it(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(
        choice(box(gate.wait_here, "(x) -> (y)"), filtering("{z} -> {y=z}"), ordered=True)
    )
    run.send([{"x": 1}, {"z": 2}], timeout=TIMEOUT)
    first = within(next, run.results())
    assert run.statistics().put_out == 0
    gate.open(1)
    assert first.result(TIMEOUT) == {"y": 1}
    assert values_of(run.finish(TIMEOUT), "y") in ([2], [])


def test_asks_in_an_ordered_net_keep_the_order(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(ordered(box(gate.wait_here, "(x) -> (y)")))
    asked = [run.ask(row) for row in rows(range(5))]
    assert gate.several(5) == set(range(5))
    gate.open(4, 3, 2, 1)
    run.statistics()
    assert not any(each.done() for each in asked)
    gate.open(0)
    assert [each.result(TIMEOUT) for each in asked] == [[{"y": x}] for x in range(5)]


@pytest.mark.parametrize("kind", ["plain", "generator", "failing later"])
@pytest.mark.parametrize("errors", ["skip", "variant"])
def test_a_failed_record_waits_for_its_turn(system: ActorSystem, kind: str, errors: Any) -> None:
    gate = Gate()

    def plain(z: int) -> int:
        raise ValueError(z)

    def generator(z: int) -> Iterator[int]:
        raise ValueError(z)
        yield z

    def failing_later(z: int) -> Iterator[int]:
        yield z
        raise ValueError(z)

    function: Any = {"plain": plain, "generator": generator}.get(kind, failing_later)
    slow = box(gate.wait_here, "(x) -> (y)", name="slow")
    fails = box(function, "(z) -> (y)", name="fails", errors=errors)
    run = system.run(ordered(slow | fails))
    run.send([{"x": 0}, {"z": 1}, {"x": 2}, {"z": 3}], timeout=TIMEOUT)
    assert gate.several(2) == {0, 2}
    gate.open(2, 0)
    outputs = run.finish(TIMEOUT)
    assert [row["y"] for row in outputs if row.get("y") in (0, 2)] == [0, 2]
    failed = [at for at, row in enumerate(outputs) if "error" in row]
    assert len(failed) == (2 if errors == "variant" else 0)
    if failed:
        assert outputs[0] == {"y": 0}
        assert failed[0] < outputs.index({"y": 2}) < failed[1]
