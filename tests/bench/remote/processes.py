"""The processes at the other end: a server of callboard's, or a few lines around a bare socket."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from callboard.remote import Connection, connect

BENCH = Path(__file__).parents[1]


@contextmanager
def served() -> Iterator[Connection]:
    """Serve `app` in a process of its own, and connect to it over a Unix socket."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"unix:{folder}/s"
        command = [sys.executable, "-m", "callboard", "serve", "remote.app:build", "--bind", url]
        server = subprocess.Popen(
            [*command, "--log-level", "WARNING"], cwd=BENCH, stdout=subprocess.PIPE
        )
        try:
            assert server.stdout is not None
            server.stdout.readline()
            with connect(url) as connection:
                yield connection
        finally:
            server.terminate()
            server.communicate()


@contextmanager
def other_end(module: str, kind: str) -> Iterator[socket.socket]:
    """Run `module` of this folder as a process, with one end of a socket pair; yield the other."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):  # what callboard asks for, too
        ours.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
        theirs.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
    command = [sys.executable, "-m", f"remote.{module}", kind, str(theirs.fileno())]
    process = subprocess.Popen(command, cwd=BENCH, pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        assert ours.recv(1) == b"!"  # it has started
        yield ours
    finally:
        with suppress(OSError):
            ours.close()
        process.wait()
