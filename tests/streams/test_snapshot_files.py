"""Snapshots in files and directories; errors of saving, reading and restoring."""

from __future__ import annotations

import asyncio
import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem, ConfigError, WouldBlock
from callboard.streams import (
    Graph,
    RunEnded,
    RunError,
    Snapshot,
    SnapshotError,
    SnapshotStore,
    entry,
)
from callboard.testing import ManualSystem

counts = entry("rows").count().collect()


def snapshot_of(graph: Graph[Any], rows: list[Any], **options: Any) -> Snapshot:
    with ManualSystem() as system:
        run = system.run(graph)
        run.send(graph.entries[0], rows)
        snapshot = run.snapshot(**options)
        run.cancel()
    return snapshot


def go_on(graph: Graph[Any], restore: Any, rows: list[Any]) -> Any:
    with ManualSystem() as system:
        run = system.run(graph, restore=restore)
        run.send(graph.entries[0], rows)
        return run.finish()


# --- files that sinks write -----------------------------------------------------------------------


def test_a_file_goes_on_where_it_was_and_loses_what_came_later(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("of an earlier run\n")
    graph = entry("rows").count().map(str).to(path)
    with ManualSystem() as system:
        run = system.run(graph)
        first = run.snapshot()
        run.send("rows", ["a", "b"])
        second = run.snapshot()
        run.send("rows", ["d", "e"])
        run.snapshot()  # until then they may be on their way
        run.cancel()
    assert path.read_text() == "1\n2\n3\n4\n"
    go_on(graph, second, ["x"])
    assert path.read_text() == "1\n2\n3\n"
    go_on(graph, first, ["x"])
    assert path.read_text() == "1\n"


def test_text_in_a_file_from_before_stays_if_the_run_appends(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before\n")
    graph = entry("rows").to(path, mode="a")
    with ManualSystem() as system:
        run = system.run(graph)
        snapshot = run.snapshot()
        run.send("rows", ["a"])
        run.snapshot()  # until then it may be on its way
        run.cancel()
    assert path.read_text() == "before\na\n"
    go_on(graph, snapshot, ["b"])
    assert path.read_text() == "before\nb\n"


def test_a_file_that_is_shorter_than_it_was_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    graph = entry("rows").to(path, name="lines")
    snapshot = snapshot_of(graph, ["abc"])
    path.write_text("a")
    with pytest.raises(SnapshotError, match=r"operator 'lines' .*out\.txt' has 1 bytes, but had 4"):
        go_on(graph, snapshot, [])
    assert path.read_text() == "a"


# --- files of snapshots ---------------------------------------------------------------------------


def test_a_snapshot_is_written_to_a_file_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "one"
    snapshot_of(counts, ["a", "b"]).save(path)
    assert Snapshot.load(path).position == {"rows": 2}
    assert go_on(counts, path, ["c"]) == [1, 2, 3]
    assert go_on(counts, str(path), ["c"]) == [1, 2, 3]
    assert [*tmp_path.iterdir()] == [path]
    with pytest.raises(FileNotFoundError):
        go_on(counts, tmp_path / "none", [])


def changed(at: int, byte: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([byte]) + data[at + 1 :]


def later(data: bytes) -> bytes:
    """Return a snapshot as a later release may write it: its checksum says so, too."""
    head = struct.Struct("!10sHIQ")
    magic, _, _, size = head.unpack_from(data)
    body = data[head.size :]
    return head.pack(magic, 9, zlib.crc32(body, 9), size) + body


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"", "is not a snapshot: it begins with b''"),
        (lambda data: b"a text, say", "is not a snapshot: it begins with b'a text, sa'"),
        (lambda data: data[:-1], r"is broken: expected \d+ bytes, got \d+"),
        (lambda data: data + b"x", r"is broken: expected \d+ bytes, got \d+"),
        (changed(-1 + 40, 255), r"is broken: expected the checksum [0-9a-f]{8}, got [0-9a-f]{8}"),
        (changed(11, 2), r"is broken: expected the checksum [0-9a-f]{8}, got [0-9a-f]{8}"),
        (changed(11, 7), r"is broken: expected the checksum [0-9a-f]{8}, got [0-9a-f]{8}"),
        (lambda data: later(data), "is a snapshot of version 9, and this release reads 3"),
    ],
)
def test_bytes_of_no_snapshot_are_refused(change: Callable[[bytes], bytes], said: str) -> None:
    data = snapshot_of(counts, ["a"]).to_bytes()
    with pytest.raises(SnapshotError, match=f"the snapshot {said}"):
        Snapshot.from_bytes(change(data))


