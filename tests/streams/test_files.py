"""Files as sinks: one writer at a time, and each row that is not written is reported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem, CallboardError
from callboard.streams import (
    Graph,
    GraphError,
    RowCounts,
    Run,
    RunEnded,
    RunError,
    StreamError,
    entry,
)
from callboard.testing import ManualSystem

rows = entry("rows")


def test_the_second_run_to_write_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with ActorSystem() as system:
        first = system.run(rows.to(path))
        first.send("rows", ["a", "b"])
        with pytest.raises(RunError, match=r"out\.txt' is being written by another run"):
            system.run(rows.to(str(path)))
        with pytest.raises(RunError, match="finish or cancel that run first"):
            rows.to(path).run_sequentially({"rows": ["c"]})
        first.send("rows", ["d"])
        first.finish(timeout=60)
    assert path.read_text() == "a\nb\nd\n"
    rows.to(path).run_sequentially({"rows": ["again"]})
    assert path.read_text() == "again\n"


def test_two_sinks_of_a_graph_do_not_write_one_file(tmp_path: Path) -> None:
    path, link = tmp_path / "out.txt", tmp_path / "link.txt"
    link.symlink_to(path)
    graph = Graph(rows.to(path, name="a"), rows.to(link, name="b"))
    with pytest.raises(RunError, match=r"link\.txt' is .* by another sink of this one"):
        graph.run_sequentially({"rows": []})
    rows.to(path).run_sequentially({"rows": ["a"]})  # the first one's file was closed
    assert path.read_text() == "a\n"


def test_a_run_in_another_process_is_refused_the_file_as_well(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    program = (
        "import sys; from callboard.streams import entry\n"
        "entry('rows').to(sys.argv[1]).run_sequentially({'rows': ['other']})"
    )
    command = [sys.executable, "-c", program, str(path)]
    with ActorSystem() as system:
        run = system.run(rows.to(path))
        run.send("rows", ["mine"])
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert "RunError: the file" in ended.stderr
        run.finish(timeout=60)
    assert path.read_text() == "mine\n"
    subprocess.run(command, cwd=tmp_path, check=True, timeout=100)
    assert path.read_text() == "other\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_file_is_free_again_though_a_forked_process_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    begin, end = os.pipe()
    with ActorSystem() as system:
        run = system.run(rows.to(path))
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(begin, 1)  # until the parent has gone on
            os._exit(0)
        try:
            run.send("rows", ["a"])
            run.finish(timeout=60)
            rows.to(path).run_sequentially({"rows": ["b"]})
        finally:
            os.close(end)
            os.waitpid(child, 0)
            os.close(begin)
    assert path.read_text() == "b\n"


def test_a_device_may_be_written_by_many() -> None:
    graph = Graph(rows.to(os.devnull, name="a"), rows.to(os.devnull, name="b"))
    assert graph.run_sequentially({"rows": ["a"]}) is None


def test_a_cancelled_run_lets_its_file_go(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with ActorSystem() as system:
        run = system.run(rows.to(path))
        run.cancel()
        rows.to(path).run_sequentially({"rows": ["a"]})
    assert path.read_text() == "a\n"


def test_a_run_whose_system_was_stopped_lets_its_file_go(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with ManualSystem() as system:
        run = system.run(rows.to(path))
        run.send("rows", ["a"])  # on its way: nothing has run yet
        system.stop()
        run.cancel()
        rows.to(path).run_sequentially({"rows": ["b"]})
    assert path.read_text() == "b\n"


@pytest.mark.parametrize("again", [Run.cancel, Run.finish])
def test_a_run_that_was_cancelled_in_the_middle_of_a_row_lets_its_file_go_later(
    tmp_path: Path, again: Callable[[Run[Any]], Any]
) -> None:
    path = tmp_path / "out.txt"
    entered, opened = threading.Event(), threading.Event()

    def stay(row: str) -> str:
        entered.set()
        assert opened.wait(60)
        return row

    with ActorSystem() as system:
        run = system.run(rows.map(stay).to(path), batch_size=1)
        run.send("rows", ["a", "b"])
        assert entered.wait(60)
        run.cancel(timeout=0.0)
        with pytest.raises(RunError, match="finish or cancel that run first"):
            rows.to(path).run_sequentially({"rows": ["c"]})
        opened.set()
        while any(operator.workers for _, operator in run._work.flow.operators()):
            pass
        with suppress(RunEnded):
            again(run)
        rows.to(path).run_sequentially({"rows": ["d"]})
    assert path.read_text() == "d\n"


def test_a_second_cancel_waits_for_the_row_and_frees_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    entered, opened = threading.Event(), threading.Event()

    def stay(row: str) -> str:
        entered.set()
        assert opened.wait(60)
        return row

    with ActorSystem() as system:
        run = system.run(rows.map(stay).to(path), batch_size=1)
        run.send("rows", ["a", "b"])
        assert entered.wait(60)
        run.cancel(timeout=0.0)
        opened.set()
        run.cancel(timeout=60)
        rows.to(path).run_sequentially({"rows": ["c"]})
    assert path.read_text() == "c\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_rows_that_the_file_has_no_room_for_are_an_error_at_the_end() -> None:
    graph = rows.to("/dev/full")
    with pytest.raises(StreamError, match=r"'write' failed in flush\(\), after 2 inputs") as raised:
        graph.run_sequentially({"rows": ["a", "b"]})
    assert isinstance(raised.value.__cause__, OSError)
    with ActorSystem() as system:
        run = system.run(graph)
        run.send("rows", ["a", "b"])
        with pytest.raises(StreamError, match="operator 'write' failed"):
            run.finish(timeout=60)
    counts = RowCounts()
    rows.to("/dev/full", errors="skip").run_sequentially({"rows": ["a"]}, row_counts=counts)
    assert counts.skips == {"write": 1}


# --- what was in the file before --------------------------------------------------------------


def refused_runs(path: Path, mode: Any = "w") -> dict[str, Callable[[ActorSystem], object]]:
    """Make runs that are refused, by reasons."""
    graph = rows.to(path, mode=mode)
    elsewhere = rows.to(path.parent / "missing" / "out.txt", name="elsewhere")

    def build(threading: Any = "dynamic", **options: Any) -> Callable[[ActorSystem], object]:
        return lambda system: system.run(graph, threading=threading, **options)

    return {
        "threading": build("nonsense"),
        "batch_size": build(batch_size=0),
        "window": build(window=3),
        "policy": build("assigned", policy="last_in_pipeline"),
        "a later sink": lambda system: system.run(Graph(graph, elsewhere)),
        "the same sink": lambda system: system.run(Graph(graph, rows.to(path, name="again"))),
        "a stopped system": lambda system: (system.stop(), system.run(graph)),
        "a later sink, in sequence": lambda _: Graph(graph, elsewhere).run_sequentially({}),
        "the same sink, in sequence": lambda _: Graph(
            graph, rows.to(path, name="again")
        ).run_sequentially({}),
        "no such entry": lambda _: graph.run_sequentially([("nowhere", ["a"])]),
        "no rows": lambda _: graph.run_sequentially({"rows": "text"}),
    }


@pytest.mark.parametrize("why", refused_runs(Path("x")))
def test_a_run_that_is_refused_leaves_the_file_as_it_was(tmp_path: Path, why: str) -> None:
    path = tmp_path / "out.txt"
    path.write_text("yesterday's\n")
    with ActorSystem() as system, pytest.raises((CallboardError, OSError, TypeError)):
        refused_runs(path)[why](system)
    assert path.read_text() == "yesterday's\n"


def test_a_run_cancelled_before_its_rows_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("yesterday's\n")
    with ActorSystem() as system:
        system.run(rows.to(path)).cancel()
    assert path.read_text() == "yesterday's\n"


def test_a_run_that_has_rows_or_an_end_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    graph = rows.filter(bool).to(path)
    with ActorSystem() as system:
        path.write_text("yesterday's\n")
        system.run(graph).finish(timeout=60)
        assert path.read_text() == ""
        path.write_text("yesterday's\n")
        run = system.run(graph)
        run.send("rows", [""])
        assert path.read_text() == ""
        run.send("rows", ["a"])
        run.finish(timeout=60)
        assert path.read_text() == "a\n"
    path.write_text("yesterday's\n")
    graph.run_sequentially({"rows": []})
    assert path.read_text() == ""


def test_a_server_that_is_refused_its_address_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("yesterday's\n")
    (tmp_path / "app.py").write_text(
        "from callboard.streams import entry\n"
        f"def build(system): return system.run(entry('rows').to({str(path)!r}))\n"
    )
    command = [sys.executable, "-m", "callboard", "serve", "app:build", "--bind"]
    bad = [*command, f"unix:{tmp_path}/missing/socket"]
    ended = subprocess.run(bad, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert ended.returncode != 0
    assert "missing" in ended.stderr
    assert path.read_text() == "yesterday's\n"
    system_made = tmp_path / "new.txt"
    app = (tmp_path / "app.py").read_text().replace(str(path), str(system_made))
    (tmp_path / "app.py").write_text(app)
    subprocess.run(bad, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert not system_made.exists()


@pytest.mark.parametrize("mode", ["w", "a", "x"])
@pytest.mark.parametrize("why", refused_runs(Path("x")))
def test_a_run_that_is_refused_leaves_no_file_behind(tmp_path: Path, why: str, mode: Any) -> None:
    path = tmp_path / "out.txt"
    with ActorSystem() as system, pytest.raises((CallboardError, OSError, TypeError)):
        refused_runs(path, mode)[why](system)
    assert not path.exists()


def test_a_run_that_is_cancelled_before_it_has_rows_leaves_no_file_behind(tmp_path: Path) -> None:
    path, link = tmp_path / "out.txt", tmp_path / "link.txt"
    link.symlink_to(path)
    with ActorSystem() as system:
        run = system.run(rows.to(path))
        with pytest.raises(RunError, match="is being written"):
            rows.to(link).run_sequentially({"rows": []})
        run.cancel()
        assert not path.exists()
        rows.to(link).run_sequentially({"rows": ["a"]})
    assert path.read_text() == "a\n"


# --- modes ------------------------------------------------------------------------------------


def test_rows_are_appended_or_a_file_that_is_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    rows.to(path, mode="a").run_sequentially({"rows": ["a"]})
    rows.to(path, mode="a").run_sequentially({"rows": []})
    with ActorSystem() as system:
        run = system.run(rows.to(path, mode="a"))
        run.send("rows", ["b"])
        run.finish(timeout=60)
        with pytest.raises(FileExistsError):
            system.run(rows.to(path, mode="x"))
        assert path.read_text() == "a\nb\n"
        path.unlink()
        run = system.run(rows.to(path, mode="x"))
        with pytest.raises(FileExistsError):
            rows.to(path, mode="x").run_sequentially({"rows": []})
        run.send("rows", ["c"])
        run.finish(timeout=60)
    assert path.read_text() == "c\n"


def test_a_line_that_was_left_open_is_ended_before_rows_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    for before, after in (("a", "a\nb\n"), ("a\n", "a\nb\n"), ("", "b\n")):
        path.write_text(before)
        rows.to(path, mode="a").run_sequentially({"rows": ["b"]})
        assert path.read_text() == after
    path.write_text("a")
    with ManualSystem() as system:
        run = system.run(rows.to(path, mode="a"))
        run.cancel()
    assert path.read_text() == "a"  # nothing was written


@pytest.mark.parametrize("begun", [False, True])
def test_a_run_that_goes_on_adds_no_line_of_its_own(tmp_path: Path, begun: bool) -> None:
    path = tmp_path / "out.txt"
    path.write_text("a")
    with ManualSystem() as system:
        graph = rows.to(path, mode="a")
        run = system.run(graph)
        if begun:
            run.send("rows", ["b"])
        snapshot = run.snapshot()
        run.send("rows", ["lost"])
        run.cancel()
        again = system.run(graph, restore=snapshot)
        again.send("rows", ["c"])
        again.finish()
    assert path.read_text() == ("a\nb\nc\n" if begun else "a\nc\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_only_be_written_is_appended_to_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("a")
    path.chmod(0o200)
    rows.to(path, mode="a").run_sequentially({"rows": ["b"]})
    path.chmod(0o600)
    assert path.read_text() == "ab\n"


def test_lines_are_there_after_each_batch_where_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    seen = []

    def look() -> Any:
        for row in "abcd":
            yield row
            seen.append(path.read_text())

    rows.to(path, flush=True).run_sequentially({"rows": look()}, batch_size=2)
    assert seen == ["", "a\nb\n", "a\nb\n", "a\nb\nc\nd\n"]
    assert path.read_text() == "a\nb\nc\nd\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_rows_that_cannot_be_flushed_are_an_error_of_their_batch() -> None:
    with pytest.raises(StreamError, match=r"'write' failed in flush\(\), after 1 input$") as raised:
        rows.to("/dev/full", flush=True).run_sequentially({"rows": ["a", "b"]}, batch_size=1)
    assert isinstance(raised.value.__cause__, OSError)


def test_modes_are_for_files() -> None:
    with pytest.raises(GraphError, match="mode must be"):
        rows.to("out.txt", mode="r")  # type: ignore[arg-type]
    for options in ({"mode": "a"}, {"flush": True}):
        with pytest.raises(
            GraphError, match="mode= and flush= need a file as the sink, got <built-in"
        ):
            rows.to(print, **options)


def test_a_file_without_a_name_is_written(tmp_path: Path) -> None:
    with (tmp_path / "gone.txt").open("w+") as file:
        os.unlink(file.name)
        entry("e").to(f"/dev/fd/{file.fileno()}").run_sequentially({"e": range(3)})
        file.seek(0)
        assert file.read() == "0\n1\n2\n"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"x": float("nan")}, "expected a JSON value, got {'x': nan}"),
        ({"x": [1, float("-inf")]}, r"expected a JSON value, got {'x': \[1, -inf\]}"),
        (float("inf"), "expected a JSON value, got inf"),
        ({1: "a", "1": "b"}, "a key occurs twice among 1, 1"),
        ([{"x": {None: 1, "null": 2}}], "a key occurs twice among null, null"),
    ],
)
def test_a_row_json_lacks_is_an_error_of_its_row(tmp_path: Path, row: Any, reason: str) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(StreamError, match="failed at input 1") as failed:
        rows.to(path).run_sequentially({"rows": [{"x": 1}, row]})
    assert isinstance(failed.value.__cause__, ValueError)
    assert re.search(reason, str(failed.value.__cause__))
    assert path.read_text() == '{"x": 1}\n'
    rows.to(path, errors="skip").run_sequentially({"rows": [row, {1: "a", "b": [None]}]})
    assert path.read_text() == '{"1": "a", "b": [null]}\n'
