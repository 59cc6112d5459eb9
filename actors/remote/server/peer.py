"""A server's end of one client's connection."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from threading import Lock
from typing import Any, Protocol

from callboard import ActorRef
from callboard.core.errors import CallboardError
from callboard.core.log import log
from callboard.core.text import safe_str
from callboard.core.threads.interpreter import has_gil
from callboard.remote.errors import CodecError
from callboard.remote.protocol.kinds import ANSWERED, HELLO_LIMIT, Farewell, Parting, Rejected
from callboard.remote.protocol.server_side import (
    Delivery,
    Greeting,
    Ping,
    ServerLimits,
    ServerSide,
    StagingRequest,
)
from callboard.remote.sockets.lent import LentLink
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Frame, Misframed, Splitter
from callboard.scheduling.attending import attend


class PeerHost(Protocol):
    """A server as a peer needs it."""

    loop: asyncio.AbstractEventLoop
    limits: ServerLimits
    codec: Codec

    @property
    def entries(self) -> Collection[str]:
        """The names of the entry points."""

    def _is_secret(self, secret: bytes) -> bool:
        """Tell whether a client's secret is the server's."""

    def _about(self) -> dict[str, Any]:
        """Return the server's description, for a client that is welcome."""

    def health(self) -> dict[str, Any]:
        """Return the answer to a ping."""

    def _spawn_client(self, peer: Peer) -> ActorRef[Any]:
        """Make the actor of a client."""

    def _take_request(self, peer: Peer, request: StagingRequest) -> None:
        """Do a client's request about staged or published rows."""

    def _note_handled(self, messages: int) -> None:
        """Count messages that were handled."""

    def _note_refusal(self) -> None:
        """Count a client that was refused."""

    def _forget(self, peer: Peer) -> None:
        """Take note that a connection is gone."""


