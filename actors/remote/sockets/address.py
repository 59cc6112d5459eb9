"""Addresses: `unix:PATH` and `tcp:HOST:PORT`."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass

from callboard.core.text import safe_repr
from callboard.remote.errors import AddressError

# The longest path that the kernel takes for a socket (sun_path), without the zero at its end.
_LONGEST_PATH = 107


@dataclass(frozen=True)
class UnixAddress:
    """A socket in the file system."""

    path: str

    def absolute(self) -> UnixAddress:
        """Return what is the same from every directory; itself where that would be too long."""
        try:
            path = os.path.join(os.getcwd(), self.path)  # ".." may follow a link, and so stays
        except OSError:  # the directory is gone
            return self
        return UnixAddress(path) if len(os.fsencode(path)) <= _LONGEST_PATH else self

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True)
class TCPAddress:
    """A port of a host, which is a name or an address; one of IPv6 is in brackets as text."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it. Among names, only localhost is known to be so."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def absolute(self) -> TCPAddress:
        """Return itself."""
        return self

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp:{host}:{self.port}"


Address = UnixAddress | TCPAddress


def parse_address(text: str) -> Address:
    """Read an address. Port 0 is for a server that takes any. Raises AddressError."""
    if isinstance(text, str):
        scheme, _, rest = text.partition(":")
        if scheme == "unix" and rest:
            return _unix(rest)
        if scheme == "tcp":
            return _tcp(text, rest)
    raise AddressError(f"an address is unix:PATH or tcp:HOST:PORT, not {safe_repr(text)}")


def _unix(path: str) -> UnixAddress:
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError as error:
        raise AddressError(f"the path of a socket is a text, not {path!r}: {error}") from None
    if length > _LONGEST_PATH or "\0" in path:
        raise AddressError(
            f"the path of a socket has at most {_LONGEST_PATH} bytes, and none that is zero; "
            f"this has {length}: {path!r}"
        )
    return UnixAddress(path)


def _tcp(text: str, rest: str) -> TCPAddress:
    host, _, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise AddressError(f"an IPv6 address stands in brackets: tcp:[{host}]:{port}, not {text!r}")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise AddressError(f"tcp:HOST:PORT has a host and a port from 0 to 65535, not {text!r}")
    try:
        host.encode("idna")
    except UnicodeError as error:
        raise AddressError(f"{host!r} is no name of a host: {error}") from None
    return TCPAddress(host, int(port))
