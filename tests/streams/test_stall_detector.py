"""Stalls: operators that wait for others, which have no worker, are reported by name."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.core.threads.interpreter import has_gil
from callboard.scheduling.flow.threading_models import Model
from callboard.streams import Graph, RunTimeout, entry
from callboard.streams.running import stall_detector

WORKERS = [1, 4] if has_gil() else [1]  # workers that may run the operators one at a time


class Log(logging.Handler):
    """Keeps what is logged, and opens a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.gate = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.gate.set()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    monkeypatch.setattr(stall_detector, "_LONG", 0.0)
    log = Log()
    logger = logging.getLogger("callboard")
    logger.addHandler(log)
    yield log
    logger.removeHandler(log)
    log.gate.set()


def graph(gate: threading.Event) -> Graph[Any]:
    def wait_at_the_gate(row: int) -> int:
        assert gate.wait(60)
        return row

    rows = entry("rows", int)
    return Graph(
        rows.map(abs, name="next").collect(name="next, collected"),
        rows.map(wait_at_the_gate).collect(name="waiting, collected"),
    )


@pytest.mark.parametrize("workers", WORKERS)
def test_an_operator_that_blocks_others_is_logged_with_its_stack(said: Log, workers: int) -> None:
    with ActorSystem(workers=workers) as system:
        run = system.run(graph(said.gate), batch_size=1)
        run.send("rows", [1, 2, 3])
        result = run.finish(timeout=60)  # the gate opens when it is said
    assert result == {"next, collected": [1, 2, 3], "waiting, collected": [1, 2, 3]}
    (text,) = said.texts
    assert "at_work='wait_at_the_gate'" in text
    assert "waiting='next'" in text
    assert "in wait_at_the_gate\n" in text


@pytest.mark.parametrize("workers", WORKERS)
def test_a_timeout_names_the_operator_that_is_in_the_middle_of_a_row(workers: int) -> None:
    gate, entered = threading.Event(), threading.Event()

    def enter(row: int) -> int:
        entered.set()
        assert gate.wait(60)
        return row

    rows = entry("rows", int)
    ends = Graph(rows.map(abs, name="next").collect(name="a"), rows.map(enter).collect(name="b"))
    with ActorSystem(workers=workers) as system:
        run = system.run(ends, batch_size=1, window=4)
        run.send("rows", range(4))
        assert entered.wait(60)
        wanted = "'(next|enter)' has about . rows? waiting, and 'enter' is in the middle of a row"
        with pytest.raises(RunTimeout, match=wanted):
            run.send("rows", [4], timeout=0.0)
        with pytest.raises(RunTimeout, match=wanted):
            run.finish(timeout=0.0)
        gate.set()
        assert run.finish(timeout=60) == {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}


def waiting_for_another(passed: threading.Semaphore) -> Graph[Any]:
    """Make a graph in which each row of one operator waits for another operator's."""

    def wait(row: int) -> int:
        assert passed.acquire(timeout=60)
        return row

    def let_pass(row: int) -> int:
        passed.release()
        return row

    source = entry("rows", int)
    return Graph(
        source.map(let_pass).collect(name="b"), source.map(wait, name="wait").collect(name="a")
    )


@pytest.mark.parametrize("model", ["dynamic", "assigned"])
@pytest.mark.parametrize("workers", [1, 4])
def test_an_operator_that_waits_for_another_gets_on(said: Log, workers: int, model: Model) -> None:
    passed = threading.Semaphore(0)
    with ActorSystem(workers=workers) as system:
        run = system.run(waiting_for_another(passed), threading=model, batch_size=1, window=4)
        for row in range(20):
            run.send("rows", [row], timeout=60)
        assert run.finish(timeout=60) == {"a": list(range(20)), "b": list(range(20))}
