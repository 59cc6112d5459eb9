"""Sockets for observers: observers of the same user get answers, and others get nothing."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem, CallboardError, ConfigError
from callboard.__main__ import main
from callboard.observing import answers, commands, endpoint
from callboard.observing.endpoint import ask, folder_of_sockets
from tests.observing.actors import Box, Holder, Passage

pytest_plugins = ["tests.observing.sockets"]


@pytest.fixture(autouse=True)
def own_folder(folder: Path) -> Path:
    return folder


def test_a_long_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("long" * 20)))
    assert folder_of_sockets() == Path("/tmp") / f"callboard-{os.geteuid()}"


class Parent(Actor[Any]):
    def receive(self, message: str) -> None:
        self.spawn(Box, name=message)


Out = pytest.CaptureFixture[str]


def test_a_system_that_was_not_made_for_it_has_no_socket(folder: Path, capsys: Out) -> None:
    with ActorSystem(workers=1):
        assert not folder.exists()
        assert main(["dump"]) == 1
    assert "make it with ActorSystem(observable=True)" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="observable must be True or False, got 1"):
        ActorSystem(workers=1, observable=1)  # type: ignore[arg-type]


def test_info_tree_and_dump_show_a_system(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "STUCK_AFTER", 600.0)
    passage = Passage()
    with (
        ActorSystem("shop", workers=1, observable=True) as system,
        ActorSystem("other", workers=1, observable=True),
    ):
        system.spawn(Parent, name="parent").ask("child").result(30)
        system.drain(60)
        assert main(["info"]) == 0
        here = os.getpid()
        assert capsys.readouterr().out == f"{here} shop: no input 2\n{here} other: no actors\n"
        system.spawn(Holder, name="holder").tell(passage)
        assert passage.entered.wait(30)
        assert main(["tree", "shop"]) == 0
        assert capsys.readouterr().out == (
            f"{here} shop\n  parent waits for a message\n    child waits for a message\n"
            "  holder runs on worker shop-0\n"
        )
        assert main(["dump", str(here)]) == 0
        first, second = map(json.loads, capsys.readouterr().out.splitlines())
        assert (first["system"], second["system"]) == ("shop", "other")
        assert [one["path"] for one in first["actors"]] == ["/parent", "/parent/child", "/holder"]
        assert [one["reason"] for one in first["waits"]] == ["no input", "no input", "running"]
        assert first["reasons"] == {"running": 1, "no input": 2}
        passage.leave.set()
        assert main(["dump", "nobody"]) == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("error", [FileNotFoundError, ConnectionResetError])
@pytest.mark.parametrize("command", ["info", "tree", "dump"])
def test_a_system_that_ends_while_it_is_asked_hides_no_other(
    command: str, error: type[OSError], folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(path: Path, question: str, *patience: float) -> Any:
        if path.name != "1-0.sock":
            return ask(path, question, *patience)
        if question != "who":
            raise error
        return {"pid": 1, "parent": 1, "system": "system of process 1"}

    monkeypatch.setattr(commands, "ask", asked)
    with ActorSystem("shop", workers=1, observable=True):
        (folder / "1-0.sock").touch()  # whose name comes before the other's
        assert main([command]) == 0
    out, err = capsys.readouterr()
    assert "shop" in out
    assert "system of process 1" not in out
    assert err == "process 1 has ended, or failed to answer\n"


@pytest.mark.parametrize("said", [b"", b'{"pid"'])
def test_an_answer_that_is_not_whole_is_a_lost_connection(said: bytes, folder: Path) -> None:
    path = folder_of_sockets() / "1-0.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            with listener.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionError, match=r"1-0\.sock has ended, or failed to answer"):
            ask(path, "info", 30.0)
        thread.join(30)


def test_files_that_no_system_has_made_are_left_alone(folder: Path, capsys: Out) -> None:
    with ActorSystem("shop", workers=1, observable=True):
        others = [folder / name for name in ("foo.sock", "1a-0.sock", "-.sock")]
        for other in others:
            other.touch()
        assert main(["info"]) == 0
        assert all(other.exists() for other in others)
    assert capsys.readouterr() == (f"{os.getpid()} shop: no actors\n", "")


def test_another_process_can_look(folder: Path) -> None:
    with ActorSystem("shop", workers=1, observable=True) as system:
        system.spawn(Box, name="box")
        system.drain(60)
        command = [sys.executable, "-m", "callboard", "dump", "shop"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    assert json.loads(done.stdout)["actors"][0]["path"] == "/box"


def test_a_question_that_there_is_not_and_a_silent_observer_change_nothing(folder: Path) -> None:
    with ActorSystem(workers=1, observable=True):
        (path,) = folder.iterdir()
        assert ask(path, "nothing") is None
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(str(path))
        assert ask(path, "info")["system"] == "callboard"


def test_another_user_gets_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ActorSystem(workers=1, observable=True):
        (path,) = folder.iterdir()
        assert (folder.stat().st_mode & 0o777, path.parent) == (0o700, folder)
        real = endpoint.uid_of_peer
        monkeypatch.setattr(endpoint, "uid_of_peer", lambda one: real(one) + 1)
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(30)
            stranger.connect(str(path))
            with contextlib.suppress(OSError):  # the connection may be closed by now
                stranger.sendall(b"info\n")
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(1) == b""
        with pytest.raises(PermissionError, match="belongs to another user"):
            ask(path, "info")


@pytest.mark.parametrize("kind", ["open", "file", "link"])
def test_a_folder_of_another_user_is_refused(kind: str, folder: Path, tmp_path: Path) -> None:
    if kind == "file":
        folder.touch()
    elif kind == "open":
        folder.mkdir()
        folder.chmod(0o755)
    else:
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CallboardError, match="for the sockets of observers, got"):
        ActorSystem(workers=1, observable=True)


def test_the_socket_of_a_process_that_has_ended_is_forgotten(folder: Path, capsys: Out) -> None:
    with ActorSystem(workers=1, observable=True):
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait(60)
        old = folder / f"{child.pid}-0.sock"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(old))
        assert main(["info"]) == 0
        assert not old.exists()


@pytest.mark.parametrize("command", ["info", "tree", "dump", "top", "dashboard"])
def test_an_unknown_name_lists_those_that_exist(command: str, folder: Path, capsys: Out) -> None:
    pytest.importorskip({"top": "rich", "dashboard": "starlette"}.get(command, "sys"))
    with ActorSystem("shop\x1b[31m", workers=1, observable=True):
        assert main([command, "shup"]) == 1
    there = f"{os.getpid()} shop\ufffd[31m"
    said = (
        f"callboard {command}: no system or process 'shup' can be observed; others can: {there}\n"
    )
    assert capsys.readouterr().err == said


def test_a_tree_has_no_control_characters(folder: Path, capsys: Out) -> None:
    with ActorSystem("shop", workers=1, observable=True) as system:
        system.spawn(Box, name="red \x1b[31m")
        assert main(["tree"]) == 0
    assert "\n  red \ufffd[31m " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["info", "tree", "dump", "top"])
def test_a_process_that_does_not_answer_is_named_and_the_others_are_shown(
    command: str, folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "top":
        pytest.importorskip("rich")

    patience: list[float] = []

    def briefly(path: Path, question: str, seconds: float = endpoint.PATIENCE) -> Any:
        if path.name.startswith(f"{os.getppid()}-"):
            patience.append(seconds)
            seconds = 0.2
        return ask(path, question, seconds)

    monkeypatch.setattr(commands, "ask", briefly)
    with ActorSystem("shop", workers=1, observable=True), socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(folder / f"{os.getppid()}-0.sock"))  # as if this were stopped
        stopped.listen()
        options = ["shop", "--once", "--every", "0.05"] if command == "top" else []
        assert main([command, *options]) == 0
    found = capsys.readouterr()
    assert found.err == f"process {os.getppid()} does not answer\n"
    assert "shop" in found.out
    assert patience == [endpoint.BRIEF_PATIENCE]


def test_a_system_that_is_collected_is_observed_no_more(folder: Path) -> None:
    systems = [ActorSystem(workers=1, observable=True)]
    assert list(folder.iterdir())

    def drop() -> None:
        systems.clear()
        gc.collect()

    with pytest.warns(ResourceWarning, match="was garbage-collected"):
        drop()
    assert list(folder.iterdir()) == []


def test_silent_observers_do_not_hold_up_others(folder: Path, capsys: Out) -> None:
    with ActorSystem("shop", workers=1, observable=True), contextlib.ExitStack() as ends:
        (path,) = folder.iterdir()
        for _ in range(3 * endpoint.MOST_QUESTIONS):
            silent = ends.enter_context(socket.socket(socket.AF_UNIX))
            silent.settimeout(60)
            silent.connect(str(path))
        assert main(["info"]) == 0
        assert capsys.readouterr() == (f"{os.getpid()} shop: no actors\n", "")
        assert len([one for one in threading.enumerate() if one.name == "shop-asked"]) <= 100
    for thread in threading.enumerate():
        if thread.name == "shop-asked":
            thread.join(60)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    "said",
    [
        b"[]", b"7", b'"pid"', b"{}", b'{"pid": "1", "parent": 1, "system": "x"}', b"[" * 100_000,
        b'{"pid": 1, "parent": 1, "system": ["x"]}', b"\xff", b"null",
        b'{"pid": 1, "parent": 1, "system": "x"}',
        b'{"pid": 1, "parent": 1, "system": "x", "reasons": [1]}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["info", "tree"])
def test_an_odd_answer_is_one_line(command: str, said: bytes, folder: Path, capsys: Out) -> None:
    path = folder_of_sockets() / f"{os.getppid()}-0.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            while True:
                with contextlib.suppress(ConnectionError), listener.accept()[0] as connection:
                    if not connection.recv(100):
                        return
                    connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            assert main([command]) in (0, 1)
        finally:
            with socket.socket(socket.AF_UNIX) as last:
                last.connect(str(path))
            thread.join(30)
    assert len(capsys.readouterr().err.splitlines()) <= 2


def test_a_forked_child_leaves_the_socket_to_its_parent(folder: Path) -> None:
    program = """
import os, sys
from callboard import ActorSystem
from callboard.observing.endpoint import ask, folder_of_sockets
with ActorSystem("shop", workers=1, observable=True):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    (path,) = folder_of_sockets().iterdir()
    print(ask(path, "info")["system"])
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "shop\n"
