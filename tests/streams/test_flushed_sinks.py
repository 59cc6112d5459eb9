"""A sink with `put`, `flush` and `close`: flushed after the last row of a run that succeeds."""

from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import Graph, Tally, entry
from callboard.streams.errors import RunError

THREADING = ["dynamic", "manual", "dedicated", "assigned"]


class Sink:
    """Notes what is called; `broken` methods raise."""

    def __init__(self, *broken: str) -> None:
        self.broken = broken
        self.calls: list[Any] = []

    def put(self, row: Any) -> None:
        self._note("put", row)

    def flush(self) -> None:
        self._note("flush", "flush")

    def close(self) -> None:
        self._note("close", "close")

    def _note(self, method: str, call: Any) -> None:
        self.calls.append(call)
        if method in self.broken:
            raise OSError(f"no {method}")


def into(sink: Sink) -> Graph[Any]:
    return entry("a").map(lambda row: row + 1).to(sink)


def play(sink: Sink, threading: Any) -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(into(sink), threading=threading, batch_size=2)
        run.send("a", range(5))
        run.finish(timeout=60.0)


@pytest.mark.parametrize("threading", THREADING)
def test_it_is_flushed_after_the_last_row_and_then_closed(threading: Any) -> None:
    sink = Sink()
    play(sink, threading)
    assert sink.calls == [1, 2, 3, 4, 5, "flush", "close"]


@pytest.mark.parametrize("threading", THREADING)
def test_a_flush_that_raises_fails_the_run_and_the_sink_is_closed(threading: Any) -> None:
    sink = Sink("flush")
    with pytest.raises(RunError) as raised:
        play(sink, threading)
    assert str(raised.value.__cause__) == "no flush"
    assert sink.calls == [1, 2, 3, 4, 5, "flush", "close"]


def test_a_flush_that_raises_fails_a_sequential_run_too() -> None:
    sink = Sink("flush")
    with pytest.raises(RunError):
        into(sink).run_sequentially([("a", [0, 1, 2])])
    assert sink.calls == [1, 2, 3, "flush", "close"]


def test_a_flush_that_raises_is_counted_where_errors_are_skipped() -> None:
    sink, tally = Sink("flush"), Tally()
    graph = entry("a").map(lambda row: row + 1).to(sink, errors="skip")
    graph.run_sequentially([("a", [0])], tally=tally)
    assert sink.calls == [1, "flush", "close"]
    assert [failure.operator for failure in tally.failures] == ["put"]


def test_a_run_without_rows_flushes_too() -> None:
    sink = Sink()
    into(sink).run_sequentially([])
    assert sink.calls == ["flush", "close"]


def test_a_sink_that_refused_a_row_is_closed_and_not_flushed() -> None:
    sink = Sink("put")
    with pytest.raises(RunError):
        play(sink, "dynamic")
    assert sink.calls == [1, "close"]


def test_the_sink_of_a_cancelled_run_is_closed_and_not_flushed() -> None:
    sink = Sink()
    with ActorSystem() as system:
        run = system.run(into(sink), batch_size=1)
        run.send("a", range(5))
        run.cancel()
    assert sink.calls[-1] == "close"
    assert "flush" not in sink.calls
