"""The servers of the tests of shards: they count which rows came, and how often."""

from __future__ import annotations

from collections import Counter
from typing import Any

from callboard import ActorSystem
from callboard.remote import PersistentActor


class Seen(PersistentActor):
    """Counts the numbers of rows by batch: each is to come once."""

    snapshot_every = 3

    def __init__(self) -> None:
        self.batches: dict[int, Counter[int]] = {}

    def apply(self, row: Any) -> None:
        self.batches.setdefault(self.key.batch, Counter()).update(row.column("id").to_pylist())

    def answer(self, query: Any) -> Any:
        return dict(self.batches.get(query, {}))

    def snapshot(self) -> Any:
        return {batch: dict(counts) for batch, counts in self.batches.items()}

    def restore(self, state: Any) -> None:
        self.batches = {batch: Counter(counts) for batch, counts in state.items()}


def build(system: ActorSystem) -> dict[str, Any]:
    return {"seen": system.spawn(Seen)}
