"""Each record that was sent is an output, was swallowed by a box, or is one dead letter."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from callboard import ActorSystem, DeadLetter
from callboard.nets import Net, NetError, box, choice, ordered, split, star, sync
from callboard.nets import filter as filtering
from callboard.nets.running.messages import Close
from callboard.testing import ManualSystem, replay
from tests.nets.running.gate import TIMEOUT, Gate, rows, values_of, within

NUMBER = 40
ENDS = ["finish", "cancel", "fail"]


def nets(swallowed: list[int], fails: int | None) -> dict[str, Net]:
    """Return nets of boxes that pass records on, swallow some, and skip some."""

    def some(x: int) -> int | None:
        if x == fails:
            raise ArithmeticError(x)
        if x % 7 == 3:
            swallowed.append(x)
            return None
        return x

    def odd(x: int) -> int:
        if x % 5 == 4:
            raise ValueError(x)
        return x

    here = box(some, "(x) -> (x)", name="here")
    thread = box(some, "(x) -> (x)", name="thread", threads=True, concurrency=2)
    several = box(some, "(x) -> (x)", name="several", concurrency=3)
    skips = box(odd, "(x) -> (x)", name="skips", threads=True, errors="skip")
    last = filtering("{x} -> {y=x}")
    return {
        "here": here >> last,
        "threads": thread >> skips >> last,
        "several": several >> skips >> last,
        "ordered": ordered(split(several, "<k>") >> skips >> last),
        "star": star(thread >> last, "{y}") >> filtering("[]"),
        "choice": choice(several, thread, ties="fair") >> skips >> last,
        "ordered choice": choice(several, thread, ordered=True, ties="fair") >> skips >> last,
    }


NAMES = [*nets([], None)]


def check(
    end: str, run: Any, letters: list[DeadLetter], swallowed: list[int], told: list[int]
) -> None:
    outputs: list[Any] = []
    try:
        for record in run.results():
            outputs.append(record)
    except NetError:
        assert end != "finish"
    found = Counter(values_of(outputs, "y"))
    found.update(letter.message["x"] for letter in letters)
    missing = Counter(told)
    missing.subtract(found)
    # A box may have swallowed a record of a run that ended before it heard of that.
    assert set(missing.values()) <= {0, 1}
    assert set(missing.elements()) <= set(swallowed)
    if end == "finish":
        assert set(missing.elements()) == set(swallowed)
    reasons = {letter.reason for letter in letters}
    assert reasons <= {"skipped", "stopped", "failed"}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", NAMES)
@replay(8)
def test_no_record_is_lost_on_a_manual_system(name: str, end: str, seed: int) -> None:
    chance = random.Random(seed)
    swallowed: list[int] = []
    letters: list[DeadLetter] = []
    fails = chance.choice([0, 1, 2, 8, 20]) if end == "fail" else None
    with ManualSystem(seed, trace=False) as system:
        system.dead_letters.subscribe(letters.append)
        run = system.run(nets(swallowed, fails)[name], window=chance.choice([1, 3, 256]))
        run.tell_many({"x": x, "<k>": x % 3} for x in range(NUMBER))
        for _ in range(chance.randrange(150)):
            if not system.step():
                break
        if end == "cancel":
            run.cancel()
        else:
            run._coordinator.tell(Close())  # outputs stay where they are
        run.tell({"x": NUMBER, "<k>": 0})  # too late
        check(end, run, letters, swallowed, [*range(NUMBER + 1)])


@pytest.mark.parametrize("end", ["cancel", "stop"])
@pytest.mark.parametrize("part", ["at a box", "ordered", "waiting", "in cells"])
def test_records_everywhere_are_dead_letters(part: str, end: str) -> None:
    gate = Gate()
    letters: list[DeadLetter] = []
    system = ActorSystem()
    system.dead_letters.subscribe(letters.append)
    work = box(gate.wait_here, "(x) -> (y)", concurrency=2)
    net: dict[str, Net] = {
        "at a box": work,
        "ordered": choice(work, filtering("{z} -> {y=z}"), ordered=True),
        "waiting": work,
        "in cells": sync("{x}", "{never}") >> work,
    }
    run = system.run(net[part], window=2 if part == "waiting" else 256)
    records = [{"x": 0}, {"x": 1}, {"x": 2}, {"z" if part == "ordered" else "x": 3}]
    run.tell_many(records)
    gate.several(2)
    run.statistics()
    if end == "cancel":
        run.cancel(TIMEOUT)
    system.stop()
    labels = Counter(next(iter(letter.message.values())) for letter in letters)
    assert labels == Counter(range(4))
    assert {letter.reason for letter in letters} <= {"stopped", "unpaired"}


def test_records_left_in_cells_are_unpaired(system: ActorSystem, letters: list[DeadLetter]) -> None:
    run = system.run(split(star(sync("{a}", "{b}"), "{a, b}"), "<k>"))
    run.send([{"a": x, "<k>": x} for x in range(5)], timeout=TIMEOUT)
    run.send([{"b": x, "<k>": x} for x in range(3)], timeout=TIMEOUT)
    assert len(run.finish(TIMEOUT)) == 3
    assert sorted(letter.message["a"] for letter in letters) == [3, 4]
    assert {letter.reason for letter in letters} == {"unpaired"}


def test_failed_sends_and_letters_add_up(system: ActorSystem, letters: list[DeadLetter]) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)", concurrency=2), window=5)
    sends = within(lambda: run.send(rows(range(20)), timeout=TIMEOUT))
    gate.several(2)
    run.cancel(TIMEOUT)
    with pytest.raises(NetError) as caught:
        sends.result(TIMEOUT)
    sent = caught.value.sent  # type: ignore[attr-defined]
    assert caught.value.unsent == rows(range(sent, 20))  # type: ignore[attr-defined]
    assert sorted(letter.message["x"] for letter in letters) == list(range(sent))
