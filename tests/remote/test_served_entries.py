"""Things that can be served: actors, and graphs by their entries."""

from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem, ConfigError
from callboard.remote import Server, connect, serve_entries
from callboard.remote.errors import RemoteCallError
from callboard.streams import entry
from callboard.streams.errors import RunEnded, StreamError
from tests.remote.conftest import DEADLINE, Notes, eventually


def test_a_graph_that_has_failed_is_in_the_health_once(tmp_path: Path) -> None:
    rows = (
        entry("left")
        .map(lambda number: 1 // number)
        .merge(entry("right"), by=lambda number: number)
    )
    with ActorSystem(workers=2) as system:
        run = system.run(rows.collect())
        server = Server(system, serve_entries({"graph": run}), f"unix:{tmp_path}/s")
        with connect(str(server.address)) as connection:
            health = connection.health().result(DEADLINE)
            assert (health["state"], health["failures"], health["trouble"]) == ("serving", 0, "")
            connection.ref("graph/left").tell(0)
            eventually(lambda: run.failure is not None, "it fails")
            health = connection.health().result(DEADLINE)
            assert (health["state"], health["failures"]) == ("failing", 1)
            assert health["trouble"] == (
                "the graph of 'graph/left' has failed: operator 'map' failed at input 0, 0: "
                "ZeroDivisionError: integer division or modulo by zero"
            )
        server.stop()
        with pytest.raises(StreamError):
            run.finish(DEADLINE)


def test_a_graph_takes_rows_by_its_entries(tmp_path: Path) -> None:
    graph = entry("numbers").map(lambda number: number * 2).collect()
    with ActorSystem(workers=2) as system:
        run = system.run(graph)
        server = Server(system, serve_entries({"doubles": run}), f"unix:{tmp_path}/s")
        with connect(str(server.address)) as connection:
            doubles = connection.ref("doubles")
            doubles.tell_many(range(2_000))
            with pytest.raises(RemoteCallError, match="takes rows, and does not answer"):
                doubles.ask(1).result(DEADLINE)
        server.drain(DEADLINE)
        with pytest.raises(RunEnded):
            run.send("numbers", [1])
        assert run.finish() == [number * 2 for number in range(2_000)]


@pytest.mark.parametrize("built", [None, 3, {}, {"a": 1}, {1: None}, ["a"]])
def test_build_must_return_entry_points(built: Any) -> None:
    with pytest.raises(ConfigError, match="build"):
        serve_entries(built)


def test_a_ref_alone_is_served_by_its_name_and_a_run_by_its_entries() -> None:
    with ActorSystem() as system:
        assert [*serve_entries(system.spawn(Notes, name="only"))] == ["only"]
        run = system.run(entry("left").union(entry("right")).collect())
        assert [*serve_entries(run)] == ["left", "right"]
        assert [*serve_entries({"both": run})] == ["both/left", "both/right"]
