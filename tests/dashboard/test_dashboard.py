"""The dashboard: its token, its pictures, and the page in a browser."""

from __future__ import annotations

import re
import signal
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
from callboard.dashboard.page import BODY, PAGE
from callboard.dashboard.script import SCRIPT
from callboard.dashboard.servers import RemoteServers
from callboard.dashboard.viewers import MOST_VIEWERS, Viewers
from callboard.streams import entry
from tests.dashboard.asking import get, picture
from tests.observing.actors import Box, Passage
from tests.waiting import until

pytest_plugins = ["tests.observing.sockets"]


def test_pictures_have_what_happened_since_the_last_one() -> None:
    with ActorSystem("shop", workers=1, monitoring="mailboxes") as system:
        box = system.spawn(Box, name="box")
        box.tell(1)
        system.drain(60)
        url = system.serve_dashboard().url
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


def test_the_slowest_operator_of_a_run_is_marked() -> None:
    passage = Passage()

    def slow(row: int) -> int:
        for _ in range(100_000):
            row += 0
        if row == 50:
            passage.pass_through()
        return row

    with ActorSystem("shop", workers=1) as system:
        url = system.serve_dashboard().url
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
        url = system.serve_dashboard().url
        status, text, _ = get(url, "picture?most=1", token=token)
        assert status == 401
        assert "secret" not in text
        status, text, _ = get(url, "", token=token)
        assert status == 200
        assert "secret" not in text
        assert get(url, "elsewhere")[0] == 404


@pytest.mark.parametrize("query", ["most=x", "most=", "most=99999999999", "most=5&sort=age"])
def test_wrong_questions_are_refused(query: str) -> None:
    with ActorSystem("shop", workers=1) as system:
        url = system.serve_dashboard().url
        assert get(url, f"picture?{query}")[0] == 400
        assert picture(url)["live"] == 0


def test_the_page_makes_text_only_and_nothing_else_may_run_in_it() -> None:
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in PAGE
    assert {f"'{name}'" for name in re.findall(r'id="(\w+)"', BODY)} >= set(
        re.findall(r"at\(('\w+')\)", SCRIPT)
    )
    with ActorSystem("shop", workers=1) as system:
        _, _, headers = get(system.serve_dashboard().url)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Cache-Control"] == "no-store"


def test_it_ends_with_its_system() -> None:
    with ActorSystem("shop", workers=1) as system:
        first, second = system.serve_dashboard(), system.serve_dashboard()
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
        with pytest.raises(ConfigError, match="16 characters"):
            system.serve_dashboard(token="short")
        with pytest.raises(ConfigError, match="`port`"):
            system.serve_dashboard(port=-1)
        token = "0123456789abcdef"
        page = system.serve_dashboard(token=token)
        assert page.url.endswith(f"/#{token}")
        assert token not in repr(page)
        port = int(page.url.split(":")[2].partition("/")[0])
        with pytest.raises(OSError, match="in use"):
            system.serve_dashboard(port=port)


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


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with (
        ActorSystem("shop", workers=1) as system,
        pytest.raises(ModuleNotFoundError, match=r"pip install 'callboard\[dashboard\]'"),
    ):
        system.serve_dashboard()


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
