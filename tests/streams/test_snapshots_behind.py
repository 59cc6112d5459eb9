"""Snapshots that are encoded while rows flow: they have the states of the cut."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.core.threads.interpreter import has_gil
from callboard.streams import Graph, Run, RunTimeout, Snapshot, SnapshotStore, entry
from callboard.streams.programs.saved import Columns
from callboard.streams.running.snapshotting import Snapshotting
from callboard.streams.snapshots.cut import Cut
from callboard.streams.snapshots.snapshot import state_codec
from callboard.testing import ManualSystem
from tests.streams.functions import Functions, Running

WAIT = 60


def kept(rows: list[int], row: int) -> list[int]:
    rows.append(row)  # in place
    return rows


def grouped(groups: dict[int, Any], row: int) -> dict[int, Any]:
    groups.setdefault(row % 2, ([], {"last": None}))[0].append(row)
    groups[row % 2][1]["last"] = {row}
    return groups


def nested(rows: list[list[int]], row: int) -> list[list[int]]:
    if rows:
        rows[-1][0] += row
    return [*rows[-2:], [row]]


def streams() -> list[Any]:
    rows = entry("rows")
    keyed = rows.key_by(lambda row: row % 5, partitions=3)
    return [
        rows.fold([], kept),
        keyed.fold([], kept),
        keyed.fold({}, grouped),
        keyed.fold([], nested),
        keyed.scan([], lambda rows, row: [*rows, row][-3:]),
        keyed.scan((0, 0), lambda pair, row: (pair[0] + 1, row)),
        keyed.stateful(Running, Functions(2)),
    ]


@pytest.mark.parametrize("which", range(len(streams())))
@given(
    before=st.lists(st.integers(0, 30), max_size=30),
    behind=st.lists(st.integers(0, 30), max_size=30),
    again=st.lists(st.integers(0, 30), max_size=5),
)
def test_rows_behind_the_cut_leave_no_trace_in_it(
    which: int, before: list[int], behind: list[int], again: list[int]
) -> None:
    graph: Graph[Any] = streams()[which].collect()
    expected = streams()[which].collect().run_sequentially({"rows": [*before, *again]})
    with ManualSystem() as system:
        run = system.run(graph)
        run.send("rows", before)
        first = run._work.snapshot()
        cut = run._work.cut(state_codec())
        run.send("rows", behind)
        other = run._work.cut(state_codec())
        run.send("rows", behind)
        saved = [cut.encoded(0), other.encoded(0)]
        run.cancel()
    for snapshot, rows in ((first, before), (saved[0], before), (saved[1], [*before, *behind])):
        with ManualSystem() as system:
            run = system.run(graph, restore=Snapshot.from_bytes(snapshot.to_bytes()))
            run.send("rows", again)
            got = run.finish()
        if rows is before:
            assert got == expected


def test_values_can_wait_that_nobody_else_can_change() -> None:
    other: list[int] = []
    waits = has_gil()
    makes: list[tuple[Callable[[], Any], bool]] = [
        (lambda: 1, True),
        (lambda: ("a", (2.5, None)), True),
        (lambda: [1, [2], {"k": {3}}], waits),
        (lambda: ([1],), waits),
        (lambda: other, False),
        (lambda: [other], False),
        (lambda: {"k": [other]}, False),
        (lambda: {(1, 2): [3]}, waits),
        (lambda: {1, frozenset({2})}, waits),
        (object, False),
        (lambda: [object()], False),
    ]
    for make, can in makes:
        assert Columns([[make()]], refs=1).can_wait() is can, make()
    assert Columns([[1, ("a", 2)]]).can_wait()
    assert not Columns([[[1]]]).can_wait()


class Behind:
    """Snapshots of a run that stay behind: they are cut, and encoded when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cut, self.go_on = threading.Event(), threading.Event()
        encoded = Cut.encoded

        def later(cut: Cut, pause: float) -> Snapshot:
            if threading.current_thread().name == "behind":
                self.cut.set()
                assert self.go_on.wait(WAIT)
            return encoded(cut, pause)

        monkeypatch.setattr(Cut, "encoded", later)

    def of(self, run: Run[Any], got: list[Snapshot]) -> threading.Thread:
        def snap() -> None:
            got.append(run.snapshot())

        thread = threading.Thread(target=snap, name="behind")
        thread.start()
        assert self.cut.wait(WAIT)
        return thread


