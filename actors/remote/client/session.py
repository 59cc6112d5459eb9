"""A client's session: the thread that connects, and reconnects after a loss."""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from callboard import Future
from callboard.core.errors import AskTimeout
from callboard.core.log import log
from callboard.core.text import safe_str
from callboard.remote.errors import ConnectionLost, ConnectionRejected, RemoteError
from callboard.remote.protocol.client_side import Welcome
from callboard.remote.protocol.conversation import Completion, Conversation, Submission
from callboard.remote.protocol.kinds import Goodbye
from callboard.remote.protocol.shard import Shard
from callboard.remote.sockets.address import Address, TCPAddress
from callboard.remote.sockets.dialing import dial
from callboard.remote.sockets.forked import close_in_children
from callboard.remote.sockets.io_thread import IOThread
from callboard.remote.sockets.lendable_link import DrivenLink
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import MOST, Frame, ProtocolError, Splitter
from callboard.scheduling.worker import on_worker

_FIRST_WAIT, _LONGEST_WAIT = 0.02, 5.0  # seconds between attempts to connect
_HANDSHAKE = 10.0  # seconds for an attempt, until the server says WELCOME
_END = 3.0  # seconds that closing may take
_BEFORE_WELCOME = 1 << 20  # bytes: the limit of a server's description

WAITS_FOR_ITSELF = "would wait for an answer that this thread must read: use another thread"


