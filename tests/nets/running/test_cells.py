"""Cells and joins in runs: many keys, leftovers, and entities that end after a merge."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import ActorSystem, DeadLetter
from callboard.nets import join, ordered
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
