"""A child that a served actor forks keeps nothing of the server."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.remote import Server, connect, serve_entries
from tests.remote.conftest import DEADLINE, eventually


class Forking(Actor[Any]):
    """Forks a child, which lives until a pipe is closed, and answers with its process id."""

    def __init__(self, pipe: tuple[int, int]) -> None:
        self.ends = pipe

    def receive(self, message: Any) -> int:
        child = os.fork()
        if child == 0:
            os.close(self.ends[1])
            os.read(self.ends[0], 1)
            os._exit(0)
        return child


def serve(system: ActorSystem, folder: Path, pipe: tuple[int, int]) -> Server:
    entries = serve_entries({"forking": system.spawn(Forking, pipe)})
    return Server(system, entries, f"unix:{folder}/s", state=folder / "state")


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    both = os.pipe()
    yield both
    os.close(both[0])


def opened(process: int | str) -> set[str]:
    """Return what a process has open."""
    folder = f"/proc/{process}/fd"
    found = set()
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):  # that of the listing
            found.add(os.readlink(f"{folder}/{name}"))
    return found


def has_let_go(process: int, kept: set[str]) -> bool:
    return not kept & opened(process)


def test_a_server_starts_though_a_child_lives_on(tmp_path: Path, pipe: tuple[int, int]) -> None:
    with ActorSystem(workers=2) as system:
        server = serve(system, tmp_path, pipe)
        connection = connect(str(server.address), timeout=DEADLINE)
        children = [connection.ref("forking").ask("fork").result(DEADLINE)]
        try:
            (peer,) = server._peers
            link = connection._own_session._link
            assert link is not None
            sockets = [server._listener.socket, peer._link._socket, link._socket]
            kept = {f"socket:[{os.fstat(each.fileno()).st_ino}]" for each in sockets}
            kept.add(f"{tmp_path}/state/lock")
            assert kept <= opened("self")
            children.append(connection.ref("forking").ask("fork").result(DEADLINE))
            for child in children:
                eventually(partial(has_let_go, child, kept), "the child has let go")
            connection.close()
            server.stop()
            again = serve(system, tmp_path, pipe)
            connect(str(again.address), timeout=DEADLINE).close()
            again.stop()
        finally:
            os.close(pipe[1])
            for child in children:
                os.waitpid(child, 0)
    assert not (tmp_path / "s").exists()