class SessionOwner(Protocol):
    """The interface of a connection for refs, uploads and answers."""

    timeout: float
    _codec: Codec
    _traces: Callable[[], str | None] | None

    @property
    def address(self) -> Address:
        """Where the server is."""

    @property
    def _own_session(self) -> RemoteSession:
        """The session of this process."""

    def _deliver(self, submission: Submission, what: str) -> None:
        """Send a submission, and wait for credit where there is none."""

    def _refuse_to_block(self, what: str, instead: str = ...) -> None:
        """Raise CallboardError where waiting would hold up others."""

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was told or asked is handled."""

    def aflush(self) -> Future[None]:
        """Return a future that is done when all that was told or asked is handled."""

    def close(self) -> None:
        """Say goodbye."""


class RemoteSession:
    """Connects and reconnects until it is closed or rejected.

    Its methods may be called in any thread, and do not wait.
    """

    def __init__(
        self,
        address: Address,
        context: ssl.SSLContext | None,
        secret: bytes,
        encoding: Codec,
        shard: Shard | None = None,
        server_user: int | None = None,
    ) -> None:
        self._address = address
        self._server_user = server_user
        self._context = context
        self.pid = os.getpid()
        self._lock = threading.Lock()  # of the conversation, and of the order of its frames
        self._conversation = Conversation(encoding, secret, shard)
        self._link: DrivenLink | None = None  # written with the lock
        self._current: object = None  # the connection's name; written with the lock
        self._error: RemoteError | None = None  # why there will be no other connection
        self.trouble = "the first attempt has not ended"
        """Why there is no connection, or was none the last time."""
        self.opened: Future[None] = Future()
        """Done at the first WELCOME; it fails when the session ends without one."""
        self.closed: Future[None] = Future()
        """Done when the session is over."""
        self._io = IOThread(f"callboard-{address}")
        close_in_children(self)
        self._main = self._io.run(self._keep_connected())

    # --- in any thread ----------------------------------------------------------------------------

    @property
    def server(self) -> Welcome | None:
        """The server's description of itself; None while there is no connection."""
        side = self._conversation.side
        return None if side is None else side.server

    @property
    def last_server(self) -> Welcome | None:
        """The last server's description of itself; None if there was none yet."""
        return self._conversation.last_server

    @property
    def unacknowledged(self) -> int:
        """How many messages were told, and are not known to be handled."""
        with self._lock:
            return self._conversation.unacknowledged

    @property
    def outstanding(self) -> int:
        """How many messages are not known to be handled, asks and those that wait included."""
        with self._lock:
            return self._conversation.outstanding

    @property
    def is_over(self) -> bool:
        """Whether there will be no other connection."""
        return self._error is not None

    @property
    def health(self) -> dict[str, Any]:
        """The server's last report of its health."""
        return self._conversation.health

    def submit(self, submission: Submission, help_for: float | None = None) -> None:
        """Send, now or when there is credit. Raises the errors of earlier messages.

        With `help_for` this thread writes the rest when the socket has no room, for so many
        seconds; otherwise that is left to the loop's thread.
        """
        outcomes: Sequence[Completion] = ()
        link = self._link
        try:  # as _do(), without its calls: each message passes here
            with self._lock:
                if self._error is not None:
                    raise self._error.with_traceback(None)  # it would grow with each raise
                talk = self._conversation
                if submission.raises_earlier_errors:
                    talk.raise_earlier_errors()
                talk.submit(submission)
                link = self._link
                output, outcomes = talk.take()
                if output and link is not None:
                    link.queue(*output)
            if link is not None:
                link.push(helped=help_for is not None)
            for outcome in outcomes:
                outcome.complete()
        except RemoteError:
            raise
        except BaseException:
            _break_off(link, outcomes)
            raise
        if help_for is not None and link is not None:
            link.help(help_for)

    def drive(self, awaited: Future[Any], deadline: float | None) -> None:
        """Read in this thread until `awaited` is done, the deadline, or another thread reads."""
        link = self._link
        if link is not None and self.pid == os.getpid() and may_block():
            link.drive(awaited, deadline)

    def wake(self, awaited: Future[Any]) -> None:
        """Wake the thread that reads until `awaited` is done, as it is done."""
        link = self._link
        if link is not None and self.pid == os.getpid():
            link.ring(awaited)

    def withdraw(self, submission: Submission) -> bool:
        """Withdraw a submission. Returns False if it was sent."""
        is_withdrawn = False

        def withdraw() -> None:
            nonlocal is_withdrawn
            is_withdrawn = self._conversation.withdraw(submission)

        self._do(withdraw)
        return is_withdrawn

    def forget(self, answer: Future[Any]) -> None:
        """Note that an ask was cancelled or timed out. It is withdrawn if it was not sent."""
        if self.pid == os.getpid():
            self._do(self._conversation.forget, answer)

    def flush(self) -> Future[None]:
        """Return a future that is done when all but forgotten asks are handled.

        Raises like `submit()`.
        """
        flushed: Future[None] = Future()
        self._do(self._flush, flushed)
        return flushed

    def ping(self) -> Future[dict[str, Any]]:
        """Ask how the server is. Raises ConnectionLost without a connection."""
        answer: Future[dict[str, Any]] = Future()
        self._do(self._conversation.ping, answer)
        return answer

    @property
    def is_read_here(self) -> bool:
        """Whether this is the thread that reads the connection, in a callback of an answer."""
        if asyncio._get_running_loop() is self._io.loop:
            return True
        link = self._link
        return link is not None and link.is_driven_here

    def close(self, why: str = "") -> None:
        """Say goodbye, and end. Waiting messages fail, and open asks that are not answered soon.

        `why` is the text of their errors.
        """
        with suppress(RuntimeError):  # it has ended
            self._io.loop.call_soon_threadsafe(self._close, why)

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._io.join(_END)

    def fail_after(self, answer: Future[Any], seconds: float, name: str) -> None:
        """Fail an ask with AskTimeout if it is not answered by then."""
        error = AskTimeout(f"no answer from {name!r} at {self._address} after {seconds:g} s")
        loop = self._io.loop

        def cancel(timer: asyncio.TimerHandle, _: Future[Any]) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(timer.cancel)

        def expire() -> None:
            if answer.set_exception(error):
                self.forget(answer)

        def begin() -> None:
            timer = loop.call_later(seconds, expire)
            answer.add_done_callback(partial(cancel, timer))

        with suppress(RuntimeError):  # the session has ended, and the ask has failed
            loop.call_soon_threadsafe(begin)

    def end_unless_opened(self, seconds: float) -> None:
        """End the session if the server has not said welcome by then."""

        def look() -> None:
            if not self.opened.done():
                text = f"no connection to {self._address} in {seconds:g} s: {self.trouble}"
                self._end(ConnectionLost(text))
                self._close()

        with suppress(RuntimeError):
            self._io.loop.call_soon_threadsafe(self._io.loop.call_later, seconds, look)

    def _close_in_child(self) -> None:
        """In a forked child: close the copies, since the connection is the parent's."""
        link, self._link = self._link, None
        if link is not None:
            link._close_in_child()

    def _flush(self, flushed: Future[None]) -> None:
        if self._error is not None:
            raise self._error.with_traceback(None)
        self._conversation.raise_earlier_errors()
        self._conversation.flush(flushed)

    def _do(self, act: Callable[..., None], *arguments: Any) -> DrivenLink | None:
        """Do something in the conversation, with the lock. Then, without it, send its frames, and
        wake the waiters. Return the link.

        `act` may raise a RemoteError before it has changed anything. An interruption in the middle,
        by an exception of a signal's handler, breaks the connection: the numbers of sent messages
        would differ from the server's.
        """
        outcomes: Sequence[Completion] = ()
        link = self._link
        try:
            with self._lock:
                act(*arguments)
                link = self._link
                output, outcomes = self._conversation.take()
                if output and link is not None:
                    link.queue(*output)
            if link is not None:
                link.push()
            for outcome in outcomes:
                outcome.complete()
        except RemoteError:
            raise
        except BaseException:
            _break_off(link, outcomes)
            raise
        return link

    # --- on the loop's thread ---------------------------------------------------------------------

    async def _keep_connected(self) -> None:
        wait = _FIRST_WAIT
        try:
            while self._error is None:
                ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
                try:
                    await asyncio.wait_for(self._connect(ended), _HANDSHAKE)
                    wait = _FIRST_WAIT
                    pinging = asyncio.ensure_future(self._ping_often())
                    try:
                        why = await ended
                    finally:
                        pinging.cancel()
                except ConnectionRejected as error:
                    why = f"{self._address}: {error}"
                    self._end(ConnectionRejected(why))
                except (OSError, TimeoutError, ConnectionLost) as error:
                    why = f"no connection to {self._address}: {safe_str(error) or 'no answer'}"
                    self._hang_up(why)
                    log.debug("no connection", address=str(self._address), why=why)
                else:
                    if self._error is None:
                        log.info("connection lost", address=str(self._address), why=why)
                self.trouble = why
                if self._error is None:
                    await asyncio.sleep(wait * random.uniform(0.5, 1.0))
                    wait = min(wait * 2, _LONGEST_WAIT)
        except Exception as error:
            log.error("a connection failed", address=str(self._address), exc_info=error)
            self._hang_up(f"the client failed: {error!r}")
        finally:
            self._hang_up("closed by this side")  # of one that was being made when this was ended
            self._end(ConnectionLost(f"the connection to {self._address} is closed"))
            self.closed.set_result(None)
            self._io.loop.call_soon(self._io.loop.stop)

    async def _connect(self, ended: asyncio.Future[str]) -> None:
        """Make a connection, and wait for the server's WELCOME."""
        loop = asyncio.get_running_loop()
        welcome: asyncio.Future[None] = loop.create_future()
        connected = await dial(self._address, self._context, self._server_user)
        self.trouble = "it took the connection, and did not answer"
        splitter = Splitter(_BEFORE_WELCOME)
        link = DrivenLink(
            loop,
            connected,
            splitter,
            partial(self._on_frames, welcome, splitter),
            partial(self._on_end, welcome, ended),
        )
        self._do(self._begin, link, welcome)
        link.start_reading()
        await welcome
        link.is_open = True

    def _begin(self, link: DrivenLink, welcome: asyncio.Future[None]) -> None:
        self._link, self._current = link, welcome
        self._conversation.begin()

    def _on_frames(
        self, welcome: asyncio.Future[None], splitter: Splitter, frames: list[Frame]
    ) -> None:
        """On the thread that reads the link. Callbacks of answers run in between."""
        event: Any = None

        def receive(received: Frame) -> None:
            nonlocal event
            event = None
            if self._current is not welcome:  # it has ended
                return
            try:
                event = self._conversation.receive(received)
            except (ProtocolError, ConnectionRejected) as error:
                event = error

        for received in frames:
            self._do(receive, received)
            if isinstance(event, ConnectionRejected):
                text = f"{self._address}: {event}"
                self._end(ConnectionRejected(text))
                self._hang_up(text)
                return
            if isinstance(event, ProtocolError):
                raise ProtocolError(f"the server broke the protocol: {event}")
            if isinstance(event, Welcome):
                splitter.limit = MOST if event.frame > MOST else event.frame
                if not welcome.done():
                    welcome.set_result(None)
                self.opened.set_result(None)
            elif isinstance(event, Goodbye):
                self._io.call_soon(partial(self._on_goodbye, event, welcome))

    def _on_goodbye(self, goodbye: Goodbye, welcome: asyncio.Future[None]) -> None:
        text = f"{self._address} says {goodbye.reason.name.lower()}: {goodbye.text}"
        if goodbye.reason.is_final:
            self._end(ConnectionRejected(text))
        elif not welcome.done():
            welcome.set_exception(ConnectionLost(text))

    def _on_end(self, welcome: asyncio.Future[None], ended: asyncio.Future[str], why: str) -> None:
        why = f"the connection to {self._address} was lost: {why}"
        self._settle(why)
        if not welcome.done():
            if self._context is None and isinstance(self._address, TCPAddress):
                why = f"{why}; if the server needs TLS, give ca_file="
            welcome.set_exception(ConnectionLost(why))
        if not ended.done():
            ended.set_result(why)

    async def _ping_often(self) -> None:
        """Ping, to show that this side is alive, and to learn whether the other is."""
        server = self.server
        if server is None:
            return
        pause = max(0.01, server.idle / 3)
        link = self._link
        assert link is not None
        with suppress(ConnectionLost):  # another connection has its own
            answer = self.ping()
            while True:
                received, waiting = link.received, link.output_size
                await asyncio.sleep(pause)
                if answer.done():
                    answer = self.ping()
                elif link.received == received and link.output_size >= waiting:  # nothing moves
                    self._hang_up(f"no answer to a ping in {pause:g} s")

    def _hang_up(self, why: str) -> None:
        if self._link is not None:
            self._link.abort(why)
        self._settle(why)

    def _settle(self, why: str) -> None:
        """Fail the futures that waited for a connection that is lost."""
        self._do(self._end_conversation, why)

    def _end_conversation(self, why: str) -> None:
        self._link = self._current = None
        self._conversation.end(why)

    def _close(self, why: str = "") -> None:
        link = self._do(self._conversation.say_goodbye)
        self._end(ConnectionLost(why or f"the connection to {self._address} was closed"))
        if link is not None:
            link.close()
        else:
            self._main.cancel()

    def _end(self, error: RemoteError) -> None:
        """There will be no other connection."""
        with self._lock:
            if self._error is None:
                self._error = error
            self._conversation.give_up(self._error)
            outcomes = self._conversation.take()[1]
        for outcome in outcomes:
            outcome.complete()
        self.opened.set_exception(self._error)


def _break_off(link: DrivenLink | None, outcomes: Sequence[Completion]) -> None:
    """End a connection on which a thread was interrupted, and complete its futures."""
    if link is not None:
        link.break_off("a thread was interrupted while it sent")
    for outcome in outcomes:
        outcome.complete()


def may_block() -> bool:
    """Tell whether this thread may wait: it runs neither an event loop nor actors."""
    return asyncio._get_running_loop() is None and not on_worker()
