"""`python -m callboard serve app:build --bind ADDRESS`: runs a server as a separate process."""

from __future__ import annotations

import argparse
import atexit
import dataclasses
import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from callboard import ActorRef, ActorSystem, CallboardError
from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.core.threads.wait_queue import WaitQueue
from callboard.remote.errors import RemoteError
from callboard.remote.protocol.server_side import ServerLimits
from callboard.remote.server.client_actor import ClientActor
from callboard.remote.server.server import Server
from callboard.remote.sockets.security import find_secret
from callboard.remote.staging.entries import serve_entries
from callboard.remote.storage.store import StagingLimits

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
L = TypeVar("L", ServerLimits, StagingLimits)
_GRACE = 1.0  # seconds that actors have to stop when it is too late for the rest


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; argparse ends the process if it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m callboard serve",
        description="Serve the entry points that build(system) returns: a ref, the run of a graph, "
        "or a dict of names and these.",
        epilog="The secret is read from --secret-file, or from the file that CALLBOARD_SECRET_FILE "
        "names, or from CALLBOARD_SECRET; never from the command line, which others can see.",
    )
    parser.add_argument("build", metavar="MODULE:FUNCTION", help="called with the actor system")
    parser.add_argument(
        "--bind", required=True, metavar="ADDRESS", help="unix:PATH or tcp:HOST:PORT"
    )
    parser.add_argument("--secret-file", metavar="FILE", help="the secret that clients must know")
    parser.add_argument("--tls-cert", metavar="FILE", help="a certificate, for TCP off loopback")
    parser.add_argument("--tls-key", metavar="FILE", help="its key")
    parser.add_argument("--types", metavar="MODULE:NAME", help="dataclasses and enumerations")
    parser.add_argument("--config", metavar="FILE", help="the actor system's TOML file")
    parser.add_argument("--observable", action="store_true", help="by top, dashboard and others")
    parser.add_argument(
        "--drain-timeout", type=float, default=30.0, metavar="S", help="at the end (30)"
    )
    parser.add_argument("--log-level", default="INFO", metavar="LEVEL", help="to stderr (INFO)")
    parser.add_argument("--state", metavar="DIR", help="for rows that count once, and their state")
    parser.add_argument(
        "--shard", metavar="I/N", help="which of several servers it is, from 0/N on"
    )
    for field in (*dataclasses.fields(ServerLimits), *dataclasses.fields(StagingLimits)):
        parser.add_argument(
            f"--max-{field.name.replace('_', '-')}",
            dest=field.name,
            type=type(field.default),
            default=field.default,
            metavar="N",
            help=f"a limit ({field.default:g})",
        )
    return parser.parse_args(arguments)


def named(text: str) -> Any:
    """Import the object `MODULE:NAME`, also from the working directory.

    Raises ConfigError.
    """
    module, _, name = text.partition(":")
    if not module or not name:
        raise ConfigError(f"expected MODULE:NAME, such as app:build, got {text!r}")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module and not module.startswith(f"{error.name}."):
            raise
        raise ConfigError(f"there is no module {module!r}") from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(f"{safe_repr(found)} has no {part!r}: {text!r}") from None
    return found


def serve(options: argparse.Namespace) -> int:
    """Serve until a signal comes, then drain. Returns 0. Call it in the main thread.

    Raises KeyboardInterrupt at a second signal, DrainTimeout, and RemoteError when all actors have
    stopped except those of clients.
    """
    drain_timeout = checks.seconds("--drain-timeout", options.drain_timeout, error=ConfigError)
    limits = _limits(ServerLimits, options)
    staging = _limits(StagingLimits, options)
    secret = find_secret(secret_file=options.secret_file)
    types = () if options.types is None else named(options.types)
    build = named(options.build)
    if not callable(build):
        raise ConfigError(
            f"{options.build} must be a function of an actor system, got {safe_repr(build)}"
        )
    end = _StopSignals()
    try:
        system = ActorSystem("serve", observable=options.observable, config=options.config)
        try:
            server = Server(
                system,
                serve_entries(build(system)),
                options.bind,
                secret=secret,
                certificate=options.tls_cert,
                key=options.tls_key,
                types=types,
                limits=limits,
                state=options.state,
                staging=staging,
                shard=options.shard,
            )
            try:
                print(f"serving on {server.address}", flush=True)
                if not end.wait(system):
                    with suppress(CallboardError):  # the next error is worse
                        server.drain(_GRACE)
                    raise RemoteError("all actors have stopped: there is nothing left to serve")
                server.drain(drain_timeout)
            finally:
                server.stop()  # unless it was drained
        except BaseException:
            with suppress(CallboardError):
                system.stop(timeout=_GRACE)
            raise
        system.stop()
        return 0
    finally:
        end.is_over = True


def _limits(cls: type[L], options: argparse.Namespace) -> L:
    names = [field.name for field in dataclasses.fields(cls)]
    return cls(**{name: getattr(options, name) for name in names})


class _StopSignals:
    """Signals that end the server: the first drains it, the second raises KeyboardInterrupt.

    A later one, or the second when all `is_over`, ends the process with status 1.
    """

    def __init__(self) -> None:
        self.is_over = False
        """Whether all is done, or given up."""
        self._came = 0
        self._news: list[bool] = []  # True for a signal, False when all actors have stopped
        self._changed = WaitQueue()
        # At its end Python restores the default handlers, by which a signal would kill the process.
        atexit.register(self._handle_by, signal.SIG_IGN)
        self._handle_by(self._on_signal)

    def _handle_by(self, handler: Any) -> None:
        for number in _SIGNALS:
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        self._came += 1
        if self._came == 1:
            self._tell(True)
        elif self.is_over:
            os._exit(1)
        else:
            self.is_over = True
            raise KeyboardInterrupt

    def wait(self, system: ActorSystem) -> bool:
        """Sleep until the first signal. False: all actors except those of clients have stopped."""
        ended: set[ActorRef[Any]] = set()

        def look(_: object = None) -> None:
            for ref in system.actors:
                if ref not in ended and ref.actor_class is not ClientActor:
                    ended.add(ref)
                    ref.ended.add_done_callback(look)
                    return
            self._tell(False)

        look()
        self._changed.wait_for(lambda: self._news)
        return self._news[0]

    def _tell(self, news: bool) -> None:
        self._news.append(news)
        self._changed.notify_all()


def main(arguments: Sequence[str]) -> int:
    """Run the command; errors of the user go to stderr as one line. Returns the exit status."""
    options = parse(arguments)
    try:
        level = checks.one_of("--log-level", options.log_level.upper(), _LEVELS, error=ConfigError)
        logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(message)s")
        return serve(options)
    except CallboardError as error:
        print(f"callboard serve: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("callboard serve: a second signal ended it", file=sys.stderr)
        return 1
