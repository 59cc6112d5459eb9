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
from callboard.remote.protocol.kinds import HELLO_LIMIT, Goodbye, GoodbyeReason, Rejected
from callboard.remote.protocol.server_side import (
    ClientRequest,
    Delivery,
    Greeting,
    Ping,
    ServerLimits,
    ServerSide,
)
from callboard.remote.sockets.lendable_link import LendableLink
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Frame, Misframed, Splitter
from callboard.scheduling.inline_polling import poll_inline


class PeerHost(Protocol):
    """The interface of a server for its peers."""

    _loop: asyncio.AbstractEventLoop
    _limits: ServerLimits
    _codec: Codec

    @property
    def _entries(self) -> Collection[str]:
        """The names of the entry points."""

    def _is_secret(self, secret: bytes) -> bool:
        """Tell whether a client's secret is the server's."""

    def _about(self) -> dict[str, Any]:
        """Return the server's description, for a client that is welcome."""

    def health(self) -> dict[str, Any]:
        """Return the answer to a ping."""

    def _spawn_client(self, peer: Peer) -> ActorRef[Any]:
        """Spawn the actor of a client."""

    def _take_request(self, peer: Peer, request: ClientRequest) -> None:
        """Handle a client's request about staged or published rows."""

    def _note_handled(self, messages: int) -> None:
        """Count messages that were handled."""

    def _note_refusal(self) -> None:
        """Count a client that was refused."""

    def _forget(self, peer: Peer) -> None:
        """Note that a connection is gone."""


