"""Processes of pools in what `top` and the dashboard show."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from callboard import ActorSystem
from callboard.observing.top_frames import ProcessRow, frame_of
from callboard.observing.watching import SystemView
from callboard.remote.errors import ConnectionLost
from tests.pools.workers import Work
from tests.remote.conftest import eventually


def answered(pool: Any) -> int:
    """Ask for the process's number until it is answered: a message is lost with a connection."""
    while True:
        with contextlib.suppress(ConnectionLost):
            return int(pool.ask("pid").result(60))


def test_a_process_that_has_ended_is_counted_at_its_place(tmp_path: Path) -> None:
    with ActorSystem("shop", workers=1) as system:
        pool = system.pool(Work, str(tmp_path), processes=1, name="work")
        before = pool.ask("pid").result(60)
        pool.tell("die")
        view = SystemView(system._runtime)

        def process() -> ProcessRow:
            (run,) = frame_of(None, view.look()).runs
            (one,) = run.processes
            return one

        eventually(lambda: process().ends == 1, "it has ended")
        now = answered(pool)
        found = process()
        assert (found.name, found.pid, found.waiting) == ("/work/1", now, 0)
        assert now != before


def test_processes_of_pools_have_reasons(tmp_path: Path) -> None:
    with ActorSystem("shop", workers=1) as system:
        pool = system.pool(Work, str(tmp_path), processes=1, name="work")
        pool.ask(1).result(60)
        system.drain(60)
        (one,) = frame_of(None, SystemView(system._runtime).look()).runs
        assert one.title == "pool /work"
        assert [(row.name, row.words) for row in one.processes] == [
            ("/work/1", system.why_waiting().of("/work/1").words)
        ]


def test_messages_to_processes_and_their_bytes_are_counted(tmp_path: Path) -> None:
    with ActorSystem("shop", workers=1) as system:
        pool = system.pool(Work, str(tmp_path), processes=1, name="work")
        pool.ask("x" * 10_000).result(60)
        pool.tell_many(range(10))
        system.drain(60)
        (one,) = system.statistics().processes
        assert (one.name, one.done, one.waiting, one.ends) == ("/work/1", 11, 0, 0)
        assert 10_000 < one.sent < 11_000
        assert one.received > 0
        assert one.busy > 0
