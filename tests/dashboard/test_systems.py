"""Systems that a dashboard shows together: pools with their processes, and shards."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from callboard import Actor, ActorSystem, ConfigError
from callboard.dashboard import serve_dashboard
from callboard.observing.commands import systems_of
from callboard.remote import Server, connect, serve_entries
from tests.dashboard.asking import get, picture
from tests.observing.actors import Box
from tests.waiting import until

pytest_plugins = ["tests.observing.sockets"]

APP = """
from callboard import Actor

class Counter(Actor):
    def receive(self, message):
        return message

def build(system):
    return {"counter": system.spawn(Counter, name="counter")}
"""


class Work(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


def names(seen: dict[str, Any]) -> list[str]:
    return [one["system"] for one in seen["systems"]]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.syspath_prepend(str(root))


def test_processes_of_a_pool_are_shown_and_looked_into(folder: Path) -> None:
    with ActorSystem("shop", workers=1, observable=True) as system:
        pool = system.pool(Work, processes=2, name="work")
        for ref in pool.refs:
            ref.ask(1).result(60)
        url = serve_dashboard(system).url
        until(lambda: len(systems_of(None)) == 3)
        seen = picture(url)
        assert (seen["key"], names(seen)[0], sorted(names(seen)[1:])) == (
            "own",
            "shop",
            ["work-1", "work-2"],
        )
        (run,) = seen["runs"]
        assert run["title"] == "pool /work"
        assert run["drawing"] is None
        assert [one["name"] for one in run["processes"]] == ["/work/1", "/work/2"]
        pids = {one["pid"] for one in run["processes"]}
        assert pids == {one["pid"] for one in seen["systems"][1:]}
        assert all(one["started"] and one["ends"] == 0 for one in run["processes"])
        inside = picture(url, system=seen["systems"][1]["key"])
        assert inside["system"] == seen["systems"][1]["system"]
        assert "Work" in [one["cls"] for one in inside["actors"]]


def test_a_pool_of_a_system_that_is_not_observable_has_no_sockets(folder: Path) -> None:
    with ActorSystem("shop", workers=1) as system:
        system.pool(Work, processes=1).ask(1).result(60)
        assert names(picture(serve_dashboard(system).url)) == ["shop"]
        assert not folder.exists()


@pytest.mark.parametrize("key", ["nobody", "../own", "1-0"])
def test_a_system_that_is_not_in_the_list_is_refused(key: str, folder: Path) -> None:
    with ActorSystem("shop", workers=1, observable=True) as system:
        status, text, _ = get(serve_dashboard(system).url, f"picture?most=1&system={key}")
    assert (status, text) == (400, f"no system has the key {key!r}")


def test_a_served_system_says_how_its_server_is(tmp_path: Path) -> None:
    with ActorSystem("shop", workers=1) as system:
        box: Any = system.spawn(Box, name="box")
        server = Server(system, serve_entries(box), f"unix:{tmp_path}/s")
        url = serve_dashboard(system).url
        with connect(str(server.address)) as connection:
            connection.ref("box").tell(1)
            connection.flush(60)
            (found,) = picture(url)["served"]
            assert found["address"] == str(server.address)
            assert (found["state"], found["connections"], found["handled"]) == ("serving", 1, 1)
        server.stop()


def test_servers_elsewhere_are_shown_by_their_health(tmp_path: Path) -> None:
    with ActorSystem("there", workers=1) as other, ActorSystem("here", workers=1) as system:
        box: Any = other.spawn(Box, name="box")
        server = Server(other, serve_entries(box), f"unix:{tmp_path}/s")
        with connect(str(server.address)) as connection:
            url = serve_dashboard(system, servers=[connection]).url

            def state() -> str:
                (found,) = picture(url)["servers"]
                assert found["address"] == str(server.address)
                text: str = found["state"]
                return text

            until(lambda: state() == "serving")
            server.stop()
            until(lambda: state().startswith("not reached: "))


def test_a_wrong_connection_is_refused() -> None:
    with (
        ActorSystem("shop", workers=1) as system,
        pytest.raises(ConfigError, match="connections to servers, got 'tcp:shop:1'"),
    ):
        serve_dashboard(system, servers=["tcp:shop:1"])


def test_shards_are_shown_together(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with ExitStack() as stack:
        for i in range(2):
            options = ["--bind", f"unix:{tmp_path}/{i}", "--shard", f"{i}/2", "--observable"]
            command = [sys.executable, "-m", "callboard", "serve", "app:build", *options]
            shard = stack.enter_context(
                subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(shard.terminate)
            assert shard.stdout is not None
            assert shard.stdout.readline().startswith("serving on")
        command = [sys.executable, "-m", "callboard", "dashboard", "serve"]
        process = stack.enter_context(
            subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        seen = picture(url)
        assert {one["served"][0]["shard"] for one in seen["systems"]} == {"0/2", "1/2"}
        for one in seen["systems"]:
            (server,) = picture(url, system=one["key"])["served"]
            assert server["address"] == one["served"][0]["address"]
