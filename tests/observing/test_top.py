"""`python -m callboard top`: its frames and its keys; it leaves nothing behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.__main__ import main
from callboard.observing import watching
from callboard.observing.conversation import MOST_CONVERSATIONS, Watcher
from callboard.observing.endpoint import refuse_another_user
from callboard.observing.top import View, without_children
from callboard.observing.top_frames import OperatorRow, frame_of
from callboard.streams import entry
from tests.observing.actors import Box, Holder, Passage, Pinger
from tests.waiting import until

pytest_plugins = ["tests.observing.sockets"]

Out = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def own_folder(folder: Path) -> Path:
    return folder


def watched_threads() -> int:
    return sum(thread.name.endswith("-watched") for thread in threading.enumerate())


def watcher_of(folder: Path) -> Watcher:
    (path,) = folder.iterdir()
    return Watcher(path, refuse_another_user)


def test_a_frame_has_workers_actors_reasons_and_dead_letters(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "STUCK_AFTER", 0.0)
    passage = Passage()
    with ActorSystem("shop", workers=1, monitoring="mailboxes", observable=True) as system:
        box = system.spawn(Box, name="box")
        gone = system.spawn(Box, name="gone")
        gone.stop()
        system.drain(60)
        gone.tell("late")
        box.tell("fail")
        system.drain(60)
        holder: Any = system.spawn(Holder, name="holder[red]\x1b[2J")
        holder.tell(passage)
        assert passage.entered.wait(30)
        holder.tell(passage)
        assert main(["top", "--once", "--every", "0.05", "--stacks"]) == 0
        passage.leave.set()
    out = capsys.readouterr().out
    assert "shop: 1 actor," in out
    assert "stuck 1" in out
    assert "shop-0" in out
    assert "holder[red]\ufffd[2J" in out  # as text, and not to the terminal
    assert "\x1b" not in out
    assert "in pass_through" in out  # the stack
    assert "dead letters: " in out
    assert "failures 1, at last /box ValueError: fail" in out


def test_stacks_are_escaped(folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "STUCK_AFTER", 0.0)
    found: dict[str, Any] = {}
    exec(compile("def through(it): it.pass_through()", "odd\x1b[2J.py", "exec"), found)

    class Odd(Actor[Passage]):
        def receive(self, message: Passage) -> None:
            found["through"](message)

    passage = Passage()
    with ActorSystem("shop", workers=1, monitoring="mailboxes", observable=True) as system:
        system.spawn(Odd).tell(passage)
        assert passage.entered.wait(30)
        try:
            assert main(["top", "--once", "--every", "0.05", "--stacks"]) == 0
        finally:
            passage.leave.set()
    out = capsys.readouterr().out
    assert "odd\ufffd[2J.py" in out
    assert "\x1b" not in out


def test_rates_and_loads_are_those_between_two_looks(folder: Path) -> None:
    with ActorSystem("shop", workers=1, monitoring="mailboxes", observable=True) as system:
        box = system.spawn(Box, name="box")
        box.tell_many(range(1000))
        system.drain(60)
        watcher = watcher_of(folder)
        before = watcher.look(most=5)
        box.tell_many(range(500))
        system.drain(60)
        now = watcher.look(most=5)
        watcher.close()
    frame = frame_of(before, now)
    (row,) = frame.actors
    assert (row.path, row.cls, row.messages, row.queue) == ("/box", "Box", 1500, 0)
    assert row.rate * frame.seconds == pytest.approx(500)
    assert row.load is not None
    assert 0 < row.load <= 1
    assert frame.workers[0].rate > 0
    first = frame_of(None, before)
    assert first.actors[0].rate == first.workers[0].rate == 0


def test_operators_have_rates_costs_and_reasons(folder: Path) -> None:
    passage = Passage()

    def slow(row: int) -> int:
        passage.pass_through()
        return row

    with ActorSystem("shop", workers=1, observable=True) as system:
        run = system.run(entry("n").map(slow).filter(bool).collect(), batch_size=1)
        watcher = watcher_of(folder)
        before = watcher.look()
        run.send("n", range(5))
        assert passage.entered.wait(30)
        frame = frame_of(before, watcher.look())
        (one,) = frame.runs
        assert one.rate * frame.seconds == pytest.approx(5)
        assert [row.name for row in one.operators] == ["slow", "bool", "collect"]
        assert one.operators[0].queued > 0
        assert one.operators[0].words.startswith("has 1 worker at work")
        passage.leave.set()
        assert len(run.finish(60)) == 4
        assert frame_of(None, watcher.look()).runs == ()
        watcher.close()


def test_watermarks_have_their_lag_and_runs_their_latency(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    passage = Passage()

    def slow(row: int) -> int:
        if row == 50:
            passage.pass_through()
        return row

    def time_of(row: int) -> int:
        return row

    graph = entry("n").watermarks(time_of, delay_threshold=7).max_workers(1).map(slow).collect()
    with ActorSystem("shop", workers=2, observable=True) as system:
        run = system.run(graph, batch_size=10, markers=1)
        watcher = watcher_of(folder)
        run.send("n", range(40))
        run.snapshot()  # all rows are through
        system.drain(60)  # a lane counts its rows after it has handed them on
        frame = frame_of(None, watcher.look())
        (one,) = frame.runs
        assert [row.watermark_lag for row in one.operators] == [7, 7, 7]
        assert one.p50 is not None
        assert one.p99 is not None
        assert 0 < one.p50 <= one.p99
        run.send("n", range(40, 100))
        assert passage.entered.wait(30)

        def is_said_of_slow() -> bool:  # others may go on meanwhile
            said = str(run.statistics()).splitlines()[3].split()[-1]
            return said == f"{operators_of(watcher)[1].watermark_lag:g}"

        until(is_said_of_slow)
        first, mapped, collected = operators_of(watcher)
        assert first.watermark_lag == 7
        assert mapped.name == "slow"
        assert mapped.watermark_lag is not None
        assert (
            mapped.watermark_lag >= 59 - 49 + 7
        )  # row 59 has come to it, and its watermark is that of row 49
        assert collected.watermark_lag is not None
        assert collected.watermark_lag >= mapped.watermark_lag
        monkeypatch.setenv("COLUMNS", "250")
        assert main(["top", "--once", "--every", "0.05"]) == 0
        out = capsys.readouterr().out
        assert "event lag" in out
        assert ", latency p50 " in out
        passage.leave.set()
        assert len(run.finish(60)) == 100
        watcher.close()


def operators_of(watcher: Watcher) -> tuple[OperatorRow, ...]:
    (one,) = frame_of(None, watcher.look()).runs
    return one.operators


def test_classes_have_the_percentiles_since_the_last_look(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ActorSystem("shop", workers=1, monitoring="mailboxes", observable=True) as system:
        box = system.spawn(Box, name="box")
        watcher = watcher_of(folder)
        before = watcher.look()
        box.tell_many(range(1000))
        system.drain(60)
        frame = frame_of(before, watcher.look())
        (row,) = frame.classes
        assert (row.name, round(row.rate * frame.seconds)) == ("Box", 1000)
        assert row.p50 is not None
        assert row.p99 is not None
        assert 0 < row.p50 <= row.p99
        assert row.mailbox_p99 is not None
        assert frame_of(before, watcher.look()).classes == ()
        watcher.close()
        pinger, other = system.spawn(Pinger), system.spawn(Pinger)
        pinger.tell(other)
        other.tell(pinger)
        pinger.tell(1_000_000_000)  # until the end of the system
        monkeypatch.setenv("COLUMNS", "200")

        def is_shown() -> bool:
            assert main(["top", "--once", "--every", "0.2"]) == 0
            return "mailbox p99" in capsys.readouterr().out  # else nothing was sampled

        until(is_shown)
        pinger.stop()


def test_a_dump_has_the_distributions_and_the_runs(folder: Path, capsys: Out) -> None:
    with ActorSystem("shop", workers=1, monitoring="mailboxes", observable=True) as system:
        system.spawn(Box, name="box").tell_many(range(100))
        system.drain(60)
        with system.run(entry("n").filter(bool, name="some").collect()) as run:
            run.send("n", [0, 1, 2])
            run.snapshot()
            system.drain(60)  # a lane counts its rows after it has handed them on
            assert main(["dump", "shop"]) == 0
    found = json.loads(capsys.readouterr().out)
    (box,) = (one for one in found["classes"] if one["name"] == "Box")
    assert sum(count for _, count in box["processing"]["buckets"]) == box["messages"] == 100
    (graph,) = found["graphs"]
    assert graph["operators"][0]["rows_in"] == 3


def test_an_observer_that_is_killed_leaves_nothing(folder: Path) -> None:
    with ActorSystem("shop", workers=1, observable=True) as system:
        pinger = system.spawn(Pinger)
        other = system.spawn(Pinger)
        pinger.tell(other)
        other.tell(pinger)
        pinger.tell(1_000_000)
        program = (
            "from callboard.observing.commands import systems_of\n"
            "from callboard.observing.conversation import Watcher\n"
            "((path, _),) = systems_of('shop')\n"
            "watcher = Watcher(path, lambda one: None)\n"
            "print(watcher.look()['live'], flush=True)\n"
            "while True: watcher.look()\n"
        )
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as observer:
            assert observer.stdout is not None
            said, seen = observer.stdout.readline(), watched_threads()
            observer.send_signal(signal.SIGKILL)
            observer.wait(60)
        assert said == "2\n"
        assert seen >= 1
        until(lambda: watched_threads() == 0)
        system.drain(60)
        assert pinger.statistics().messages + other.statistics().messages == 1_000_003


def test_observers_end_with_the_system_and_there_are_few_of_them(folder: Path) -> None:
    with ActorSystem("shop", workers=1, observable=True):
        watchers = [watcher_of(folder) for _ in range(MOST_CONVERSATIONS)]
        for one in watchers:
            assert one.look()["live"] == 0
        with pytest.raises(ConnectionError, match="already has eight observers"):
            watcher_of(folder)
    for one in watchers:
        with pytest.raises(ConnectionError):
            one.look()
        one.close()
    until(lambda: watched_threads() == 0)


@pytest.mark.parametrize(
    ("question", "text"),
    [({"sort": "age"}, "expected load"), ({"most": -1}, "most"), ({"most": "x"}, "most")],
)
def test_a_wrong_question_gets_an_error(question: dict[str, Any], text: str, folder: Path) -> None:
    with ActorSystem("shop", workers=1, observable=True):
        watcher = watcher_of(folder)
        with pytest.raises(Exception, match=text):
            watcher.look(**question)
        watcher._connection.sendall(b"[]\n")
        assert "error" in json.loads(watcher._answers.readline())
        assert watcher.look()["live"] == 0
        watcher.close()


def test_keys_change_the_view() -> None:
    view = View()
    for key in "us/cart\x7f\n++-":
        view.press(key)
    assert (view.sort, view.stacks, view.part, view.most) == ("queue", True, "car", 25)
    for key in "p/x\x1b":
        view.press(key)
    assert (view.paused, view.part, view.typed) == (True, "car", None)
    assert "PAUSED" in view.footer()
    view.press("q")
    assert view.over


def test_it_runs_in_a_terminal_until_q_is_pressed(folder: Path) -> None:
    with ActorSystem("shop", workers=1, observable=True) as system:
        system.spawn(Box, name="box")
        system.drain(60)
        outer, inner = pty.openpty()
        command = [sys.executable, "-m", "callboard", "top", "--every", "0.05"]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        process = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, env=environment, cwd=folder
        )
        os.close(inner)
        shown = b""
        while b"/box" not in shown:
            shown += os.read(outer, 65536)
        os.write(outer, b"q")
        try:
            while os.read(outer, 65536):
                pass
        except OSError:
            pass  # its end is closed
        assert process.wait(60) == 0
        os.close(outer)
        until(lambda: watched_threads() == 0)


def test_into_a_pipe_it_prints_frames_until_the_system_ends(folder: Path) -> None:
    with ActorSystem("shop", workers=1, observable=True) as system:
        system.spawn(Box, name="box")
        system.drain(60)
        command = [sys.executable, "-m", "callboard", "top", "--every", "0.05"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
        )
        assert process.stdout is not None
        shown = 0
        while shown < 3:
            shown += "/box" in process.stdout.readline()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said == "shop has ended\n"


def test_one_frame_of_a_system_that_ends_is_a_failure(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []

    def look(watcher: Watcher, **wishes: Any) -> Any:
        if looks:
            raise ConnectionResetError("it is gone")
        looks.append(plain_look(watcher, **wishes))
        return looks[0]

    plain_look = Watcher.look
    monkeypatch.setattr(Watcher, "look", look)
    with ActorSystem("shop", workers=1, observable=True):
        assert main(["top", "--once", "--every", "0.05"]) == 1
    assert capsys.readouterr().err == "callboard top: it is gone\n"


def test_without_rich_it_says_how_to_get_it(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "callboard.observing.screen", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert main(["top"]) == 1
    assert "pip install 'callboard[top]'" in capsys.readouterr().err


def test_a_system_has_to_be_there_and_to_be_one(folder: Path, capsys: Out) -> None:
    assert main(["top", "--once"]) == 1
    assert "ActorSystem(observable=True)" in capsys.readouterr().err
    with (
        ActorSystem("shop", workers=1, observable=True),
        ActorSystem("other", workers=1, observable=True),
    ):
        assert main(["top", "--once"]) == 1
        assert f"name one: {os.getpid()} shop, {os.getpid()} other" in capsys.readouterr().err
        assert main(["top", "other", "--once", "--every", "0.05"]) == 0
    with pytest.raises(SystemExit):
        main(["top", "--every", "0"])


def test_processes_that_another_one_has_started_need_no_choice() -> None:
    shop, child, other = (
        {"pid": pid, "parent": parent} for pid, parent in ((5, 1), (6, 5), (7, 1))
    )
    path = Path("x.sock")
    assert without_children([(path, shop), (path, child)]) == [(path, shop)]
    both = [(path, shop), (path, other)]
    assert without_children(both) == both
