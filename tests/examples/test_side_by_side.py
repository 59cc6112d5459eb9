"""The pairs of commits that the example finds are those that a list for each folder finds."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

import side_by_side as example
from callboard import ActorSystem
from changes import read_changes


def test_the_pairs_are_those_of_a_plain_program() -> None:
    with example.SAMPLE.open("rb") as file:
        changes = list(read_changes(file))
    latest: dict[str, deque[example.Visit]] = defaultdict(deque)
    expected = []
    for visit in dict.fromkeys(map(example.visit_of, changes)):
        others = latest[visit.folder]
        while others and visit.ts - others[0].ts > example.HOUR:
            others.popleft()
        both = [sorted((other, visit), key=lambda one: one.author) for other in others]
        expected += [(one, two) for one, two in both if one.author < two.author]
        others.append(visit)
    with ActorSystem() as system:
        run = system.run(example.pairs)
        run.send("changes", changes)
        assert Counter(run.finish(timeout=120)) == Counter(expected)
    assert len(expected) == 1579
