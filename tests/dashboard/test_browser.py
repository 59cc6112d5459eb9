"""The page in a browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from callboard import Actor, ActorSystem
from callboard.dashboard import serve_dashboard
from callboard.nets import box, star
from callboard.observing.branches import MOST_LINES
from callboard.streams import entry
from tests.dashboard.browser import CHROMIUM, Browser
from tests.observing.actors import Box, Holder, Passage
from tests.waiting import until

pytest_plugins = ["tests.observing.sockets"]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

EVIL = "<img src=x onerror=document.title='evil'>"
"""A text that would be markup."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


class Parent(Actor[Any]):
    """Has children, and fails when it is told so."""

    def __init__(self, children: int) -> None:
        for i in range(children):
            self.spawn(Box, name=f"child-{i}")

    def receive(self, message: Any) -> None:
        raise ValueError(message)


def shows(text: str) -> str:
    return f"document.body.innerText.includes({text!r})"


def test_a_system_is_shown_and_markup_is_text(browser: Browser) -> None:
    passage = Passage()
    with ActorSystem("shop", workers=1, monitoring="mailboxes") as system:
        system.spawn(Box, name=EVIL).tell("fail")
        system.drain(60)
        holder: Any = system.spawn(Holder, name="holder")
        holder.tell(passage)
        assert passage.entered.wait(30)
        browser.open(serve_dashboard(system).url)
        browser.wait_for(shows("/holder"))
        text = browser.text()
        assert browser.value("document.title") == "shop - callboard"
        assert browser.value("document.images.length") == 0
        passage.leave.set()
        until(lambda: holder.messages == 1)
    assert "shop: 1 actor," in text
    assert EVIL in text  # its failure


def test_a_wrong_token_shows_nothing(browser: Browser) -> None:
    with ActorSystem("shop", workers=1) as system:
        system.spawn(Box, name="box")
        browser.open(serve_dashboard(system).url[:-3])
        browser.wait_for(shows("the token is wrong"))
        assert "/box" not in browser.text()


def test_an_actor_that_fails_appears(browser: Browser) -> None:
    with ActorSystem("shop", workers=1) as system:
        box = system.spawn(Box, name="box")
        browser.open(serve_dashboard(system).url)
        browser.wait_for(shows("/box"))
        assert "failures" not in browser.text()
        box.tell("fail")
        browser.wait_for(shows("/box ValueError: fail"))


def test_a_run_is_drawn_with_its_rates_and_its_slowest_operator(browser: Browser) -> None:
    def slow(row: int) -> int:
        for _ in range(20_000):
            row += 0
        return row

    over = threading.Event()
    with ActorSystem("shop", workers=1) as system:
        first, second = entry("left").map(slow), entry("right").map(abs, name=EVIL)
        run = system.run(first.union(second).collect(), batch_size=10)

        def feed() -> None:
            while not over.wait(0.01):
                run.send("left", range(10))

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            browser.open(serve_dashboard(system).url)
            browser.wait_for("document.querySelectorAll('.run rect:not(.load)').length === 6")
            browser.wait_for("document.querySelector('.run g.slowest text').textContent === 'slow'")
            # From left to slow, from there to the union, and from that to the collector.
            browser.wait_for(
                "[...document.querySelectorAll('.run svg > text')].filter("
                "one => /^[1-9][0-9,]*\\/s$/.test(one.textContent)).length >= 3"
            )
            assert browser.value("document.querySelectorAll('.run svg > path').length") == 5
            assert browser.value("document.images.length") == 0
            assert EVIL in browser.value("document.querySelector('.run svg').textContent")
        finally:
            over.set()
            feeder.join(60)
        run.finish(60)
        browser.wait_for("document.querySelector('.run') === null")


def test_a_net_is_drawn_with_the_records_that_came(browser: Browser) -> None:
    @box("(n) -> (n) | (done)")
    def down(n: int) -> Any:
        yield {"n": n - 1} if n > 0 else {"done": n}

    over = threading.Event()
    with ActorSystem("shop", workers=1) as system, system.run(star(down, "{done}")) as run:

        def feed() -> None:
            while not over.wait(0.01):
                run.tell({"n": 3})

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            browser.open(serve_dashboard(system).url)
            browser.wait_for("document.querySelector('.run path.back')")
            browser.wait_for(
                "[...document.querySelectorAll('.run svg > text')].some("
                "one => /^again [1-9][0-9,]*\\/s$/.test(one.textContent))"
            )
        finally:
            over.set()
            feeder.join(60)