def test_the_version_stands_behind_the_name_of_the_format() -> None:
    data = snapshot_of(counts, ["a"]).to_bytes()
    assert struct.unpack_from("!10sH", data) == (b"callboard\n", 3)


# --- directories ----------------------------------------------------------------------------------


def test_a_directory_has_the_last_two_and_a_run_goes_on_with_the_newest(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "state")
    assert snapshots._newest() is None
    for part in range(3):
        with ManualSystem() as system:
            run = system.run(counts, restore=snapshots)
            assert run.position == {"rows": 2 * part}
            run.send("rows", ["a"])
            run.snapshot()
            run.send("rows", ["b"])
            run.snapshot()
            run.send("rows", ["lost"])
            run.cancel()
        names = [path.name for path in snapshots._paths()]
        assert names == [f"{2 * part + 2:012}.snapshot", f"{2 * part + 1:012}.snapshot"]


def two_snapshots(folder: Path) -> tuple[SnapshotStore, Path, Path]:
    snapshots = SnapshotStore(folder)
    with ManualSystem() as system:
        run = system.run(counts, restore=snapshots)
        for row in "ab":
            run.send("rows", [row])
            run.snapshot()
        run.cancel()
    newest, before = snapshots._paths()
    return snapshots, newest, before


def test_the_newest_whole_one_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshots, newest, before = two_snapshots(tmp_path)
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-1])
    assert go_on(counts, snapshots, ["b", "c"]) == [1, 2, 3]
    assert str(newest) in caplog.text
    before.write_bytes(b"")
    with pytest.raises(SnapshotError, match=r"no snapshot in .* is whole: the file .* is broken"):
        go_on(counts, snapshots, [])
    newest.write_bytes(later(whole))
    with pytest.raises(SnapshotError, match="version 9"):
        go_on(counts, snapshots, [])


def test_a_directory_is_for_one_run_at_a_time(tmp_path: Path, manual: ManualSystem) -> None:
    snapshots = SnapshotStore(tmp_path)
    run = manual.run(counts, restore=snapshots)
    for other in (snapshots, SnapshotStore(tmp_path)):
        with pytest.raises(RunError, match="another run has the snapshots in"):
            manual.run(counts, restore=other)
    run.finish()
    snapshot_of(entry("rows").collect(), []).save(tmp_path / "7.snapshot")
    with pytest.raises(SnapshotError, match="another graph"):
        manual.run(counts, restore=snapshots)
    (tmp_path / "7.snapshot").unlink()
    manual.run(counts, restore=snapshots).finish()


