"""Traces are read by Perfetto's schema, and their contents are counted."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    ConfigError,
    Supervision,
)
from callboard.observing import dump_trace, record_trace
from callboard.streams import entry
from tests.observing import text_traces
from tests.observing.actors import Box, Holder, Passage, Pinger
from tests.observing.reading import Slice, read
from tests.tokenless import tokenless

LEVELS = ["times", "mailboxes", "channels", "workers"]


def ping_pong(system: ActorSystem, rounds: int) -> list[ActorRef[Any]]:
    ping, pong = system.spawn(Pinger, name="ping"), system.spawn(Pinger, name="pong")
    ping.tell(pong)
    pong.tell(ping)
    ping.tell(rounds)
    system.drain(60)
    return [ping, pong]


def lie_apart(slices: list[Slice]) -> bool:
    """Tell whether slices of one track and depth do not overlap."""
    ordered = sorted(slices, key=lambda one: one.begin)
    return all(a.end <= b.begin for a, b in itertools.pairwise(ordered))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_trace_has_each_dispatch_once(level: str, workers: int, tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with (
        tokenless("net", workers=workers, monitoring=level) as system,
        record_trace(system, path) as trace,
    ):
        actors = ping_pong(system, 3000)
        system.spawn(Box, name="box").tell_many(range(5000))
        actors.append(system.find("/box"))
        system.drain(60)
        trace.close()
        counts = {
            ref.path: (ref.statistics().dispatches, ref.statistics().messages, ref._busy_ns)
            for ref in actors
        }
    found = read(path)
    assert found.process == "net"
    assert trace.lost == 0
    for name, (dispatches, messages, busy) in counts.items():
        slices = found.of(name)
        assert len(slices) == dispatches
        assert sum(one.amount for one in slices) == messages
        assert sum(one.end - one.begin for one in slices) == busy
    tracks = {one.track for one in found.slices}
    assert tracks <= {f"net-{i}" for i in range(workers)}
    for track in tracks:
        here = [one for one in found.slices if one.track == track]
        assert {one.depth for one in here} == {0}
        assert lie_apart(here)


def test_more_records_than_a_worker_keeps_are_all_written(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, quantum=1, monitoring="workers") as system:
        with record_trace(system, path) as trace:
            box = system.spawn(Box, name="box")
            box.tell_many(range(30_000))
            system.drain(60)
        dispatches = box.statistics().dispatches
    assert dispatches >= 30_000
    assert len(read(path).of("/box")) == dispatches
    assert trace.lost == 0


class Helper(Actor[Any]):
    """Fills a small mailbox, so that its worker runs the receiver within this dispatch."""

    def __init__(self, target: ActorRef[Any]) -> None:
        self.target = target

    def receive(self, message: Any) -> None:
        for _ in range(20):
            self.target.tell(message)


def test_a_dispatch_within_another_lies_inside_it(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="workers") as system:
        with record_trace(system, path):
            box = system.spawn(Box, name="box", mailbox=BoundedMailbox(2, "help"))
            helper = system.spawn(Helper, box, name="helper")
            helper.tell_many([0] * 50)
            system.drain(60)
        dispatches = helper.statistics().dispatches, box.statistics().dispatches
    found = read(path)
    outer, inner = found.of("/helper"), [one for one in found.of("/box") if one.depth]
    assert (len(outer), len(found.of("/box"))) == dispatches
    assert inner
    assert {one.depth for one in inner} == {1}
    assert lie_apart(inner)
    for one in inner:
        assert any(each.begin <= one.begin and one.end <= each.end for each in outer)


def test_waits_of_workers_are_slices_beside_the_dispatches(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="workers") as system:
        box = system.spawn(Box, name="box")
        system.drain(60)
        begun = system.statistics().workers[0].waits
        with record_trace(system, path):
            while system.statistics().workers[0].waits < begun + 2:
                box.ask(0).result(30)
            system.drain(60)
        waits = system.statistics().workers[0].waits
    found = read(path)
    idle = found.in_category("wait")
    assert {one.name for one in idle} == {"idle"}
    assert 1 <= len(idle) <= waits
    assert lie_apart(found.slices)


def test_the_length_of_a_mailbox_is_a_counter(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    options: dict[str, Any] = {"quantum": 2, "time_slice": 3600, "monitoring": "mailboxes"}
    with ActorSystem(workers=1, **options) as system:
        box, holder = system.spawn(Box, name="box"), system.spawn(Holder)
        system.drain(60)
        with record_trace(system, path):
            passage = Passage()
            holder.tell(passage)
            assert passage.entered.wait(30)
            box.tell_many(range(7))
            passage.leave.set()
            system.drain(60)
    counts = read(path).counters["queue of /box"]
    assert [count for _, count in counts] == [5, 3, 1, 0]
    assert counts == sorted(counts)


def test_failures_restarts_and_dead_letters_are_instants(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times") as system, record_trace(system, path):
        box = system.spawn(Box, name="box", supervision=Supervision("restart"))
        box.tell("fail")
        system.drain(60)
        box.stop()
        system.drain(60)
        box.tell(0)
        system.drain(60)
    assert read(path).texts() == [
        "dead letter to /box: failed",
        "failure of /box: ValueError",
        "restart of /box",
        "dead letter to /box: stopped",
    ]


def test_slices_of_operators_lie_in_the_dispatches_of_lanes(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    rows = entry("rows", int)
    graph = rows.map(abs, name="absolute").map(float, name="as float").collect()
    with ActorSystem(workers=1, monitoring="times") as system:
        with record_trace(system, path):
            run = system.run(graph, batch_size=10)
            run.send("rows", range(1000))
            assert run.finish(timeout=60) == list(map(float, range(1000)))
            system.drain(60)
        operators = {one.name: one for one in run.statistics().operators}
    found = read(path)
    slices = found.in_category("operator")
    taken: Counter[str] = Counter()
    for one in slices:
        taken[one.name] += one.amount
    assert taken["absolute"] == operators["absolute"].rows_in == 1000
    assert taken["as_float"] == operators["as float"].rows_in == 1000
    lanes = [one for one in found.in_category("dispatch") if "Lane" in one.name]
    assert {one.depth for one in slices} == {1}
    for one in slices:
        assert any(lane.begin <= one.begin and one.end <= lane.end for lane in lanes)


def test_text_has_the_same_dispatches(tmp_path: Path) -> None:
    path, other = tmp_path / "run.perfetto-trace", tmp_path / "run.txt"
    with ActorSystem("net", workers=1, monitoring="workers") as system:
        box = system.spawn(Box, name="box")
        system.drain(60)
        with record_trace(system, path), record_trace(system, other):
            box.tell_many(range(1000))
            system.drain(60)
            box.stop()
            system.drain(60)
            box.tell(0)
    found, lines = read(path), other.read_text().splitlines()
    boxes = [(one.end, one.amount) for one in found.of("/box")]
    assert boxes
    assert [(one.time, one.messages) for one in text_traces.dispatches(lines)] == boxes
    told = [line.split(" *** ")[1] for line in lines if " *** " in line and " net-0 " not in line]
    assert told == found.texts()


def test_a_system_can_be_traced_for_all_of_its_life(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, trace=path) as system:
        assert system.statistics().monitoring == "times"
        actors = ping_pong(system, 100)
    found = read(path)
    for ref in actors:
        assert len(found.of(ref.path)) == ref.statistics().dispatches
    assert not found.in_category("wait")
    with ActorSystem(workers=1, config={"trace": str(path), "monitoring": "workers"}) as system:
        ping_pong(system, 100)
    assert read(path).in_category("wait")


def test_a_trace_has_only_the_events_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times") as system:
        box = system.spawn(Box, name="box")
        box.ask(0).result(30)
        system.drain(60)
        before = box.statistics().dispatches
        with record_trace(system, path) as trace:
            box.ask(0).result(30)
            system.drain(60)
        during = box.statistics().dispatches
        box.ask(0).result(30)
        trace.close()  # again
        assert repr(trace) == f"<TraceFile {str(path)!r}, ended>"
    assert len(read(path).of("/box")) == during - before


def test_a_trace_ends_at_its_limit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, other = tmp_path / "run.perfetto-trace", tmp_path / "run.txt"
    with (
        ActorSystem(workers=1, quantum=1, monitoring="times") as system,
        record_trace(system, path, limit=500_000),
        record_trace(system, other, limit=500_000),
    ):
        box = system.spawn(Box, name="box")
        box.tell_many(range(50_000))
        system.drain(60)
    assert 0 < len(read(path).of("/box")) < 50_000
    assert path.stat().st_size <= 500_000
    assert text_traces.read(other)
    assert caplog.text.count("a trace is full, and ends here") == 2


def test_a_trace_of_a_burst_beyond_its_limit_has_the_events_that_fit(tmp_path: Path) -> None:
    path, other = tmp_path / "run.perfetto-trace", tmp_path / "run.txt"
    with (
        ActorSystem(workers=1, quantum=1, monitoring="times") as system,
        record_trace(system, path, limit=20_000),
        record_trace(system, other, limit=40_000),
    ):
        system.spawn(Box, name="box").tell_many(range(5_000))
        system.drain(60)
    assert 0 < len(read(path).of("/box")) < 5_000
    assert 10_000 < path.stat().st_size <= 20_000
    assert sum(one.path == "/box" for one in text_traces.read(other)) > 50


def test_a_full_disk_ends_a_trace_only(caplog: pytest.LogCaptureFixture) -> None:
    with ActorSystem(workers=1, monitoring="times") as system, record_trace(system, "/dev/full"):
        assert system.spawn(Box).ask(0).result(30) is None
    assert caplog.text.count("a trace could not be written; recording stops") == 1


def test_wrong_arguments_are_refused_at_the_call(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1) as system:
        with pytest.raises(CallboardError, match="keeps no records, because monitoring is off"):
            record_trace(system, path)
        with pytest.raises(CallboardError, match="has no flight recorder: make it with trace="):
            dump_trace(system, path)
    with ActorSystem(workers=1, monitoring="times") as system:
        with pytest.raises(ConfigError, match="the path of a file as a trace's path, got 3"):
            record_trace(system, 3)  # type: ignore[arg-type]
        with pytest.raises(
            ConfigError, match="the format of a trace must be one of perfetto, text"
        ):
            record_trace(system, path, format="xml")
        with pytest.raises(ConfigError, match="the limit of a trace must be a whole number"):
            record_trace(system, path, limit=0)
        with pytest.raises(FileNotFoundError):
            record_trace(system, tmp_path / "nowhere" / "run.perfetto-trace")
    with pytest.raises(FileNotFoundError):
        ActorSystem(workers=1, trace=tmp_path / "nowhere" / "run.perfetto-trace")
    with pytest.raises(ConfigError, match="path of a file as trace, or a FlightRecorder, got"):
        ActorSystem(workers=1, trace=True)  # type: ignore[arg-type]


def test_workers_that_have_ended_are_forgotten_and_their_dispatches_are_not(tmp_path: Path) -> None:
    path, other = tmp_path / "run.perfetto-trace", tmp_path / "run.txt"
    with (
        ActorSystem(workers=1, monitoring="times") as system,
        record_trace(system, path) as trace,
        record_trace(system, other),
    ):
        for number in range(60):
            box = system.spawn(Box, name=f"box-{number}", dedicated=True)
            worker = box.worker
            box.ask(0).result(30)
            box.stop()
            assert worker is not None
            assert worker.thread is not None
            worker.thread.join(30)
        assert len(trace._reader._next) <= 20
    found = read(path)
    names = {f"/box-{number}" for number in range(60)}
    assert {one.name for one in found.slices} == names
    assert {one.path for one in text_traces.read(other)} == names
    assert len({one.track for one in found.slices}) == 60


def test_a_forked_child_leaves_the_file_to_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    program = f"""
import os, sys
from callboard import Actor, ActorSystem
from callboard.observing import record_trace
class Box(Actor[int]):
    def receive(self, message: int) -> None:
        pass
with ActorSystem(workers=1, monitoring="times") as system:
    with record_trace(system, {str(path)!r}):
        system.spawn(Box, name="box").ask(0).result(30)
        system.drain(30)
        child = os.fork()
        if child:
            os.waitpid(child, 0)
    if not child:
        os._exit(0)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)
    assert sum(one.amount for one in read(path).of("/box")) == 1
