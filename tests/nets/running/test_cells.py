"""Cells and joins in runs: many keys, leftovers, and entities that end after a merge."""

from __future__ import annotations

from queue import Queue
from typing import Any

import pytest

from callboard import ActorSystem, DeadLetter
from callboard.nets import Net, join, ordered, sync
from tests.nets.running.gate import TIMEOUT

KEYS = 300


@pytest.mark.parametrize("key", ["<id>", "id"])
@pytest.mark.parametrize("keeps_order", [False, True])
def test_many_keys_are_joined(
    system: ActorSystem, letters: list[DeadLetter], key: str, keeps_order: bool
) -> None:
    net = join(on=key, of=("a", "b", "c"))
    run = system.run(ordered(net) if keeps_order else net)
    for label in "cab":
        run.send([{label: (label, n), key: n} for n in range(KEYS)], timeout=TIMEOUT)
    outputs = run.finish(TIMEOUT)
    assert outputs == [{**{each: (each, n) for each in "abc"}, key: n} for n in range(KEYS)]
    assert not letters


def test_entities_end_when_their_pair_has_merged(system: ActorSystem) -> None:
    run = system.run(join(on="id", of=("a", "b")))

    def pair(n: int) -> list[dict[str, Any]]:
        return [{"a": n, "id": n}, {"b": n, "id": n}]

    run.send(pair(-1), timeout=TIMEOUT)
    before = sum(place["entities"] for place in run.statistics().places.values())
    run.send([row for n in range(KEYS) for row in pair(n)], timeout=TIMEOUT)
    seen = run.statistics()
    assert seen.in_cells == 0
    assert sum(place["entities"] for place in seen.places.values()) <= before + 2
    assert len(run.finish(TIMEOUT)) == KEYS + 1


@pytest.mark.parametrize("kind", ["cell", "join"])
def test_a_cell_that_times_out_starts_again(system: ActorSystem, kind: str) -> None:
    letters: Queue[DeadLetter] = Queue()
    system.dead_letters.subscribe(letters.put)
    cell: Net = sync("{a}", "{b}", timeout=0.02)
    run = system.run(cell if kind == "cell" else join("id", ("a", "b"), timeout=0.02))
    run.send([{"a": 1, "id": 1}], timeout=TIMEOUT)
    letter = letters.get(timeout=TIMEOUT)
    assert (letter.message, letter.reason) == ({"a": 1, "id": 1}, "unpaired")
    assert run.statistics().in_cells == 0
    run.send([{"a": 2, "id": 1}, {"b": 3, "id": 1}], timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == [{"a": 2, "b": 3, "id": 1}]
    assert letters.empty()
