"""A sink with `put`, `flush` and `close`: flushed after the last row of a run that succeeds."""

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem, Future
from callboard.streams import Graph, RowCounts, StreamError, entry
from callboard.streams.errors import GraphError, RunEnded, RunError

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
    sink, counts = Sink("flush"), RowCounts()
    graph = entry("a").map(lambda row: row + 1).to(sink, errors="skip")
    graph.run_sequentially([("a", [0])], row_counts=counts)
    assert sink.calls == [1, "flush", "close"]
    assert [failure.operator for failure in counts.failures] == ["put"]


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


@pytest.mark.parametrize("method", ["put", "flush", "close"])
def test_an_async_method_of_a_sink_is_refused_when_the_graph_is_made(method: str) -> None:
    async def never(*_: Any) -> None:
        pass

    sink = Sink()
    setattr(sink, method, never)
    with pytest.raises(GraphError, match=rf"a sink's {method}\(\): expected a plain function, got"):
        into(sink)


@pytest.mark.parametrize("threading", THREADING)
def test_a_flush_to_be_awaited_fails(threading: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [Future(), asyncio.sleep(0)]
    while answers:
        sink = Sink()
        monkeypatch.setattr(sink, "flush", answers.pop)
        with pytest.raises(StreamError) as raised:
            play(sink, threading)
        assert isinstance(raised.value.__cause__, TypeError)
        assert "never awaited" in str(raised.value.__cause__)
        assert sink.calls[-1] == "close"


def test_a_sinks_class_in_the_place_of_an_object_is_refused() -> None:
    with pytest.raises(
        GraphError, match=r"put\(\) and close\(\) must be an object, got its class: <cl"
    ):
        entry("a").to(Sink)


def test_an_error_of_flush_names_no_row() -> None:
    with pytest.raises(StreamError) as raised:
        into(Sink("flush")).run_sequentially([("a", [0, 1, 2])])
    assert str(raised.value) == "operator 'put' failed in flush(), after 3 inputs"
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.row, again.serial) == (str(raised.value), None, 3)
    assert str(raised.value._again()) == str(raised.value)


@pytest.mark.parametrize("threading", THREADING)
def test_the_end_of_the_system_ends_a_run_that_was_not_finished(
    threading: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink, path = Sink(), tmp_path / "rows.txt"
    rows = entry("a")
    with ActorSystem(workers=2) as system:
        run = system.run(Graph(rows.to(sink), rows.to(path)), threading=threading)
        run.send("a", [1, 2, 3])
    assert sink.calls == [1, 2, 3, "close"]  # without flush(): nobody has said that this is all
    assert path.read_text() == "1\n2\n3\n"
    assert repr(run).startswith("<Run ended")
    assert "a run was never finished" in caplog.text
    with pytest.raises(RunEnded):
        run.finish()


def test_stop_closes_a_runs_sink_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()
    system = ActorSystem()
    run = system.run(into(sink))
    run.send("a", [1])
    system.stop()
    assert sink.calls[-1] == "close"
    assert "never finished" not in caplog.text


async def test_async_with_closes_the_sink_of_its_run(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()
    async with ActorSystem() as system:
        run = system.run(into(sink))
        await run.asend("a", [1])
    assert sink.calls == [2, "close"]
    assert "a run was never finished" in caplog.text


def test_a_run_without_rows_ends_with_its_system(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()
    with ActorSystem() as system:
        run = system.run(into(sink))
    assert (sink.calls, repr(run)) == (["close"], "<Run ended, 0 of 0 rounds done>")
    assert "never finished" not in caplog.text


class Ending(Sink):
    """Raises in close()."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def close(self) -> None:
        super().close()
        raise self.error


@pytest.mark.parametrize("error", [SystemExit(2), asyncio.CancelledError(), GeneratorExit()])
def test_errors_of_close_are_logged(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    sinks = [Ending(error), Sink()]
    rows = entry("a")
    graph = Graph(*(rows.to(sink) for sink in sinks))
    with ActorSystem() as system:
        run = system.run(graph)
        run.send("a", [1])
        assert run.finish(timeout=60) is None
    assert [sink.calls for sink in sinks] == [[1, "flush", "close"]] * 2
    assert "an operator failed to close" in caplog.text


def test_ctrl_c_in_close_is_raised_when_the_other_sinks_are_closed() -> None:
    sinks = [Ending(KeyboardInterrupt()), Sink()]
    rows = entry("a")
    graph = Graph(*(rows.to(sink) for sink in sinks))
    with ActorSystem() as system:
        run = system.run(graph)
        with pytest.raises(KeyboardInterrupt):
            run.finish(timeout=60)
    assert [sink.calls[-1] for sink in sinks] == ["close", "close"]
