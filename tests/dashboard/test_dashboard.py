"""The dashboard: its token, its pictures, and the page in a browser."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from callboard import ActorSystem, CallboardError, ConfigError
from callboard.__main__ import main
from callboard.dashboard import app, serve_dashboard, serving
from callboard.dashboard.app import PAGE, SCRIPT
from callboard.dashboard.servers import RemoteServers
from callboard.dashboard.viewers import MOST_VIEWERS, Viewers
from callboard.streams import entry
from tests.dashboard.asking import get, picture
from tests.observing.actors import Box, Passage
from tests.waiting import until

pytest_plugins = ["tests.observing.sockets"]


def test_a_picture_has_the_events_since_the_last_one() -> None:
    with ActorSystem("shop", workers=1, monitoring="mailboxes") as system:
        box = system.spawn(Box, name="box")
        box.tell(1)
        system.drain(60)
        url = serve_dashboard(system).url
        first = picture(url, viewer="a")
        assert (first["system"], first["live"]) == ("shop", 1)
        box.tell(2)
        system.spawn(Box).tell("fail")
        system.drain(60)
        found = picture(url, viewer="a", sort="rate")
        (row,) = found["actors"]
        assert row["path"] == "/box"
        assert row["rate"] > 0
        assert found["failures"] == 1
        assert picture(url, viewer="b")["actors"][0]["rate"] == 0  # its first
        assert picture(url, viewer="b", part="nobody")["actors"] == []


def test_a_name_that_utf8_cannot_encode_is_shown() -> None:
    with ActorSystem("shop", workers=1) as system:
        system.spawn(Box, name="odd\ud800").tell(1)
        system.drain(60)
        (row,) = picture(serve_dashboard(system).url)["actors"]
        assert row["path"].startswith("/odd")


def test_the_slowest_operator_of_a_run_is_marked() -> None:
    passage = Passage()

    def slow(row: int) -> int:
        for _ in range(100_000):
            row += 0
        if row == 50:
            passage.pass_through()
        return row

    with ActorSystem("shop", workers=1) as system:
        url = serve_dashboard(system).url
        run = system.run(entry("n").filter(bool).map(slow).collect(), batch_size=1)
        picture(url)
        run.send("n", range(1, 60))
        assert passage.entered.wait(60)
        (found,) = picture(url)["runs"]
        assert found["operators"][found["slowest"]]["name"] == "slow"
        passage.leave.set()
        run.finish(60)


@pytest.mark.parametrize("token", ["", "wrong", "\xe9"])
def test_without_the_token_nothing_is_seen(token: str) -> None:
    with ActorSystem("secret", workers=1) as system:
        url = serve_dashboard(system).url
        status, text, _ = get(url, "picture?most=1", token=token)
        assert status == 401
        assert "secret" not in text
        status, text, _ = get(url, "", token=token)
        assert status == 200
        assert "secret" not in text
        assert get(url, "elsewhere")[0] == 404


@pytest.mark.parametrize(
    "query",
    [
        "most=x",
        "most=",
        "most=99999999999",
        "most=000000001000000",
        "most=5&sort=age",
        "most=5&branches=0:0000000001000000",
    ],
)
def test_wrong_questions_are_refused(query: str) -> None:
    with ActorSystem("shop", workers=1) as system:
        url = serve_dashboard(system).url
        assert get(url, f"picture?{query}")[0] == 400
        assert picture(url)["live"] == 0


def test_the_page_makes_text_only_and_nothing_else_may_run_in_it() -> None:
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in PAGE
    assert {f"'{name}'" for name in re.findall(r'id="(\w+)"', PAGE)} >= set(
        re.findall(r"at\(('\w+')\)", SCRIPT)
    )
    with ActorSystem("shop", workers=1) as system:
        _, _, headers = get(serve_dashboard(system).url)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Cache-Control"] == "no-store"


def test_the_script_is_valid_javascript(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    (tmp_path / "page.js").write_text(SCRIPT)
    subprocess.run([node, "--check", tmp_path / "page.js"], check=True)


def test_it_ends_with_its_system() -> None:
    with ActorSystem("shop", workers=1) as system:
        first, second = serve_dashboard(system), serve_dashboard(system)
        picture(first.url)
        first.stop()
        with pytest.raises(urllib.error.URLError):
            picture(first.url)
        picture(second.url)
    with pytest.raises(urllib.error.URLError):
        picture(second.url)
    until(lambda: not any(thread.name == "dashboard" for thread in threading.enumerate()))


def test_options_are_checked_and_a_port_is_taken_once() -> None:
    with ActorSystem("shop", workers=1) as system:
        with pytest.raises(ConfigError, match="16 to 256 characters"):
            serve_dashboard(system, token="short")
        for token in (
            "with a space 123456",
            "1234567890\u00e4bcdefg",
            "1234567890%20abcdef",
            "a" * 257,
        ):
            with pytest.raises(ConfigError, match="`token` must be a string of 16 to 256 char"):
                serve_dashboard(system, token=token)
        with pytest.raises(ConfigError, match="`port`"):
            serve_dashboard(system, port=-1)
        token = "0123456789abcdef"
        assert picture(serve_dashboard(system, token="._~!$&'()*+,;=:@/?-").url)["live"] == 0
        page = serve_dashboard(system, token=token)
        assert page.url.endswith(f"/#{token}")
        assert token not in repr(page)
        port = int(page.url.split(":")[2].partition("/")[0])
        with pytest.raises(OSError, match="in use"):
            serve_dashboard(system, port=port)


def test_browsers_that_are_gone_are_forgotten() -> None:
    closed: list[int] = []

    class View:
        def __init__(self) -> None:
            self.number = len(views)
            views.append(self)

        def look(self, **question: Any) -> dict[str, Any]:
            raise CallboardError("not now")

        def close(self) -> None:
            closed.append(self.number)

    class Known:
        def find(self) -> list[dict[str, Any]]:
            return [{"key": "own"}]

        def begin(self, key: str) -> View:
            return View()

    views: list[View] = []
    viewers = Viewers(Known(), RemoteServers([]))
    for name in [*map(str, range(MOST_VIEWERS)), "0", "new"]:
        with pytest.raises(CallboardError):
            viewers.picture(name, "")
    assert closed == [1]  # which asked longest ago
    viewers.close()
    assert sorted(closed) == list(range(MOST_VIEWERS + 1))


def test_a_silent_process_does_not_hold_up_viewers_of_another() -> None:
    entered, released = threading.Event(), threading.Event()

    class View:
        def look(self, **question: Any) -> dict[str, Any]:
            raise CallboardError("seen")

    class Known:
        searches = 0

        def find(self) -> list[dict[str, Any]]:
            self.searches += 1
            if self.searches > 1:
                entered.set()
                released.wait(60)
            return [{"key": "own"}]

        def begin(self, key: str) -> View:
            if key == "silent":
                entered.set()
                released.wait(60)
            return View()

    viewers = Viewers(Known(), RemoteServers([]))

    def look(name: str, key: str) -> None:
        with pytest.raises(CallboardError, match="seen"):
            viewers.picture(name, key)

    look("a", "own")  # from here on there is a list
    waiting = [threading.Thread(target=look, args=("b", "silent"))]
    waiting[0].start()
    assert entered.wait(60)
    entered.clear()
    look("a", "own")
    viewers._listed_at = 0.0  # and that is old: the next one looks for a new one
    waiting.append(threading.Thread(target=look, args=("c", "own")))
    waiting[1].start()
    assert entered.wait(60)
    look("a", "own")
    assert all(thread.is_alive() for thread in waiting)
    released.set()
    for thread in waiting:
        thread.join(60)
    viewers.close()


def connected(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    return socket.create_connection((host, int(port)), 60)


def test_silent_connections_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 8)
    monkeypatch.setattr(app, "FIRST_REQUEST", 600.0)  # so that time closes none
    before = len(os.listdir("/proc/self/fd"))
    with ActorSystem("shop", workers=1) as system, contextlib.ExitStack() as ends:
        url = serve_dashboard(system).url
        picture(url)
        silent = [ends.enter_context(contextlib.closing(connected(url))) for _ in range(100)]
        for connection in silent[:-8]:  # their ends have been closed, the oldest first
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        assert len(os.listdir("/proc/self/fd")) < before + len(silent) + 32
        for _ in range(20):
            assert picture(url)["live"] == 0


def test_a_connection_without_a_whole_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "FIRST_REQUEST", 0.05)
    with ActorSystem("shop", workers=1) as system:
        url = serve_dashboard(system).url
        for said in (b"", b"GET / HTTP/1.1\r\nHost: here\r\n"):
            with contextlib.closing(connected(url)) as connection:
                connection.sendall(said)
                with contextlib.suppress(ConnectionResetError):
                    assert connection.recv(1) == b""
        assert picture(url)["live"] == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_leaves_the_sockets_to_its_parent() -> None:
    with ActorSystem("shop", workers=1) as system:
        page = serve_dashboard(system)
        with contextlib.closing(connected(page.url)) as connection:
            picture(page.url)
            entered, leave = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(leave)
                connection.close()
                os.read(entered, 1)  # until the parent has looked
                os._exit(0)
            try:
                page.stop()
                with contextlib.suppress(ConnectionResetError):
                    assert connection.recv(1) == b""
                with pytest.raises(ConnectionRefusedError):
                    connected(page.url)
            finally:
                os.close(leave)
                os.close(entered)
                os.waitpid(child, 0)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with (
        ActorSystem("shop", workers=1) as system,
        pytest.raises(ModuleNotFoundError, match=r"pip install 'callboard\[dashboard\]'"),
    ):
        serve_dashboard(system)


def test_the_command_shows_another_process(folder: Path, capsys: Any) -> None:
    assert main(["dashboard"]) == 1
    assert "ActorSystem(observable=True)" in capsys.readouterr().err
    with ActorSystem("shop", workers=1, observable=True) as system:
        system.spawn(Box, name="box")
        system.drain(60)
        command = [sys.executable, "-m", "callboard", "dashboard", "shop"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:")
            assert picture(url)["actors"][0]["path"] == "/box"
            system.stop()
            status, text, _ = get(url, "picture?most=1")
            assert (status, text) == (503, "the system has ended")
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
