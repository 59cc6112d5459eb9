"""Processes of pools in what `top` and the dashboard show."""

from __future__ import annotations

from pathlib import Path

from callboard import ActorSystem
from callboard.observing.pictures import picture_of
from callboard.observing.watching import SystemView
from tests.pools.workers import Work


def test_processes_of_pools_have_reasons(tmp_path: Path) -> None:
    with ActorSystem("shop", workers=1) as system:
        pool = system.pool(Work, str(tmp_path), processes=1, name="work")
        pool.ask(1).result(60)
        system.drain(60)
        (one,) = picture_of(None, SystemView(system._runtime).look()).runs
        assert one.title == "pool /work"
        assert [(row.name, row.words) for row in one.operators] == [
            ("/work/1", system.waits().of("/work/1").words)
        ]
