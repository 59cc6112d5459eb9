"""A worker process of a pool: it serves one actor until its parent ends, or ends it.

Its standard input is a pipe from the parent. The first line is the spec; the end of the input is
the end of the parent, or of the pool. The main thread watches it, and sleeps on the channel for the
worker of the actor, which receives and answers.
"""

from __future__ import annotations

import base64
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
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
from callboard.mailbox.shared.process_channel import is_closed, open_channel
from callboard.pools.messages import DEAD_LETTER, READY
from callboard.pools.parent_link import ParentLink
from callboard.pools.pickling import import_all, import_class, make_codec
from callboard.remote.errors import CodecError
from callboard.remote.server.client_actor import ClientActor
from callboard.remote.staging.entries import ActorEntry
from callboard.remote.wire.codec import Codec

# Seconds after which a process ends, whatever its actor does.
GRACE = 1.0
# Seconds between two checks for the parent: another child of it may keep the pipe open.
LOOK = 1.0

_TEXT = 10_000  # bytes of an error's text

OPTIONS = (BoundedMailbox, Supervision)
"""Classes of options of a spawn, which the arguments may have."""


def main(spec: dict[str, Any]) -> int:
    """Serve the actor of a spec. Returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    parent = os.getppid()
    channel = open_channel(spec)
    life = take_standard_input()
    link = ParentLink(channel, Codec())
    try:
        return _serve(spec, link, life, parent)
    except BaseException as error:
        link.end(f"{type(error).__name__}: {safe_str(error)}")
        link.flush_until(partial(is_closed, life), GRACE)
        raise


def _serve(spec: dict[str, Any], link: ParentLink, life: int, parent: int) -> int:
    cls = import_all(spec)
    types = {name: import_class(*place) for name, *place in spec["types"]}
    link.codec = codec = make_codec(types, spec["pickle"])
    arguments = _arguments(spec, types)
    channel = link.channel
    ends: list[ActorEnd] = []

    def end(ended: Future[ActorEnd]) -> None:
        ends.append(ended.result())
        channel.rouse()

    system = ActorSystem(spec["system"], workers=1, observable=spec["observable"])
    ref = spawn_divided(system._runtime, None, cls, *arguments)
    report = partial(_report_dead_letter, link, codec, ref)
    system.dead_letters.subscribe(report)
    ref.ended.add_done_callback(end)
    link.begin(system.spawn(ParentReceiver, link, _Entry(ref, link), codec), ref)
    ref.ready.add_done_callback(lambda ready: _tell_ready(link, ready))
    while not (ends or link.is_broken or channel.is_broken) and os.getppid() == parent:
        channel.sleep(life, int(LOOK * 1000))
        if is_closed(life):
            break
        link.go_on()
    if ends:
        link.end(f"its actor {ends[0]}")
        link.wait_for_answers(GRACE)
    link.close()  # from now on the parent is not told that messages were handled
    system.dead_letters.unsubscribe(report)  # the parent makes dead letters of the others
    link.flush_until(partial(is_closed, life), GRACE)
    try:
        system.stop(GRACE)
    except CallboardError:  # the actor is stuck
        sys.stdout.flush()
        os._exit(1)
    return 1 if ends or link.is_broken else 0


def _tell_ready(link: ParentLink, ready: Future[Any]) -> None:
    if ready.exception() is None:
        link.send(READY)


class _Entry(ActorEntry):
    """The actor. The link has the messages that are not handled."""

    def __init__(self, ref: ActorRef[Any], link: ParentLink) -> None:
        super().__init__(ref)
        self._link = link

    def note_begun(self, peer: Any, sequence: int, values: list[Any]) -> None:
        """Have a delivery's messages found until it is done."""
        self._link.note_begun(sequence, [*values])

    def note_done(self, peer: Any, sequence: int) -> None:
        """Have them no longer found."""
        self._link.note_done(sequence)


class ParentReceiver(ClientActor):
    """Receives from the parent, and passes its messages on to the actor."""

    def __init__(self, link: ParentLink, entry: ActorEntry, codec: Codec) -> None:
        super().__init__(link, [entry], codec)  # type: ignore[arg-type]
        self._link = link

    def receive(self, _: None) -> Coroutine[Any, Any, None] | None:  # type: ignore[override]
        """Take what has come."""
        left = self._link.take()
        return super().receive(left) if left else None


def _report_dead_letter(
    link: ParentLink, codec: Codec, ref: ActorRef[Any], dead_letter: DeadLetter
) -> None:
    found = link.find(dead_letter.message) if dead_letter.recipient == ref else None
    error = dead_letter.error
    said = None if error is None else [type(error).__qualname__, sendable(safe_str(error), _TEXT)]
    text = short_repr(dead_letter.message)  # for a parent that cannot decode it
    data = None
    with suppress(CodecError):
        data = codec.encode(dead_letter.message)
    sequence, place = found or (0, 0)
    link.send(DEAD_LETTER, place, sequence, codec.encode([dead_letter.reason, said, text, data]))


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