class Peer:
    """A client's connection: its frames go to its actor, and answers to the client come here.

    Made on the loop's thread. That thread looks at the client's frames, and does no work on them.
    If a client asks one thing after the other, the worker that answers reads from it, because the
    loop's thread would have to wake that worker for each message. If a client only tells, the
    worker that handles the messages reads from it.
    """

    def __init__(self, server: PeerHost, connected: socket.socket, name: str) -> None:
        self.name = name
        self._server = server
        self._limits = limits = server.limits
        self._lock = Lock()  # of the side, and of the order in which its frames are queued
        self._side = ServerSide(server.codec, limits, list(server.entries), server._is_secret)
        self._loop = server.loop
        splitter = Splitter(HELLO_LIMIT)
        self._link = LentLink(self._loop, connected, splitter, self._on_frames, self._on_end)
        self._link.on_sent = self._link.start_reading
        self._link.on_turn = self._on_turn
        self._link.on_misframed = self._on_misframed
        self._may_keep = has_gil()  # without one, to read and to work at the same time is faster
        self._actor: ActorRef[Any] | None = None
        self._is_leaving = False
        self._was_refused = False
        self._uploads = False  # whether it uploads rows: to put them away needs no interpreter
        self.begun = self._heard = self._loop.time()
        """When it was accepted, by the loop's clock."""
        self._moved = (0, 0)  # bytes that had come, and that waited to be sent, at the last look
        self._timer = self._loop.call_later(limits.handshake_time, self._check_handshake)
        self._link.start_reading()

    @property
    def is_gone(self) -> bool:
        """Whether the connection has ended."""
        return self._link.has_ended

    @property
    def is_greeted(self) -> bool:
        """Whether it is known who the client is."""
        return self._side.is_greeted

    @property
    def is_refused(self) -> bool:
        """Whether it was told to go, and did not say who it is."""
        return self._side.has_parted and not self._side.is_greeted

    # --- on the loop's thread; `_on_frames()` and `_on_misframed()` on the reader's ---------------

    def part(self, reason: Farewell, text: str) -> None:
        """Say goodbye: nothing more is taken, and the connection ends when all was answered."""
        with self._lock:
            self._link.queue(self._side.goodbye(reason, text))
        self._link.push()
        self._leave()

    def abort(self, why: str) -> None:
        """Hang up at once."""
        self._link.abort(why)

    def forsake(self) -> None:
        """In a forked child: let go of the copy of the connection."""
        self._link.forsake()

    def _on_frames(self, frames: list[Frame]) -> None:
        self._heard = self._loop.time()
        deliveries: list[Delivery] = []
        try:
            for received in frames:
                with self._lock:
                    event = self._side.receive(received)
                if isinstance(event, Delivery):
                    deliveries.append(event)
                    self._uploads = False
                elif isinstance(event, StagingRequest):
                    self._uploads = True
                    self._server._take_request(self, event)
                elif isinstance(event, Ping):
                    with self._lock:
                        self._link.queue(self._side.pong(event, self._server.health()))
                    self._push()
                elif isinstance(event, Greeting):
                    self._greet()
                elif isinstance(event, Parting):
                    self._hand_on(deliveries)
                    deliveries = []
                    self._leave()
        except Rejected as error:
            self.reject(error)
        self._hand_on(deliveries)
        if self._is_held_up:
            self._link.call(self._hold)

    def _hand_on(self, deliveries: list[Delivery]) -> None:
        if deliveries and self._actor is not None:
            self._actor.tell(deliveries)

    def _greet(self) -> None:
        try:
            self._actor = self._server._spawn_client(self)
        except CallboardError as error:  # the system was stopped
            self._refuse(Farewell.DRAINING, str(error))
            return
        self._link.splitter.limit = self._limits.frame
        self._timer.cancel()
        self._timer = self._loop.call_later(self._limits.idle_time, self._check_idleness)
        self._moved = (self._link.received, 0)
        with self._lock:
            self._link.queue(self._side.welcome(self._server._about()))
        self._link.push()
        self._link.is_open = True
        log.info("client connected", client=self.name)

    def _on_misframed(self, error: Misframed) -> None:
        self._refuse(Farewell.PROTOCOL, str(error))

    def _refuse(self, reason: Farewell, text: str) -> None:
        """Say goodbye, once: what it has sent before it hears this may be refused as well."""
        with self._lock:
            if self._was_refused:
                return
            self._was_refused = True
        log.warning("client refused", client=self.name, reason=reason.name, error=text)
        self._server._note_refusal()
        with self._lock:
            self._link.queue(self._side.goodbye(reason, text))
        self._link.push()
        self._link.call_close()

    def _check_handshake(self) -> None:
        self._refuse(Farewell.IDLE, f"no HELLO in {self._limits.handshake_time:g} s")

    def _check_idleness(self) -> None:
        idle_time = self._limits.idle_time
        left = self._heard + idle_time - self._loop.time()
        before, self._moved = self._moved, (self._link.received, self._link.output_size)
        if left <= 0 and (self._moved[0] > before[0] or self._moved[1] < before[1]):
            left = idle_time  # in the middle of a long frame, on a slow line
        if left <= 0:
            self._refuse(Farewell.IDLE, f"silent for {self._limits.idle_time:g} s")
        else:
            self._timer = self._loop.call_later(left, self._check_idleness)

    def _leave(self) -> None:
        """Close the connection as soon as all that was taken is handled and answered."""
        self._is_leaving = True
        with self._lock:
            self._queue_owed()
            done = self._side.account.messages == 0
        self._link.push()
        if done:
            self._link.call_close()

    def _on_end(self, why: str) -> None:
        self._timer.cancel()
        if self._actor is not None:
            self._actor.tell(None)  # behind all that the client sent
            log.info("client left", client=self.name, why=why)
        elif not self._side.has_parted:
            log.warning("client refused", client=self.name, error=why)
        self._server._forget(self)

    # --- in any thread ----------------------------------------------------------------------------

    def answer(self, delivery: Delivery | StagingRequest, value: Any) -> None:
        """Answer a message that wants an answer. A value that cannot be encoded is a failure."""
        try:
            data = self._server.codec.encode(value)
            with self._lock:
                answer = self._side.answer(delivery, data)
                self._server._note_handled(1)  # before another thread may push the answer
                self._link.queue(answer)
        except CodecError as error:
            self.fail(delivery, error)
        else:
            self._push()
            if self._side.account.messages == 0:  # it waits for nothing else
                attend(self._link)

    def answer_staged(self, request: StagingRequest, rows: int) -> None:
        """Say how many rows an upload has that has ended."""
        self._server._note_handled(1)
        with self._lock:
            self._link.queue(self._side.staged(request, rows))
        self._push()

    def fail(self, delivery: Delivery | StagingRequest, error: BaseException) -> None:
        """Say that a delivery failed, and with which error."""
        if delivery.kind in ANSWERED:
            self._server._note_handled(1)
        with self._lock:
            failed = self._side.failed(delivery, type(error).__qualname__, safe_str(error))
            self._link.queue(failed)
        self._push()

    def note_handled(self, delivery: Delivery | StagingRequest) -> None:
        """Give the credit of a told message back."""
        self._server._note_handled(delivery.messages)
        with self._lock:
            credit = self._side.handled(delivery, self._link.has_more)
            if credit:
                self._link.queue(credit)
            is_rest = self._side.account.messages == 0
        if credit or self._is_leaving:
            self._push()
        if is_rest and self._may_keep and not self._uploads:
            attend(self._link)

    def _on_turn(self) -> bool:
        """Give the credit that could wait for more. A worker may keep a client that waits for no
        answer.
        """
        with self._lock:
            owes = self._queue_owed()
            has_asked = self._side.has_asked
        if owes:
            self._push()
        return self._may_keep and not has_asked and not self._uploads

    def _queue_owed(self) -> bool:
        """Queue the credit that has waited, with the lock. False: none has."""
        credit = self._side.owed()
        if credit:
            self._link.queue(credit)
        return bool(credit)

    def reject(self, error: Rejected) -> None:
        """Say goodbye to a client that does not keep to the protocol."""
        self._refuse(error.reason, str(error))

    def break_off(self, why: str) -> None:
        """Hang up, from any thread."""
        self._loop.call_soon_threadsafe(self._link.abort, why)

    def _push(self) -> None:
        """Send, without the lock. A client that does not read is not read from, then let go."""
        self._link.push()
        waits = self._link.output_size
        if waits > self._limits.output:
            self.break_off(
                f"the client does not read: {waits} bytes wait for it, and "
                f"{self._limits.output} may"
            )
        elif waits and self._is_held_up:
            self._link.call(self._hold)
        if self._is_leaving and self._side.account.messages == 0:
            self._link.call_close()

    def _hold(self) -> None:
        """On the loop's thread: pause reading from a client that does not read, until it has."""
        if self._is_held_up:
            self._link.stop_reading()

    @property
    def _is_held_up(self) -> bool:
        return self._link.output_size > self._limits.output // 4