def test_branches_of_the_tree_open_and_close(browser: Browser) -> None:
    with ActorSystem("shop", workers=1) as system:
        parent = system.spawn(Parent, 120, name="parent")
        parent.ready.result(30)
        browser.open(serve_dashboard(system).url)
        browser.wait_for(shows("/parent"))
        assert browser.value("document.querySelectorAll('#tree .line').length") == 0
        browser.value("document.getElementById('forest').open = true")
        browser.wait_for("document.querySelectorAll('#tree .line').length === 1")
        browser.value("document.querySelector('#tree button').click()")
        browser.wait_for("document.querySelectorAll('#tree .line').length === 52")
        browser.value("[...document.querySelectorAll('#tree button')].at(-1).click()")
        browser.wait_for("document.querySelectorAll('#tree .line').length === 121")
        browser.value("document.querySelector('#tree button').click()")
        browser.wait_for("document.querySelectorAll('#tree .line').length === 1")


def test_a_tree_is_cut_and_says_so(browser: Browser) -> None:
    with ActorSystem("shop", workers=1) as system:
        for name in ("first", "second"):
            system.spawn(Parent, MOST_LINES, name=name).ready.result(30)
        browser.open(serve_dashboard(system).url)
        browser.value("document.getElementById('forest').open = true")
        for number in (1, MOST_LINES + 2):
            browser.value(f"opened.set('{number}', {MOST_LINES})")
        browser.wait_for(shows("The rest is not shown"))
        lines = browser.value("document.querySelectorAll('#tree .line').length")
        assert lines == MOST_LINES + 1


def test_dead_letters_are_shown_with_their_messages_as_text(browser: Browser) -> None:
    with ActorSystem("shop", workers=1) as system:
        page = serve_dashboard(system)
        gone = system.spawn(Box, name="gone")
        gone.stop()
        gone.ended.result(30)
        gone.tell({"article": EVIL})
        browser.open(page.url)
        browser.wait_for(shows("stopped"))
        assert EVIL not in browser.text()
        browser.value("document.getElementById('postbox').open = true")
        browser.wait_for("document.querySelector('td.message')")
        assert EVIL in browser.value("document.querySelector('td.message').textContent")
        assert browser.value("document.images.length") == 0


def test_actors_are_searched_by_path_and_by_class(browser: Browser) -> None:
    with ActorSystem("shop", workers=1) as system:
        system.spawn(Box, name="first")
        system.spawn(Parent, 1, name="second")
        browser.open(serve_dashboard(system).url)
        browser.wait_for(shows("/second/child-0"))
        for part, found in (("Par", ["/second"]), ("irs", ["/first"]), ("Nobody", [])):
            browser.value(f"document.getElementById('part').value = {part!r}")
            rows = "[...document.querySelectorAll('#actors tbody tr')]"
            paths = f"{rows}.map(row => row.cells[0].textContent).join()"
            browser.wait_for(f"{paths} === {','.join(found)!r}")


@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_screen_is_not_scrolled_to_the_side(browser: Browser, dark: bool) -> None:
    passage = Passage()
    with ActorSystem("s" * 200, workers=1, monitoring="mailboxes") as system:
        system.spawn(Box, name="x" * 180).tell("fail")
        system.spawn(Holder, name="h" * 150).tell(passage)
        run = system.run(entry("n").map(abs, name="m" * 100).filter(bool).collect())
        passage.leave.set()
        browser.resize(360, 740, dark=dark)
        browser.open(serve_dashboard(system).url)
        browser.value("document.getElementById('forest').open = true")
        browser.value("document.getElementById('postbox').open = true")
        browser.wait_for(
            "document.querySelector('.run svg') && document.querySelector('#tree div')"
        )
        widths = browser.value("[document.documentElement.scrollWidth, innerWidth]")
        assert widths == [360, 360], "it has a scroll bar"
        ground = browser.value("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(22, 22, 22)" if dark else "rgb(255, 255, 255)")
        browser.resize(1000, 800)
        run.finish(60)


def test_observers_that_are_killed_change_nothing(folder: Path, tmp_path: Path) -> None:
    def watched() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name.endswith("-watched")]

    with ActorSystem("shop", workers=1, observable=True) as system:
        box = system.spawn(Box, name="box")
        run = system.run(entry("n").map(abs).collect())
        command = [sys.executable, "-m", "callboard", "dashboard", "shop"]
        for i, victim in enumerate(("dashboard", "browser", "dashboard")):
            with (
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process,
                Browser(tmp_path / str(i)) as browser,
            ):
                assert process.stdout is not None
                browser.open(process.stdout.readline().strip())
                browser.wait_for(shows("/box"))
                if victim == "browser":
                    browser.kill()
                box.tell(i)
                run.send("n", range(100))
                os.kill(process.pid, signal.SIGKILL)
            until(lambda: not watched())
        system.drain(60)
        assert box.statistics().messages == 3
        assert run.finish(60) == [*range(100)] * 3
        assert system.dead_letters.count == 0
        with suppress(OSError):
            assert [one.name for one in folder.iterdir()] == [f"{os.getpid()}-0.sock"]
