"""Serving a dashboard in a thread, and the command `callboard dashboard`."""

from __future__ import annotations

import argparse
import os
import re
import resource
import secrets
import socket
import sys
import threading
import weakref
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from callboard.core import checks
from callboard.core.errors import CallboardError, ConfigError
from callboard.dashboard.servers import RemoteServers
from callboard.dashboard.systems import KnownSystems, OtherSystems, OwnSystem
from callboard.dashboard.viewers import Viewers
from callboard.observing.commands import none_found

if TYPE_CHECKING:
    from callboard.system import ActorSystem

MOST_CONNECTIONS = 64
"""The most connections of a page, which has at most a 16th of the process's descriptors."""
_TOKEN = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?-]{16,256}")
NEEDS = "a dashboard needs Starlette and uvicorn: pip install 'callboard[dashboard]'"


class Dashboard:
    """A dashboard that is being served. Open its `url`, which has the token, in a browser.

    Anyone with the token can see the system. The dashboard ends with `stop()`, with its `with`
    block, or with its system.
    """

    def __init__(
        self,
        systems: KnownSystems,
        host: str,
        port: int,
        token: str | None,
        servers: Iterable[Any] = (),
    ) -> None:
        try:
            import uvicorn

            from callboard.dashboard.app import application, limited
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(NEEDS, name=error.name) from error
        number = checks.whole("`port`", port, 0, 65_535, error=ConfigError)
        if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
            # Browsers write others differently in an address, or cannot send them in a header.
            raise ConfigError(
                "`token` must be a string of 16 to 256 characters: letters, digits and "
                "._~!$&'()*+,;=:@/?-"
            )
        self._token = secrets.token_urlsafe(24) if token is None else token
        self._viewers = Viewers(systems, RemoteServers(servers))
        self._socket = _listener(host, number)
        bound = self._socket.getsockname()
        where = f"[{bound[0]}]" if self._socket.family == socket.AF_INET6 else bound[0]
        self.url = f"http://{where}:{bound[1]}/#{self._token}"
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        options = uvicorn.Config(
            application(self._viewers, self._token),
            http=limited(min(MOST_CONNECTIONS, max(descriptors // 16, 1))),
            loop="asyncio",
            backlog=16,  # the most connections that wait to be accepted
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(options)
        _dashboards.add(self)
        self._thread = threading.Thread(target=self._serve, name="dashboard", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        """Serve until stop(). The thread keeps the dashboard alive until then."""
        self._server.run([self._socket])

    def stop(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        self._socket.close()
        self._viewers.close()

    def _close_in_child(self) -> None:
        """Close the copies of the sockets, in a forked child."""
        self._socket.close()
        for connection in self._server.server_state.connections:
            transport: Any = connection.transport
            if transport is not None:
                transport._sock.close()  # not by the loop, whose selector is the parent's

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Dashboard {self.url.partition('#')[0]}>"


_dashboards: weakref.WeakSet[Dashboard] = weakref.WeakSet()


def _close_all_in_child() -> None:
    for dashboard in list(_dashboards):
        dashboard._close_in_child()


os.register_at_fork(after_in_child=_close_all_in_child)


def _listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def serve_dashboard(
    system: ActorSystem,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    servers: Iterable[Any] = (),
) -> Dashboard:
    """Serve a dashboard of the system, and return it. Open its `url` in a browser.

    A thread serves it until its `stop()`, or the system's, to at most 64 connections. From now on
    the system keeps its latest 100 dead letters, with their messages, for the dashboard.

    Args:
        system: The system to show.
        host: The address to listen on. By default, only browsers on this machine can connect.
        port: The port; by default a free one.
        token: The secret in the `url`, without which a browser sees nothing: 16 to 256 letters,
            digits and ._~!$&'()*+,;=:@/?-. Random by default.
        servers: Connections of `callboard.remote`, also to shards. The dashboard shows the state of
            their servers.

    Raises:
        ModuleNotFoundError: The extra `dashboard` is not installed.
        ConfigError: An argument is invalid.
        OSError: The port is taken.
    """
    system._runtime.refuse_fork()
    dashboard = Dashboard(OwnSystem(system), host, port, token, servers)
    system._observer.keep_letters()
    system._observer.stop_with_system(dashboard)
    return dashboard


def main(arguments: Sequence[str]) -> int:
    """Serve a dashboard of running systems, until Ctrl-C, and print its address."""
    parser = argparse.ArgumentParser(prog="callboard dashboard", description=main.__doc__)
    parser.add_argument("which", metavar="PID|NAME", nargs="?", help="and what it has started")
    parser.add_argument("--port", type=int, default=0, help="by default a free one")
    options = parser.parse_args(arguments)
    try:
        systems = OtherSystems(options.which)
        if not systems.find():
            return _fail(none_found(options.which))
        with Dashboard(systems, "127.0.0.1", options.port, None) as dashboard:
            print(dashboard.url, flush=True)
            threading.Event().wait()
    except (CallboardError, ModuleNotFoundError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        pass
    return 0


def _fail(text: str) -> int:
    print(f"callboard dashboard: {text}", file=sys.stderr)
    return 1
