"""Keys whose objects are idle are dropped at a watermark, and made again later."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import Watermark, entry


class Counting:
    """Counts the rows of a key."""

    def __init__(self) -> None:
        self.rows = 0

    def receive(self, row: int) -> list[int]:
        self.rows += 1
        return [self.rows]


class Idle(Counting):
    def is_idle(self) -> bool:
        return True


class IdleAndTimed(Idle):
    def on_watermark(self, time: int) -> None: ...


class Broken(Counting):
    def is_idle(self) -> bool:
        raise OSError("nobody knows")


keyed = entry("rows").key_by(abs, partitions=3)
ROWS = [1, 1, 2, Watermark(5), 1, 2]


@pytest.mark.parametrize("cls", [Idle, IdleAndTimed])
@pytest.mark.parametrize("shared", [False, True])
def test_an_idle_key_is_dropped_at_a_watermark(cls: type[Counting], shared: bool) -> None:
    graph = keyed.stateful(cls, releases_gil=shared).collect()
    assert graph.run_sequentially({"rows": ROWS}) == [1, 2, 1, 1, 1]
    with ActorSystem(workers=2) as system:
        assert [*system.run(graph).results(ROWS)] == [1, 2, 1, 1, 1]


def test_an_object_without_is_idle_is_kept() -> None:
    assert keyed.stateful(Counting).collect().run_sequentially({"rows": ROWS}) == [1, 2, 1, 3, 2]


def test_an_object_without_a_key_is_kept() -> None:
    graph = entry("rows").stateful(Idle).collect()
    assert graph.run_sequentially({"rows": ROWS}) == [1, 2, 3, 4, 5]


def test_an_is_idle_that_raises_is_an_error_at_the_watermark() -> None:
    graph: Any = keyed.stateful(Broken, errors="side")
    failures = graph.failures.map(lambda failure: str(failure.error)).collect()
    assert failures.run_sequentially({"rows": ROWS}) == ["nobody knows"] * 2