class Noting(SnapshotStore):
    """Notes that one was written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.written = threading.Event()

    def _save(self, snapshot: Snapshot) -> None:
        super()._save(snapshot)
        self.written.set()


def test_a_run_writes_snapshots_by_itself(tmp_path: Path) -> None:
    snapshots = Noting(tmp_path, every=0.01)
    with ActorSystem() as system:
        run = system.run(counts, restore=snapshots, batch_size=2)
        run.send("rows", ["a", "b"])
        assert snapshots.written.wait(60)
        run.cancel()
        run = system.run(counts, restore=tmp_path / snapshots._paths()[0].name)
        assert run.position == {"rows": 2}
        run.cancel()


@pytest.mark.parametrize("error", [OSError("no"), SystemExit(3), asyncio.CancelledError()])
def test_a_snapshot_that_raises_anything_is_logged_and_the_next_one_is_written(
    error: BaseException, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[BaseException] = []

    class Number:
        def __init__(self) -> None:
            self.rows = 0

        def receive(self, row: Any) -> None:
            self.rows += 1

        def snapshot(self) -> int:
            if errors:
                raise errors.pop()
            return self.rows

        def restore(self, rows: int) -> None:
            self.rows = rows

    snapshots = Noting(tmp_path, every=0.01)
    with ActorSystem() as system:
        graph: Graph[list[Any]] = rows.stateful(Number).collect()
        run = system.run(graph, restore=snapshots)
        errors.append(error)
        run.send("rows", ["a"])
        assert snapshots.written.wait(60)
        run.cancel()
    assert not errors
    assert "a snapshot failed" in caplog.text


# --- what cannot be saved or restored -------------------------------------------------------------


class Silent:
    def receive(self, row: Any) -> list[Any]:
        return [row]


class OneWay(Silent):
    def snapshot(self) -> int:
        return 1


@dataclass
class Point:
    x: int


rows = entry("rows")


@pytest.mark.parametrize(
    ("graph", "given", "said"),
    [
        (rows.stateful(Silent).collect(), [1], r"'Silent' \(stateful\) .*Silent cannot be encoded"),
        (rows.stateful(OneWay).collect(), [1], r"OneWay has snapshot\(\), and no restore\(\)"),
        (rows.batch(2).collect(), [Point(1)], r"'batch' \(batch\) .*Point cannot be encoded"),
        (rows.collect(name="all"), [object()], r"'all' \(collect\) .*object cannot be encoded"),
    ],
)
def test_a_state_that_cannot_be_saved_is_an_error_which_names_the_operator(
    graph: Graph[Any], given: list[Any], said: str
) -> None:
    with ManualSystem() as system:
        run = system.run(graph)
        run.send("rows", given)
        with pytest.raises(SnapshotError, match=said):
            run.snapshot()
        run.finish()


def test_an_operator_without_snapshots_is_known_before_the_first_row(tmp_path: Path) -> None:
    with ActorSystem() as system:
        for stream in (rows.stateful(Silent), rows.key_by(str).stateful(Silent)):
            with pytest.raises(SnapshotError, match="'Silent'"):
                system.run(stream.collect(), restore=SnapshotStore(tmp_path, every=60))
        system.run(counts, restore=SnapshotStore(tmp_path, every=60)).finish()


def test_registered_types_are_saved(tmp_path: Path) -> None:
    graph = rows.batch(3).collect()
    snapshots = SnapshotStore(tmp_path, types={"point": Point})
    with ManualSystem() as system:
        run = system.run(graph, restore=snapshots)
        run.send("rows", [Point(1)])
        run.snapshot()
        run.cancel()
    assert go_on(graph, snapshots, [2]) == [[Point(1), 2]]
    with pytest.raises(SnapshotError, match="no type is registered here as 'point'"):
        go_on(graph, snapshots._paths()[0], [])
    with pytest.raises(ConfigError, match="expected a dataclass or an enumeration"):
        SnapshotStore(tmp_path, types=[int])


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (entry("others").count().collect(), "entries are others, and those of the snapshot rows"),
        (rows.count().batch(2).collect(), r"operator 1 is 'batch' \(batch\) in the graph, and was"),
        (rows.fold(0, max).batch(2).collect(), r"0 is 'max' \(fold\) .* was 'count' \(count\)"),
        (
            rows.count(name="n").reduce(sum, every=3).collect(),
            r"operator 0 is 'n' \(count\) in the graph, and was 'count' \(count\) in the snapshot",
        ),
        (
            rows.count().reduce(sum, every=4).collect(),
            r"1, 'sum' \(reduce\), is '4 rows' in the graph, and was '3 rows' in the snapshot",
        ),
        (rows.count().to(print), r"operator 1 is 'print' \(to\)"),
        (
            Graph(rows.count().reduce(sum, every=3).collect(), rows.collect(name="more")),
            r"operator 3, 'more' \(collect\), is not in the snapshot",
        ),
    ],
)
def test_a_changed_graph_is_an_error_with_the_operator(graph: Graph[Any], said: str) -> None:
    snapshot = snapshot_of(rows.count().reduce(sum, every=3).collect(), [1, 2])
    with pytest.raises(SnapshotError, match=said):
        go_on(graph, snapshot, [])


def test_a_graph_may_have_other_partitions_and_threads_than_before() -> None:
    before = rows.key_by(str, partitions=2).count().collect(name="all")
    after = rows.key_by(str, partitions=5).count().run_on("dedicated").collect(name="all")
    assert go_on(after, snapshot_of(before, [1, 1]), [1]) == [("1", 1), ("1", 2), ("1", 3)]


def test_a_directory_is_given_as_snapshots(tmp_path: Path) -> None:
    with (
        ManualSystem() as system,
        pytest.raises(ConfigError, match=r"directory: restore=SnapshotStore"),
    ):
        system.run(counts, restore=tmp_path)


@pytest.mark.parametrize("restore", [3, b"bytes", counts])
def test_other_values_are_refused_as_snapshots(restore: Any) -> None:
    with ManualSystem() as system, pytest.raises(ConfigError, match="restore must be a Snapshot, "):
        system.run(counts, restore=restore)


def test_in_a_manual_system_no_time_passes_by_itself(tmp_path: Path) -> None:
    with ManualSystem() as system, pytest.raises(ConfigError, match=r"every=2 .*run\.snapshot\(\)"):
        system.run(counts, restore=SnapshotStore(tmp_path, every=2))
    for every in (0, -1, "soon"):
        with pytest.raises(ConfigError, match="every"):
            SnapshotStore(tmp_path, every=every)  # type: ignore[arg-type]


# --- who may ask, and when ------------------------------------------------------------------------


def test_a_run_that_is_over_has_no_snapshot(manual: ManualSystem) -> None:
    run = manual.run(counts)
    run.finish()
    with pytest.raises(RunEnded):
        run.snapshot()
    run = manual.run(counts)
    run.cancel()
    with pytest.raises(RunEnded, match="cancelled"):
        run.snapshot()


def test_an_operator_of_the_run_would_wait_for_itself() -> None:
    runs: list[Any] = []
    with ManualSystem() as system:
        runs.append(system.run(rows.map(lambda row: runs[0].snapshot()).collect()))
        runs[0].send("rows", [1])
        with pytest.raises(RunError) as caught:
            runs[0].finish()
    assert "snapshot() in an operator of" in str(caught.value.__cause__)


async def test_a_coroutine_awaits_a_snapshot() -> None:
    async with ActorSystem() as system:
        run = system.run(counts)
        await run.asend("rows", ["a"])
        with pytest.raises(WouldBlock, match="asnapshot"):
            run.snapshot()
        assert (await run.asnapshot()).position == {"rows": 1}
        assert await run.afinish() == [1]


class Asker(Actor[Any]):
    def receive(self, run: Any) -> Any:
        run.send("rows", ["a"] * 100)
        return run.snapshot().position


@pytest.mark.parametrize("threading", ["dynamic", "assigned", "dedicated"])
def test_an_actor_on_the_only_worker_takes_a_snapshot(threading: str) -> None:
    with ActorSystem(workers=1) as system:
        run = system.run(counts, threading=threading, batch_size=1, window=2)
        assert system.spawn(Asker).ask(run).result(60) == {"rows": 100}
        assert len(run.finish(60)) == 100


def test_a_snapshot_comes_though_senders_never_rest() -> None:
    """Each sender has the lock again as soon as it has let it go."""
    stop = threading.Event()
    with ActorSystem() as system:
        run = system.run(rows.fold(0, lambda n, _: n + 1).collect(), batch_size=4)

        def send() -> None:
            while not stop.is_set():
                run.send("rows", range(16))

        senders = [threading.Thread(target=send) for _ in range(3)]
        for sender in senders:
            sender.start()
        try:
            came = [run.snapshot(timeout=60).position["rows"] for _ in range(20)]
        finally:
            stop.set()
            for sender in senders:
                sender.join()
        assert came == sorted(came)
        assert run.finish(60) == [run.position["rows"]]


def test_a_taker_takes_a_snapshot_while_a_sender_waits_for_it() -> None:
    with ActorSystem() as system:
        run = system.run(counts, batch_size=1)
        results = run.results(limit=4)
        sender = threading.Thread(target=run.send, args=("rows", range(1_000)))
        sender.start()
        taken = [next(results) for _ in range(10)]
        snapshot = run.snapshot(timeout=60)
        assert 10 <= snapshot.position["rows"] < 1_000
        taken += [next(results) for _ in range(990)]
        sender.join()
        run.finish(60)
        assert taken == [*range(1, 1_001)]
        run = system.run(counts, restore=snapshot)
        assert run.finish(60) == [*range(11, snapshot.position["rows"] + 1)]


class Late(Actor[Any]):
    def receive(self, row: Any) -> Any:
        return 2 * row


def test_answers_that_are_awaited_are_there_before_the_cut() -> None:
    with ActorSystem() as system:
        graph = rows.ask(system.spawn(Late), in_flight=4).count().collect()
        run = system.run(graph)
        run.send("rows", range(100))
        snapshot = run.snapshot(timeout=60)
        run.cancel()
        run = system.run(graph, restore=snapshot)
        run.send("rows", [1])
        assert run.finish(60) == [*range(1, 102)]
