"""Listening sockets, and options of connected ones."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from callboard.core.errors import ConfigError
from callboard.remote.sockets.address import Address, TCPAddress, UnixAddress
from callboard.remote.sockets.forked import close_in_children

_BACKLOG = 128
_BUFFER = 1 << 20  # bytes, as far as the kernel's limits let it
_TURN = 10.0  # seconds that a server waits for others that start in the same directory


class Listener:
    """A socket that others connect to. `close()` removes its files."""

    def __init__(self, address: Address) -> None:
        """Bind, and listen. Raises ConfigError, which says what prevents it."""
        try:
            # The working directory may be another one when it is closed.
            self._path = _file_of(address)
            self.socket = _unix(address) if isinstance(address, UnixAddress) else _tcp(address)
        except OSError as error:
            raise ConfigError(f"cannot listen on {address}: {error}") from error
        self.socket.setblocking(False)
        self._inode = 0 if self._path is None else self._path.stat().st_ino
        self.address = _bound(address, self.socket)
        close_in_children(self)

    def close(self) -> None:
        """Stop listening. A Unix socket's file is removed, unless it is another server's by now."""
        self.socket.close()
        if (path := self._path) is not None:
            with suppress(OSError, ConfigError), _turn_in(path.parent):
                if path.stat().st_ino == self._inode:
                    path.unlink()

    def _close_in_child(self) -> None:
        """In a forked child: close the copy of the socket, and leave its file."""
        self.socket.close()


def _file_of(address: Address) -> Path | None:
    return Path(address.path).absolute() if isinstance(address, UnixAddress) else None


def _tcp(address: TCPAddress) -> socket.socket:
    family, kind, protocol, _, place = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _unix(address: UnixAddress) -> socket.socket:
    """Listen on a socket that was never open to others, and replace a stale one.

    It is bound in a private directory, and moved when its mode is 0600. Setting the umask instead
    would affect all threads.
    """
    path = Path(address.path)
    with _turn_in(path.parent):
        _refuse_taken(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as private:
                there = os.path.join(private, "s")
                listening.bind(there)
                os.chmod(there, stat.S_IRUSR | stat.S_IWUSR)
                listening.listen(_BACKLOG)
                os.rename(there, path)
        except BaseException:
            listening.close()
            raise
    return listening


@contextmanager
def _turn_in(directory: Path) -> Iterator[None]:
    """Let one server at a time check, replace or remove a socket in a directory."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        end = time.monotonic() + _TURN
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise ConfigError(
                        f"another program has locked {directory} for {_TURN:g} s"
                    ) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def _refuse_taken(path: Path) -> None:
    """Raise ConfigError unless the path is free, or a socket that nobody listens on."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigError(f"{path} exists, and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return  # a killed server left it
        except OSError as error:
            raise ConfigError(f"{path} is a socket that cannot be checked: {error}") from error
    raise ConfigError(f"another server listens on {path}")


def _bound(address: Address, listening: socket.socket) -> Address:
    if isinstance(address, UnixAddress):
        return address
    return TCPAddress(address.host, listening.getsockname()[1])


def prepare(connected: socket.socket) -> None:
    """Set the options of both ends of a connection."""
    connected.setblocking(False)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connected.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    if connected.family != socket.AF_UNIX:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
