"""A worker process of a pool: it serves one actor until its parent ends, or ends it.

Its standard input is a pipe from the parent. The first line is the spec; the end of the input is
the end of the parent, or of the pool. Another pipe tells the parent that the actor has started, or
why not, and brings it the dead letters.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import sys
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from callboard import (
    ActorEnd,
    ActorRef,
    ActorSystem,
    BoundedMailbox,
    DeadLetter,
    Future,
    Supervision,
)
from callboard._inside.spawn import spawn_divided
from callboard.core.child_process import take_standard_input
from callboard.core.errors import CallboardError
from callboard.core.text import safe_str, sendable, short_repr
from callboard.pools.pickling import import_all, import_class, make_codec
from callboard.remote.errors import CodecError
from callboard.remote.protocol.server_side import ServerLimits
from callboard.remote.server.peer import Peer
from callboard.remote.server.server import Server
from callboard.remote.staging.entries import ActorEntry
from callboard.remote.wire.codec import Codec

ENTRY = "actor"
LIMITS = ServerLimits(frame=2**28, values=2**26, bytes=2**29, output=2**29)
# Seconds after which a process ends, whatever its actor does.
GRACE = 1.0
# Seconds between two checks for the parent: another child of it may keep the pipe open.
LOOK = 1.0

_TEXT = 10_000  # bytes of an error's text
_FOUND = object()
_telling = Lock()

OPTIONS = (BoundedMailbox, Supervision)
"""Classes of options of a spawn, which the arguments may have."""


def main(spec: dict[str, Any]) -> int:
    """Serve the actor of a spec; report on its pipe `status`. Returns the exit status."""
    status: int = spec["status"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    os.set_inheritable(status, False)
    os.register_at_fork(after_in_child=partial(_mute, status))
    parent = os.getppid()
    life = take_standard_input()
    try:
        return _serve(spec, status, life, parent)
    except BaseException as error:
        tell(status, ended=f"{type(error).__name__}: {safe_str(error)}")
        raise
    finally:
        if os.getppid() != parent:  # the parent has ended, and would have done it
            with suppress(OSError):  # others are in it
                os.rmdir(Path(spec["path"]).parent)


def _serve(spec: dict[str, Any], status: int, life: int, parent: int) -> int:
    cls = import_all(spec)
    types = {name: import_class(*place) for name, *place in spec["types"]}
    codec = make_codec(types, spec["pickle"])
    arguments = _arguments(spec, types)
    wake_fd = os.eventfd(0, os.EFD_CLOEXEC)
    ends: list[ActorEnd] = []

    def end(ended: Future[ActorEnd]) -> None:
        ends.append(ended.result())
        os.eventfd_write(wake_fd, 1)

    system = ActorSystem(spec["system"], workers=1, observable=spec["observable"])
    ref = spawn_divided(system._runtime, None, cls, *arguments)
    entry = PoolEntry(ref)
    report = partial(_report_dead_letter, status, codec, entry)
    system.dead_letters.subscribe(report)
    ref.ended.add_done_callback(end)
    address = f"unix:{spec['path']}"
    server = Server(system, {ENTRY: entry}, address, codec=codec, limits=LIMITS)
    ref.ready.add_done_callback(lambda ready: _tell_ready(status, ready))
    while not ends and os.getppid() == parent:
        ready, _, _ = select.select([life, wake_fd], [], [], LOOK)
        if life in ready:
            break
    if ends:
        tell(status, ended=f"its actor {ends[0]}")
        with suppress(CallboardError):
            server.drain(GRACE)  # so that asks are answered
    server.stop()  # from now on the parent is not told that messages were handled
    system.dead_letters.unsubscribe(report)  # the parent makes dead letters of the others
    try:
        system.stop(GRACE)
    except CallboardError:  # the actor is stuck
        sys.stdout.flush()
        os._exit(1)
    return 1 if ends else 0


def _mute(status: int) -> None:
    """Let go of the pipe to the parent, in a forked child: its end is that of this process."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, status, inheritable=False)
    os.close(nothing)


def _tell_ready(status: int, ready: Future[Any]) -> None:
    if ready.exception() is None:
        tell(status, ready=True)


class PoolEntry(ActorEntry):
    """The actor, and the delivery and the place of its messages that are not handled."""

    def __init__(self, ref: ActorRef[Any]) -> None:
        super().__init__(ref)
        self._lock = Lock()
        self._open: dict[tuple[Peer, int], _Open] = {}

    def note_begun(self, peer: Peer, sequence: int, values: list[Any]) -> None:
        """Have a delivery's messages found until it is done."""
        with self._lock:
            self._open[peer, sequence] = _Open(values)

    def note_done(self, peer: Peer, sequence: int) -> None:
        """Have them no longer found."""
        with self._lock:
            self._open.pop((peer, sequence), None)

    def find(self, message: object) -> tuple[Peer, int, int] | None:
        """Return the client, the delivery and the place of a message that is a dead letter.

        Each place is found once. If one object was sent often, the first place is found: actors
        handle their messages in order.
        """
        with self._lock:
            for (peer, sequence), opened in self._open.items():
                place = opened.take(message)
                if place is not None:
                    return peer, sequence, place
        return None


class _Open:
    """The messages of a delivery that is not handled."""

    def __init__(self, values: list[Any]) -> None:
        self._values = [*values]
        self._next = 0  # the place after the one that was found last

    def take(self, message: object) -> int | None:
        """Return the place of an object, once."""
        values = self._values
        for place in chain(range(self._next, len(values)), range(self._next)):
            if values[place] is message:
                values[place] = _FOUND
                self._next = place + 1
                return place
        return None


def _report_dead_letter(
    status: int, codec: Codec, entry: PoolEntry, dead_letter: DeadLetter
) -> None:
    found = entry.find(dead_letter.message) if dead_letter.recipient == entry.ref else None
    if found is not None and found[0].is_gone:
        return  # the parent knows that it was not handled, and makes a dead letter
    message: dict[str, Any] = {"at": found and found[1:]}
    message["text"] = short_repr(dead_letter.message)  # for a parent that cannot decode it
    with suppress(CodecError):
        message["message"] = base64.b64encode(codec.encode(dead_letter.message)).decode()
    error = dead_letter.error
    said = None if error is None else [type(error).__qualname__, sendable(safe_str(error), _TEXT)]
    tell(status, reason=dead_letter.reason, error=said, **message)


def tell(status: int, **what: Any) -> None:
    """Tell the parent, if it is there. In any thread."""
    left = json.dumps(what).encode() + b"\n"
    with _telling, suppress(OSError):
        while left:
            left = left[os.write(status, left) :]


def encode_arguments(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: dict[str, Any],
    types: dict[str, type],
    pickles: bool,
) -> str:
    """Return the arguments of the actor, and its options, as a text. Raises CodecError."""
    codec = argument_codec(types, pickles)
    return base64.b64encode(codec.encode([list(args), kwargs, options])).decode()


def argument_codec(types: dict[str, type], pickles: bool) -> Codec:
    """Return the encoding of arguments, which may be options of `spawn()`, too."""
    options = {f"option {cls.__name__}": cls for cls in OPTIONS}
    return make_codec({**types, **options}, pickles)


def _arguments(
    spec: dict[str, Any], types: dict[str, type]
) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    codec = argument_codec(types, spec["pickle"])
    args, kwargs, options = codec.decode(base64.b64decode(spec["arguments"]), is_trusted=True)
    return tuple(args), kwargs, options
