"""Connecting to servers on an event loop, and the TLS handshake of both sides."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

from callboard.remote.errors import ConnectionRejected
from callboard.remote.sockets.address import Address, UnixAddress
from callboard.remote.sockets.listening import prepare
from callboard.remote.sockets.security import untrusted_peer


async def shake_hands(
    context: ssl.SSLContext,
    connected: socket.socket,
    *,
    server_side: bool = False,
    server_hostname: str | None = None,
) -> ssl.SSLSocket:
    """Do the TLS handshake, and return the TLS socket.

    Closes the socket if that fails. Raises OSError, such as ssl.SSLError.
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


async def dial(
    address: Address, context: ssl.SSLContext | None, user: int | None = None
) -> socket.socket:
    """Return a socket that is connected to an address, with TLS if there is a context.

    The server of a Unix socket must belong to `user`, by default the user of this process, or to
    root. Raises OSError, and ConnectionRejected if the server cannot be trusted: then nothing was
    sent.
    """
    loop = asyncio.get_running_loop()
    if isinstance(address, UnixAddress):
        places: list[Any] = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", address.path)]
    else:
        places = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    connected = await _first_of(places)
    prepare(connected)
    if isinstance(address, UnixAddress):
        if (who := untrusted_peer(connected, user)) is not None:
            connected.close()
            expected = os.geteuid() if user is None else user
            raise ConnectionRejected(
                f"expected a server of the user {expected} or root, got {who}: nothing was sent. "
                "If that is right, name the user by server_user="
            )
        return connected
    if context is None:
        return connected
    try:
        return await shake_hands(context, connected, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        raise ConnectionRejected(f"the server's certificate is not trusted: {error}") from None
    except ssl.SSLError as error:
        raise OSError(f"the server does not speak TLS, or another version: {error}") from error


async def _first_of(places: list[Any]) -> socket.socket:
    """Connect to the first place that takes the connection. Raises OSError."""
    loop = asyncio.get_running_loop()
    last: OSError | None = None
    for family, kind, protocol, _, place in places:
        connected = socket.socket(family, kind, protocol)
        connected.setblocking(False)
        try:
            await loop.sock_connect(connected, place)
        except OSError as error:
            connected.close()
            last = error
        except BaseException:
            connected.close()
            raise
        else:
            return connected
    raise last or OSError("the host has no address")
