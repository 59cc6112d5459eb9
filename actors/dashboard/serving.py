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
"""A page has so many at the most, and no more than a 16th of the process's descriptors."""
_TOKEN = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?-]{16,256}")
NEEDS = "a dashboard needs Starlette and uvicorn: pip install 'callboard[dashboard]'"


class Dashboard:
    """A dashboard that is being served. Open its `url`, which has the token, in a browser.

    Whoever knows the token sees the system. It ends with `stop()`, with its `with` block, and with
    its system.
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
                "`token` is a string of 16 to 256 characters: letters, digits and "
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
            backlog=16,  # so many connections are accepted before the first of them is looked at
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
        """Serve no more, from now on."""
        self._server.should_exit = True
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        self._socket.close()
        self._viewers.close()

    def forsake(self) -> None:
        """Close the copies of the sockets, in a forked child."""
        self._socket.close()
        for connection in self._server.server_state.connections:
            transport: Any = connection.transport
            if transport is not None:
                transport._sock.close()  # and not by the loop, whose selector is the parent's, too

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


def _forsake_all() -> None:
    for dashboard in list(_dashboards):
        dashboard.forsake()


os.register_at_fork(after_in_child=_forsake_all)


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
    """Serve a page that shows the system, and return it: open its `url` in a browser.

    Without a `port` it has one that is free. Only browsers on this machine reach it, unless `host`
    says another address, and only those with the token, which is in the `url`, see the system. A
    `token` of yours is 16 to 256 letters, digits and ._~!$&'()*+,;=:@/?-. A thread serves it until
    its `stop()`, or the system's. It has 64 connections at most. From now on the system keeps its
    latest 100 dead letters with their messages, to be shown.

    `servers` are connections of `callboard.remote`, also to shards: the page shows how their
    servers are, wherever these run.

    Raises ModuleNotFoundError without the extra `dashboard`, ConfigError, and OSError if the port
    is taken.
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
    parser.add_argument("--port", type=int, default=0, help="without it, one that is free")
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
