"""Connect to a server, without blocking the event loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

from callboard.remote.address import Address, UnixAddress
from callboard.remote.handshake import shake_hands
from callboard.remote.listening import prepare


async def dial(address: Address, context: ssl.SSLContext | None) -> socket.socket:
    """Return a socket that is connected to an address, by TLS if there is a context for it.

    Raises OSError, of which ssl.SSLError is one.
    """
    loop = asyncio.get_running_loop()
    if isinstance(address, UnixAddress):
        places: list[Any] = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", address.path)]
    else:
        places = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    connected = await _first_of(places)
    prepare(connected)
    if context is None or isinstance(address, UnixAddress):
        return connected
    return await shake_hands(context, connected, server_hostname=address.host)


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
