"""The processes at the other end: a callboard server, or a few lines around a bare socket."""

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
def server(module: str, *options: str, state: bool = False) -> Iterator[tuple[str, int]]:
    """Serve a module's `build` in a process, at a Unix socket; yield its address and process id."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"unix:{folder}/s"
        command = [sys.executable, "-m", "callboard", "serve", f"{module}:build", "--bind", url]
        command += ["--log-level", "WARNING", *options]
        command += ["--state", f"{folder}/state"] if state else []
        process = subprocess.Popen(command, cwd=BENCH, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield url, process.pid
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def served() -> Iterator[Connection]:
    """Serve `app`, and connect to it."""
    with server("remote.app") as (url, _), connect(url) as connection:
        yield connection


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
