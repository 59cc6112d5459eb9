"""TLS's handshake on a socket that does not block."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable


async def shake_hands(
    context: ssl.SSLContext,
    connected: socket.socket,
    *,
    server_side: bool = False,
    server_hostname: str | None = None,
) -> ssl.SSLSocket:
    """Return the socket with TLS on it, both sides having shown what they must.

    Closes the socket if that fails. Raises OSError, of which ssl.SSLError is one.
    """
    loop = asyncio.get_running_loop()
    try:
        secured = context.wrap_socket(
            connected,
            server_side=server_side,
            server_hostname=server_hostname,
            do_handshake_on_connect=False,
        )
    except BaseException:
        connected.close()
        raise
    try:
        while True:
            try:
                secured.do_handshake()
            except ssl.SSLWantReadError:
                await _ready(loop.add_reader, loop.remove_reader, secured.fileno())
            except ssl.SSLWantWriteError:
                await _ready(loop.add_writer, loop.remove_writer, secured.fileno())
            else:
                return secured
    except BaseException:
        secured.close()
        raise


async def _ready(
    watch: Callable[..., object], unwatch: Callable[[int], object], descriptor: int
) -> None:
    """Wait until a descriptor can be read from, or written to."""
    ready = asyncio.get_running_loop().create_future()
    watch(descriptor, _finish, ready)
    try:
        await ready
    finally:
        unwatch(descriptor)


def _finish(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