class Peer:
    """A client's connection: its frames go to its actor, and answers to the client come here.

    It is made on the loop's thread, which reads the client's frames and does no work on them. If a
    client asks one question after the other, the worker that answers reads from it, because the
    loop's thread would have to wake that worker for each message. If a client only tells, the
    worker that handles the messages reads from it.
    """

    def __init__(self, server: PeerHost, connected: socket.socket, name: str) -> None:
        self.name = name
        self._server = server
        self._limits = limits = server._limits
        self._lock = Lock()  # of the side, and of the order in which its frames are queued
        self._side = ServerSide(server._codec, limits, list(server._entries), server._is_secret)
        self._loop = server._loop
        splitter = Splitter(HELLO_LIMIT)
        self._link = LendableLink(self._loop, connected, splitter, self._on_frames, self._on_end)
        self._link.on_sent = self._link.start_reading
        self._link.on_turn = self._on_turn
        self._link.on_misframed = self._on_misframed
        self._may_keep = has_gil()  # without one, to read and to work at the same time is faster
        self._actor: ActorRef[Any] | None = None
        self._is_closing = False
        self._was_refused = False
        self._uploads = False  # whether it uploads rows, which are stored without the interpreter
        self.begun = self._last_received = self._loop.time()
        """When it was accepted, by the loop's clock."""
        self._moved = (0, 0)  # bytes received, and waiting to be sent, at the last check
        self._timer = self._loop.call_later(limits.handshake_time, self._check_handshake)
        self._link.start_reading()

    @property
    def is_gone(self) -> bool:
        """Whether the connection has ended."""
        return self._link.has_ended

    @property
    def is_greeted(self) -> bool:
        """Whether the client has passed the handshake."""
        return self._side.is_greeted

    @property
    def is_refused(self) -> bool:
        """Whether it was refused before its handshake was complete."""
        return self._side.has_said_goodbye and not self._side.is_greeted

    # --- on the loop's thread; `_on_frames()` and `_on_misframed()` on the reader's ---------------

    def say_goodbye(self, reason: GoodbyeReason, text: str) -> None:
        """Say goodbye: nothing more is taken, and the connection ends when all is answered."""
        with self._lock:
            self._link.queue(self._side.goodbye(reason, text))
        self._link.push()
        self._close_when_done()

    def abort(self, why: str) -> None:
        """Hang up at once."""
        self._link.abort(why)

    def _close_in_child(self) -> None:
        """In a forked child: close the copy of the connection."""
        self._link._close_in_child()

    def _on_frames(self, frames: list[Frame]) -> None:
        self._last_received = self._loop.time()
        deliveries: list[Delivery] = []
        try:
            for received in frames:
                with self._lock:
                    event = self._side.receive(received)
                if isinstance(event, Delivery):
                    deliveries.append(event)
                    self._uploads = False
                elif isinstance(event, ClientRequest):
                    self._uploads = True
                    self._server._take_request(self, event)
                elif isinstance(event, Ping):
                    with self._lock:
                        self._link.queue(self._side.pong(event, self._server.health()))
                    self._push()
                elif isinstance(event, Greeting):
                    self._greet()
                elif isinstance(event, Goodbye):
                    self._hand_on(deliveries)
                    deliveries = []
                    self._close_when_done()
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
            self._refuse(GoodbyeReason.DRAINING, str(error))
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
        self._refuse(GoodbyeReason.PROTOCOL, str(error))

    def _refuse(self, reason: GoodbyeReason, text: str) -> None:
        """Say goodbye, once: messages that it sent before it knows may be refused as well."""
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
        self._refuse(GoodbyeReason.IDLE, f"no HELLO in {self._limits.handshake_time:g} s")

    def _check_idleness(self) -> None:
        idle_time = self._limits.idle_time
        left = self._last_received + idle_time - self._loop.time()
        before, self._moved = self._moved, (self._link.received, self._link.output_size)
        if left <= 0 and (self._moved[0] > before[0] or self._moved[1] < before[1]):
            left = idle_time  # in the middle of a long frame, on a slow line
        if left <= 0:
            self._refuse(GoodbyeReason.IDLE, f"silent for {self._limits.idle_time:g} s")
        else:
            self._timer = self._loop.call_later(left, self._check_idleness)

    def _close_when_done(self) -> None:
        """Close the connection when all that was taken is handled and answered."""
        self._is_closing = True
        with self._lock:
            self._queue_deferred_credit()
            done = self._side.account.messages == 0
        self._link.push()
        if done:
            self._link.call_close()

    def _on_end(self, why: str) -> None:
        self._timer.cancel()
        if self._actor is not None:
            self._actor.tell(None)  # behind all that the client sent
            log.info("client left", client=self.name, why=why)
        elif not self._side.has_said_goodbye:
            log.warning("client refused", client=self.name, error=why)
        self._server._forget(self)

    # --- in any thread ----------------------------------------------------------------------------

    def answer(self, delivery: Delivery | ClientRequest, value: Any) -> None:
        """Answer an ask or a request. A value that cannot be encoded is a failure."""
        try:
            data = self._server._codec.encode(value)
            with self._lock:
                answer = self._side.answer(delivery, data)
                self._server._note_handled(1)  # before another thread may push the answer
                self._link.queue(answer)
        except CodecError as error:
            self.fail(delivery, error)
        else:
            self._push()
            if self._side.account.messages == 0:  # it waits for nothing else
                poll_inline(self._link)

    def answer_staged(self, request: ClientRequest, rows: int) -> None:
        """Answer the end of an upload with its number of rows."""
        self._server._note_handled(1)
        with self._lock:
            self._link.queue(self._side.staged(request, rows))
        self._push()

    def fail(self, delivery: Delivery | ClientRequest, error: BaseException) -> None:
        """Send the error of a failed delivery."""
        if delivery.kind.is_answered:
            self._server._note_handled(1)
        with self._lock:
            failed = self._side.failed(delivery, type(error).__qualname__, safe_str(error))
            self._link.queue(failed)
        self._push()

    def note_handled(self, delivery: Delivery | ClientRequest) -> None:
        """Give the credit of a told message back."""
        self._server._note_handled(delivery.messages)
        with self._lock:
            credit = self._side.handled(delivery, self._link.has_more)
            if credit:
                self._link.queue(credit)
            is_rest = self._side.account.messages == 0
        if credit or self._is_closing:
            self._push()
        if is_rest and self._may_keep and not self._uploads:
            poll_inline(self._link)

    def _on_turn(self) -> bool:
        """Give deferred credit back. A worker may keep a client that waits for no answer."""
        with self._lock:
            owes = self._queue_deferred_credit()
            has_asked = self._side.has_asked
        if owes:
            self._push()
        return self._may_keep and not has_asked and not self._uploads

    def _queue_deferred_credit(self) -> bool:
        """Queue deferred credit, with the lock. Returns False if there is none."""
        credit = self._side.deferred_credit()
        if credit:
            self._link.queue(credit)
        return bool(credit)

    def reject(self, error: Rejected) -> None:
        """Say goodbye to a client that broke the protocol."""
        self._refuse(error.reason, str(error))

    def break_off(self, why: str) -> None:
        """Hang up, from any thread."""
        self._loop.call_soon_threadsafe(self._link.abort, why)

    def _push(self) -> None:
        """Send, without the lock. A client that does not read is paused, then disconnected."""
        self._link.push()
        waits = self._link.output_size
        if waits > self._limits.output:
            self.break_off(
                f"the client does not read: {waits} bytes wait for it, and the limit is "
                f"{self._limits.output}"
            )
        elif waits and self._is_held_up:
            self._link.call(self._hold)
        if self._is_closing and self._side.account.messages == 0:
            self._link.call_close()

    def _hold(self) -> None:
        """On the loop's thread: pause reading from a client until it has read its output."""
        if self._is_held_up:
            self._link.stop_reading()

    @property
    def _is_held_up(self) -> bool:
        return self._link.output_size > self._limits.output // 4
