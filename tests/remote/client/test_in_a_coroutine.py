"""A connection in an event loop: waits are awaited, and blocking calls are refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from callboard import AskTimeout, CallboardError, WouldBlock
from callboard.remote import aconnect, connect
from callboard.remote.sharding.connection import ShardedConnection, connect_sharded
from tests.remote.conftest import Start

DEADLINE = 30.0


async def test_calls_that_would_wait_are_refused_and_say_what_to_await(start: Start) -> None:
    server = start()
    url = str(server.address)
    with pytest.raises(WouldBlock, match=r"connect\(\) would .*: await aconnect\(\)"):
        connect(url)
    with pytest.raises(
        WouldBlock, match=r"connect_sharded\(\) would .*: await aconnect_sharded\(\)"
    ):
        connect_sharded([url])
    connection = await aconnect(url, timeout=DEADLINE)
    with pytest.raises(WouldBlock, match=r"close\(\) would .*: await aclose\(\)"):
        connection.close()
    with pytest.raises(WouldBlock, match=r"close\(\) would .*: await aclose\(\)"):
        ShardedConnection([connection]).close()
    await connection.aclose()
    await connection.aclose()
    other = await aconnect(url, timeout=DEADLINE)
    with pytest.raises(WouldBlock, match=r"the end of `with` would .*: use `async with`"):
        other.__enter__()
    with pytest.raises(CallboardError):
        await other.ref("echo").ask(1)


def test_the_end_of_async_with_says_what_was_not_handled(start: Start) -> None:
    server = start()

    async def main() -> None:
        async with await aconnect(str(server.address), timeout=DEADLINE) as connection:
            connection.timeout = 0.05
            await connection.ref("gate").atell("is held up")

    with pytest.raises(AskTimeout, match=r"not all messages to .* were handled in 0\.05 s; 1 "):
        asyncio.run(asyncio.wait_for(main(), DEADLINE))


async def test_a_server_is_stopped_and_drained_in_a_coroutine(start: Start, tmp_path: Path) -> None:
    servers = [start(), start(f"unix:{tmp_path}/other")]
    for server in servers:
        with pytest.raises(WouldBlock, match=r"stop\(\) would .*: await astop\(\)"):
            server.stop()
        with pytest.raises(WouldBlock, match=r"drain\(\) would .*: await adrain\(\)"):
            server.drain(DEADLINE)
    connection = await aconnect(str(servers[0].address), timeout=DEADLINE)
    await connection.aclose()
    await servers[0].adrain(DEADLINE)
    await servers[1].astop()
    await servers[1].astop()
    servers[1].stop()  # which does nothing, and so holds up nobody
    for server in servers:
        with pytest.raises(CallboardError):
            await aconnect(str(server.address), timeout=0.1)


@pytest.mark.parametrize("name", ["ready", "ended"])
def test_a_ref_elsewhere_says_why_it_has_no_such_future(start: Start, name: str) -> None:
    with connect(str(start().address), timeout=DEADLINE) as connection:
        refs: list[Any] = [
            connection.ref("echo"),
            ShardedConnection([connection]).ref("echo", by="k"),
        ]
        for ref in refs:
            assert not hasattr(ref, name)
            with pytest.raises(AttributeError, match=rf"has no `{name}`: .*not told between"):
                getattr(ref, name)