def test_a_snapshot_waits_until_the_one_before_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else states would be noted for the later one alone, and change under the earlier one."""
    behind = Behind(monkeypatch)
    nothing: list[int] = []
    graph: Graph[Any] = entry("rows").key_by(lambda row: row[0]).fold(nothing, second).collect()
    got: list[Snapshot] = []
    with ActorSystem(workers=1) as system:
        run = system.run(graph)
        run.send("rows", [(key, 0) for key in range(5)])
        thread = behind.of(run, got)
        with pytest.raises(RunTimeout, match=r"another snapshot of .* is being encoded"):
            run.snapshot(timeout=0.01)
        run.send("rows", [(key, 1) for key in range(5)])
        run._work.waiting.for_all()
        behind.go_on.set()
        thread.join(WAIT)
        run.cancel()
    with ActorSystem(workers=1) as system:
        assert system.run(graph, restore=got[0]).finish(WAIT) == [(key, [0]) for key in range(5)]


def test_a_snapshot_is_taken_while_the_one_before_is_written(tmp_path: Path) -> None:
    writing, go_on, encoded = threading.Event(), threading.Event(), threading.Event()

    class Slow(SnapshotStore):
        def _save(self, snapshot: Snapshot) -> None:
            if not writing.is_set():
                writing.set()
                assert go_on.wait(WAIT)
            super()._save(snapshot)

    class Encoded(Running):
        def snapshot(self) -> Any:
            if writing.is_set():
                encoded.set()
            return super().snapshot()

    graph: Graph[Any] = entry("rows").stateful(Encoded, Functions(2)).collect()
    with ActorSystem(workers=1) as system:
        run = system.run(graph, restore=Slow(tmp_path))
        threads = [threading.Thread(target=run.snapshot, kwargs={"timeout": WAIT}) for _ in "ab"]
        threads[0].start()
        assert writing.wait(WAIT)
        run.send("rows", [1])
        threads[1].start()
        assert encoded.wait(WAIT)
        go_on.set()
        for thread in threads:
            thread.join(WAIT)
        assert [Snapshot.load(path).position for path in SnapshotStore(tmp_path)._paths()] == [
            {"rows": 1},
            {"rows": 0},
        ]
        run.cancel()


def test_a_snapshot_is_not_written_after_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, go_on = threading.Event(), threading.Event()
    write = Snapshotting._write

    def later(snapshotting: Snapshotting, *snapshot: Any) -> None:
        if threading.current_thread().name == "behind":
            encoded.set()
            assert go_on.wait(WAIT)
        write(snapshotting, *snapshot)

    monkeypatch.setattr(Snapshotting, "_write", later)
    with ActorSystem(workers=1) as system:
        run = system.run(entry("rows").collect(), restore=SnapshotStore(tmp_path))
        thread = threading.Thread(target=run.snapshot, name="behind")
        thread.start()
        assert encoded.wait(WAIT)
        run.send("rows", [1])
        run.snapshot()
        go_on.set()
        thread.join(WAIT)
        (path,) = SnapshotStore(tmp_path)._paths()
        assert Snapshot.load(path).position == {"rows": 1}
        run.cancel()


def second(rows: list[int], row: tuple[int, int]) -> list[int]:
    return kept(rows, row[1])


def endless(rows: list[Any], row: tuple[int, int]) -> list[Any]:
    """Put the state of key 9 into itself, twice."""
    if row[0] == 9 and not rows:
        rows += [rows, rows]
    return rows


def test_a_state_that_contains_itself_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = Behind(monkeypatch)
    nothing: list[Any] = []
    graph: Graph[Any] = entry("rows").key_by(lambda row: row[0]).fold(nothing, endless).collect()
    got: list[Snapshot] = []
    with ActorSystem(workers=1) as system:
        run = system.run(graph)
        run.send("rows", [(0, 0)])
        thread = behind.of(run, got)
        run.send("rows", [(9, 1), (9, 2), (9, 3)])
        run._work.waiting.for_all()
        behind.go_on.set()
        thread.join(WAIT)
        run.cancel()
    with ActorSystem(workers=1) as system:
        assert system.run(graph, restore=got[0]).finish(WAIT) == [(0, [])]
