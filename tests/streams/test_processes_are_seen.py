"""Worker processes in statistics, `top`, metrics and traces."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry
from rich.console import Console

from callboard import ActorSystem
from callboard.nets import box
from callboard.observing import FlightRecorder, dump_trace, record_trace
from callboard.observing.prometheus import SystemCollector
from callboard.observing.screen import draw
from callboard.observing.top_frames import frame_of
from callboard.observing.tracing.traces import Traces
from callboard.observing.watching import SystemView
from callboard.streams import entry
from tests.observing.reading import read
from tests.streams.in_processes import process_of, run, tripled

pytestmark = pytest.mark.usefixtures("importable")

BUSY = 0.05


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem("shop", processes=1) as made:
        yield made


@box("(number) -> (half)")
def halved(number: int) -> float:
    return number / 2


def busy(row: bytes) -> bytes:
    """Take some processor time."""
    end = time.process_time() + BUSY
    while time.process_time() < end:
        pass
    return row[:1000]


def test_rounds_bytes_and_processor_time_are_counted(system: ActorSystem) -> None:
    made = system.run(entry("rows", bytes).map(busy).collect(), batch_size=1)
    made.send("rows", [bytes(100_000)] * 4)
    made.finish(60)
    (one,) = system.statistics().processes
    assert (one.name, one.done, one.waiting, one.ends) == ("shop-process-0", 4, 0, 0)
    assert one.busy >= 4 * BUSY
    assert 400_000 < one.sent < 500_000
    assert 4_000 < one.received < 10_000
    assert one.pid != os.getpid()


def test_statistics_name_the_process_in_their_text(system: ActorSystem) -> None:
    run(system, entry("rows", int).map(tripled).collect(), [1])
    statistics = system.statistics()
    assert "shop-process-0" in str(statistics)
    assert "shop-process-0" in statistics._repr_html_()


def test_counts_outlive_a_process_that_ends(system: ActorSystem) -> None:
    graph = entry("rows", int).map(tripled).map(process_of).collect()
    (killed,) = run(system, graph, [1])
    (before,) = system.statistics().processes
    os.kill(killed, signal.SIGKILL)
    (replaced,) = run(system, graph, [1])
    (after,) = system.statistics().processes
    assert (after.ends, after.pid) == (1, replaced)
    assert after.done > before.done
    assert after.sent > before.sent
    assert after.received > before.received
    assert after.busy >= before.busy


def test_top_shows_load_and_bytes_since_the_last_look(system: ActorSystem) -> None:
    graph = entry("rows", bytes).map(busy).collect()
    run(system, graph, [b"first"])
    view = SystemView(system._runtime)
    before = view.look()
    run(system, graph, [bytes(100_000)])
    frame = frame_of(before, view.look())
    (processes,) = frame.runs
    assert processes.operators == ()
    (row,) = processes.processes
    assert row.name == "shop-process-0"
    assert row.rate * frame.seconds == pytest.approx(1)
    assert row.load * frame.seconds >= BUSY
    assert 100_000 < row.sent * frame.seconds < 110_000
    assert row.words.endswith("has no rounds")
    console = Console(width=200)
    with console.capture() as shown:
        console.print(draw(frame, "load", stacks=False))
    (line,) = [line for line in shown.get().splitlines() if line.startswith("shop-process-0")]
    assert f"{row.load:.0%}" in line


def test_processes_have_metrics(system: ActorSystem) -> None:
    registry = CollectorRegistry()
    registry.register(SystemCollector(system))
    run(system, entry("rows", int).map(tripled).collect(), [1])
    page = generate_latest(registry).decode()
    labels = '{process="shop-process-0",system="shop"}'
    assert f"callboard_process_done_total{labels} 1.0" in page
    assert f"callboard_process_ends_total{labels} 0.0" in page
    for name in ("busy_seconds_total", "sent_bytes_total", "received_bytes_total", "waiting"):
        assert f"callboard_process_{name}{labels}" in page


def test_a_trace_has_a_track_for_each_process_with_a_slice_for_each_round(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    rows = entry("rows", int)
    stateless = rows.map(tripled, name="triple").map(process_of, name="number").collect()
    keyed = rows.key_by(lambda row: row % 10).scan(0, max, name="largest").collect()
    with ActorSystem("shop", processes=2, monitoring="times") as system:
        run(system, stateless, range(10))  # not recorded
        begun = time.monotonic_ns()
        with record_trace(system, path):
            processes = run(system, stateless, range(1000), batch_size=10)
            run(system, keyed, range(1000), batch_size=100)
        ended = time.monotonic_ns()
        run(system, stateless, range(10))
    found = read(path)
    tracks = [one for one in found.slices if one.track.startswith("shop-process-")]
    assert len({one.track for one in tracks if one.name == "triple + number"}) == len(
        set(processes)
    )
    assert {one.category for one in tracks} == {"operator"}
    for name in ("triple + number", "largest"):
        assert sum(one.amount for one in tracks if one.name == name) == 1000
    assert all(begun < one.begin <= one.end < ended for one in tracks)
    for track in {one.track for one in tracks}:
        ordered = sorted(one for one in tracks if one.track == track)
        ordered.sort(key=lambda one: one.begin)
        assert all(one.end <= other.begin for one, other in itertools.pairwise(ordered))


def test_boxes_of_nets_have_slices_and_a_flight_recorder_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    recorder = FlightRecorder(seconds=600)
    with ActorSystem("shop", processes=1, trace=recorder) as system:
        with system.run(halved) as made:
            made.send({"number": number} for number in range(100))
            made.finish(60)
        dump_trace(system, path)
    slices = [one for one in read(path).slices if one.track == "shop-process-0"]
    assert {one.name for one in slices} == {"/halved"}
    assert sum(one.amount for one in slices) == 100


def test_rounds_are_timed_only_while_a_trace_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[object] = []
    monkeypatch.setattr(Traces, "note_work", lambda _, one: noted.append(one))
    graph = entry("rows", int).map(tripled).collect()
    with ActorSystem("timed", processes=1, monitoring="times") as timed:
        run(timed, graph, [1])
        assert noted == []
        with record_trace(timed, tmp_path / "run.txt"):
            run(timed, graph, [1])
        assert len(noted) == 1
        run(timed, graph, [1])
        assert len(noted) == 1
