"""What a run shows of itself: traces, statistics, pictures and its progress."""

from __future__ import annotations

import io
from time import perf_counter
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.nets import RecordError, box, star, sync
from callboard.nets import filter as filtering
from callboard.nets.running.reports import NetProgress
from tests.nets.running.gate import TIMEOUT, box_of, rows

double = box(lambda x: 2 * x, "(x) -> (y)", name="double")
count_down = filtering("{<n>} -> {<n=n-1>}")
positive = box(lambda x: x, "(x) -> (y)", name="positive")


def test_a_trace_has_each_step(system: ActorSystem) -> None:
    run = system.run(double >> filtering("{y} -> {z=y}; {w=y}"))
    trace = run.trace({"x": 1}, TIMEOUT)
    assert trace.outputs == [{"z": 2}, {"w": 2}]
    assert trace.paths[0] == "/double"
    assert [step.what for step in trace.steps].count("left") == 2
    assert trace.steps[0].record == {"x": 1}
    assert all(a.seconds <= b.seconds for a, b in zip(trace.steps, trace.steps[1:], strict=False))
    assert "/double" in str(trace)
    with pytest.raises(RecordError):
        run.trace({"z": 1}, TIMEOUT)
    assert run.finish(TIMEOUT) == []


def test_a_trace_tells_kept_from_ended_records(system: ActorSystem) -> None:
    run = system.run(sync("{a}", "{b}") | filtering("{c} ->"))
    assert [step.what for step in run.trace({"a": 1}, TIMEOUT).steps] == ["came", "kept"]
    assert [step.what for step in run.trace({"c": 1}, TIMEOUT).steps] == ["came", "ended"]


def test_statistics_count(system: ActorSystem) -> None:
    run = system.run(star(count_down, "{<n>} if <n == 0>") >> box(abs, "(<n>) -> (y)"))
    run.send(rows([3, 1, 2], "n"), timeout=TIMEOUT)
    seen = run.statistics()
    assert (seen.sent, seen.put_out, seen.elsewhere, seen.in_cells) == (3, 0, 0, 0)
    assert seen.hops >= 3 + 6 + 3
    [filters] = [place for path, place in seen.places.items() if place["made"] == 3]
    assert filters == {"records": 6, "entities": 3, "made": 3}
    assert seen.places["/abs"]["records"] == 3
    run.finish(TIMEOUT)
    assert run.statistics().put_out == 3


TIMED = ["here", "generator", "threads", "async", "async generator"]


@pytest.mark.parametrize("kind", TIMED)
def test_boxes_are_timed(system: ActorSystem, kind: str) -> None:
    def spin(x: int) -> int:
        until = perf_counter() + 0.002
        while perf_counter() < until:
            pass
        return x

    run = system.run(box_of(kind, spin, spin, name="spin"))
    run.send(rows(range(5)), timeout=TIMEOUT)
    run.finish(TIMEOUT)
    seen = run.statistics().places["/spin"]
    assert (seen["calls"], seen["tries"], seen["failures"], seen["waiting"]) == (5, 5, 0, 0)
    assert seen["mean"] >= (0.004 if "generator" in kind else 0.002)
    assert seen["worst"] >= seen["mean"]
    assert seen["busy"] == pytest.approx(5 * seen["mean"])


@pytest.mark.parametrize("errors", ["skip", "variant"])
@pytest.mark.parametrize("kind", TIMED)
def test_tries_and_failures_are_counted(system: ActorSystem, kind: str, errors: Any) -> None:
    def odd(x: int) -> int:
        if x % 2:
            raise ValueError(x)
        return x

    retries = 0 if kind in ("here", "generator") else 2
    net = box_of(kind, odd, name="odd", errors=errors, retries=retries, backoff=0.0)
    run = system.run(net)
    run.send(rows(range(6)), timeout=TIMEOUT)
    run.finish(TIMEOUT)
    seen = run.statistics().places["/odd"]
    assert (seen["calls"], seen["tries"], seen["failures"]) == (6, 6 + 3 * retries, 3)


def test_a_picture_of_a_run_has_its_counts(system: ActorSystem) -> None:
    run = system.run(star(positive | box(lambda y: 0, "(y) -> (z)", name="zero"), "{z}"))
    run.send(rows([1, 2]), timeout=TIMEOUT)
    picture = run.mermaid()
    assert picture.startswith("flowchart")
    assert "positive" in picture
    assert "2 records" in picture
    run.cancel()


def test_progress_is_a_line(system: ActorSystem, capsys: pytest.CaptureFixture[str]) -> None:
    with system.run(double) as run, run.progress(every=100):
        run.send(rows(range(7)), timeout=TIMEOUT)
    assert "7 records sent" in capsys.readouterr().err
    with pytest.raises(ValueError, match="every"):
        run.progress(every=0)


def test_progress_on_a_terminal_redraws_its_line(system: ActorSystem) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file = Terminal()
    with system.run(double) as run, NetProgress(run.statistics, 100.0, file):
        run.send({"x": 1}, timeout=TIMEOUT)
    assert file.getvalue().startswith("\r")
    assert "1 records sent" in file.getvalue()
