"""A server holds as much memory as docs/serve.md says, and frees it with the connection."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from callboard.remote import Server
from callboard.remote.protocol.kinds import MessageKind
from callboard.remote.wire.frames import LENGTH
from tests.remote.conftest import RawClient, eventually, hello

CLIENTS = 12
ANNOUNCED = 16 * 2**20 - LENGTH.size
FIRST = 256 * 1024  # what a large frame begins with
CHUNK = 64 * 1024  # what each connection has


@pytest.fixture
def traced() -> Iterator[Callable[[], int]]:
    """Tell how many bytes are allocated; no collector of cycles runs."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()


def received(server: Server) -> int:
    return sum(peer._link.received for peer in [*server._peers])


@pytest.mark.parametrize("part", [100, 1_000_000])
def test_frames_that_are_announced_take_what_has_come_and_go_with_the_connection(
    part: int, server: Server, raw: Callable[[], RawClient], traced: Callable[[], int]
) -> None:
    data = LENGTH.pack(ANNOUNCED) + b"\x10" + bytes(part)
    before = traced()
    clients = [raw() for _ in range(CLIENTS)]
    for client in clients:
        client.send(hello())
        assert client.receive() is not None
        client.send(data)
    eventually(lambda: received(server) == CLIENTS * (len(hello()) + len(data)), "all has come")
    held = traced() - before
    # Each has a chunk here as well.
    assert held < CLIENTS * (2 * CHUNK + max(FIRST, 2 * part) + 100_000)
    for client in clients:
        client.socket.close()
    eventually(lambda: server.health()["connections"] == 0, "all have left")
    del client, clients
    # What is left are the chunks of the test's own clients.
    eventually(lambda: traced() - before < CLIENTS * (CHUNK + 50_000), "the memory is free")


def test_large_frames_that_came_go_with_the_connection(
    server: Server, raw: Callable[[], RawClient], traced: Callable[[], int]
) -> None:
    before = traced()
    client = raw()
    client.send(hello())
    assert client.receive() is not None
    for _ in range(4):
        client.send(MessageKind.ASK.frame(0, rest=b"\xc1" + bytes(3_000_000)))
        answer = client.receive()
        assert answer is not None
        assert answer.kind == MessageKind.FAILED
    assert traced() - before > 3_000_000, "kept for the next frame"
    client.socket.close()
    eventually(lambda: server.health()["connections"] == 0, "it has left")
    eventually(lambda: traced() - before < CHUNK + 200_000, "the memory is free")
