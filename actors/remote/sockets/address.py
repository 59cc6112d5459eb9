"""Addresses: `unix:PATH` and `tcp:HOST:PORT`."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr

# The longest path that the kernel takes for a socket (sun_path), without the zero at its end.
_LONGEST_PATH = 107


@dataclass(frozen=True)
class UnixAddress:
    """A socket in the file system."""

    path: str

    def absolute(self) -> UnixAddress:
        """Return an address with an absolute path; itself if that would be too long."""
        try:
            path = os.path.join(os.getcwd(), self.path)  # ".." may follow a link, and so stays
        except OSError:  # the directory is gone
            return self
        return UnixAddress(path) if len(os.fsencode(path)) <= _LONGEST_PATH else self

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True)
class TCPAddress:
    """A port of a host, which is a name or an address; IPv6 is in brackets in texts."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it. The only such name is localhost."""
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
    """Read an address. Port 0 lets a server take any port. Raises ConfigError."""
    if isinstance(text, str):
        scheme, _, rest = text.partition(":")
        if scheme == "unix" and rest:
            return _unix(rest)
        if scheme == "tcp":
            return _tcp(text, rest)
    raise ConfigError(f"expected an address unix:PATH or tcp:HOST:PORT, got {safe_repr(text)}")


def _unix(path: str) -> UnixAddress:
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError as error:
        raise ConfigError(f"the path of a socket must be a string, got {path!r}: {error}") from None
    if length > _LONGEST_PATH or "\0" in path:
        raise ConfigError(
            f"the path of a socket must have at most {_LONGEST_PATH} bytes, none of them zero, "
            f"got {length}: {path!r}"
        )
    return UnixAddress(path)


def _tcp(text: str, rest: str) -> TCPAddress:
    host, _, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"an IPv6 address must be in brackets, tcp:[{host}]:{port}, got {text!r}")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ConfigError(f"tcp:HOST:PORT needs a host, and a port from 0 to 65535, got {text!r}")
    try:
        host.encode("idna")
    except UnicodeError as error:
        raise ConfigError(f"{host!r} is not a host name: {error}") from None
    return TCPAddress(host, int(port))
