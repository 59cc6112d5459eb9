"""A connected socket in an event loop: frames come in, bytes go out."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from threading import Lock

from callboard.remote.wire.frames import Buffer, Frame, Misframed, ProtocolError, Splitter

_PARTS = 1000  # of a vectored write; the kernel takes 1,024
_READS = 64  # in a row, before others have their turn
_MUCH = 1 << 20  # bytes: a sender with more to send waits for others
_SMALL = 4096  # bytes: copying them costs less than another part of a write
_STUCK = 20.0  # seconds that a closing link waits for the other side to read on
_LINGER = 1.0  # seconds that a closing link waits for the other side to hang up
AGAIN = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""The exceptions of a socket that has nothing to read, or no room."""
BREAKS = (OSError, ProtocolError, EOFError)
"""The exceptions that end a link that reads; ssl.SSLError is an OSError."""


class Link:
    """A non-blocking socket, plain or of TLS.

    Frames are read on the loop's thread. Bytes may be sent in any thread, and are written by that
    thread, unless others wait: so an answer need not wake the loop. They are queued first, with the
    lock that keeps them in order, and pushed without it. A thread that they wake often runs at once
    in the place of the sender, and would wait for that lock. `on_frames` is called on the reading
    thread, `on_end` once on the loop's, with the reason.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: socket.socket,
        splitter: Splitter,
        on_frames: Callable[[list[Frame]], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._socket = connected
        self._is_tls = isinstance(connected, ssl.SSLSocket)
        self._readable = connected.fileno()  # what the loop looks at
        self.splitter = splitter
        self._on_frames = on_frames
        self._on_end = on_end
        self._lock = Lock()  # of the output, and of the link's state
        # Held by the one thread that writes; with TLS also by a thread that reads. Taken before the
        # other.
        self._writing = Lock()
        self._is_stuck = False  # the socket is full: somebody waits until it is not
        self._output: deque[Buffer] = deque()
        self.output_size = 0
        """The number of bytes that wait to be sent."""
        self._is_reading = False
        self._is_closing = False
        self._ended = False
        self.received = 0
        """The number of bytes received."""
        self.on_sent: Callable[[], None] = _nothing
        """Called on the loop's thread when it has sent all waiting output."""
        self.on_misframed: Callable[[Misframed], None] = _raise
        """Called on the reading thread when the input cannot be cut into frames."""

    # --- on the loop's thread ---------------------------------------------------------------------

    def start_reading(self) -> None:
        """Read frames, from the start or again."""
        if not self._is_reading and not self._ended:
            self._is_reading = True
            self._loop.add_reader(self._readable, self._read)
            if self._is_tls:
                self._loop.call_soon(
                    self._read
                )  # data that OpenSSL has read already does not wake the loop

    def stop_reading(self) -> None:
        """Read no more, until `start_reading()`: the other side will find the connection full.

        When all waiting output is sent, `on_sent` is called.
        """
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._readable)
            self._watch()

    def close(self) -> None:
        """Send the waiting output, then hang up. Frames that come before that are ignored."""
        with self._lock:
            if self._is_closing or self._ended:
                return
            self._is_closing = True
        self.start_reading()
        self.push()
        if self._output:
            self._watch()
            self._loop.call_later(_STUCK, self._end_if_stuck, self.output_size)
        else:
            self._hang_up()

    def _end_if_stuck(self, before: int) -> None:
        """Hang up on a side that has read nothing since `before`; else check again later."""
        if self._ended or not self._output:
            return
        left = self.output_size
        if left >= before:
            self.abort(f"the other side has read nothing for {_STUCK:g} s")
        else:
            self._loop.call_later(_STUCK, self._end_if_stuck, left)

    def abort(self, why: str) -> None:
        """Hang up at once. Waiting output is lost."""
        with self._writing, self._lock:
            if self._ended:
                return
            self._ended = True
            self._output.clear()
            self.output_size = 0
            self._loop.remove_reader(self._readable)
            self._loop.remove_writer(self._socket.fileno())
            self._close_socket()
        self._on_end(why)
        self._forget()

    def _forget(self) -> None:
        """Drop the callbacks, which form a cycle with this link."""
        self._on_frames = self._on_end = self.on_misframed = _ignore
        self.on_sent = _nothing

    def _close_socket(self) -> None:
        """Close the socket, with the locks, when nobody reads."""
        with suppress(OSError):  # the other side has hung up already
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread in help(); close() does not
        self._socket.close()
        self.splitter.release()

    def _hang_up(self) -> None:
        """Shut the output down, and let the other side read it before the socket is closed."""
        with suppress(OSError), self._writing:
            self._socket.shutdown(socket.SHUT_WR)
        self._loop.call_later(_LINGER, self.abort, "closed by this side")

    def _read(self) -> None:
        try:
            for _ in range(_READS):
                if not self._is_reading or self._ended or not self._receive():
                    return
            if self._is_tls:
                self._loop.call_soon(
                    self._read
                )  # data that OpenSSL has read already does not wake the loop
        except AGAIN:
            pass
        except BREAKS as error:
            self.abort(why_it_breaks(error))

    def _receive(self) -> bool:
        """Receive once, and pass complete frames on. Returns False if there was no more input.

        Raises the exceptions in `AGAIN` and `BREAKS`.
        """
        place = self.splitter.buffer()
        if self._is_tls:
            with self._writing:
                count = self._socket.recv_into(place)
        else:
            count = self._socket.recv_into(place)
        if count == 0:
            middle = "" if self.splitter.is_empty else ", in the middle of a frame"
            raise EOFError(f"the other side hung up{middle}")
        self.received += count
        full = count == len(place) or self._is_tls
        if self._is_closing:
            return full
        misframed = None
        try:
            frames = self.splitter.received(count)
        except Misframed as error:
            frames, misframed = error.before, error
        if frames:
            self._on_frames(frames)
        if misframed is not None:
            self.on_misframed(misframed)
            return False
        return full

    def _write(self) -> None:
        try:
            with self._writing:
                if self._ended or not self._write_all():
                    return
        except OSError as error:
            self.abort(why_it_breaks(error))
            return
        if self._output:  # of others, which left it to this thread: the loop calls again
            return
        self._loop.remove_writer(self._socket.fileno())
        if self._is_closing:
            self._hang_up()
        self.on_sent()

    # --- in any thread ----------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        """Whether it was hung up."""
        return self._ended

    def queue(self, *parts: Buffer) -> None:
        """Append bytes to the output. A call of `push()` follows, in this thread."""
        size = sum(map(len, parts))
        if len(parts) > 1 and (self._is_tls or size <= _SMALL or len(parts) > _PARTS):
            parts = (b"".join(parts),)  # with TLS, each write is a record of its own
        with self._lock:
            if not self._ended and not self._is_closing:
                self.output_size += size  # first: the writer takes 0 for all of it
                self._output.extend(parts)

    def push(self, *, helped: bool = False) -> None:
        """Send the output, now or when the other side has read the output before it.

        If another thread is sending, it goes on with this, unless there is much. With `helped` the
        caller calls `help()` next.
        """
        while self._output and not self._is_stuck and not self._ended:
            if not self._writing.acquire(self._is_tls or self.output_size > _MUCH):
                return
            try:
                is_sent = False
                with suppress(OSError):  # the loop finds out, and says so
                    is_sent = self._ended or self._write_all()
                if not is_sent:
                    self._is_stuck = True
            finally:
                self._writing.release()
            if not is_sent and not helped:
                self._call(self._watch)

    def help(self, timeout: float) -> None:
        """Write the output in this thread, which may block for `timeout`, instead of the loop's."""
        if not self._output:
            return
        is_sent = False
        try:
            poller = select.poll()
            with suppress(ValueError):  # it was closed
                poller.register(self._socket, select.POLLOUT)
            deadline = time.monotonic() + timeout
            while self._output and not is_sent and time.monotonic() < deadline:
                poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
                with self._writing:
                    is_sent = self._ended or self._write_all()
        except OSError:
            pass  # the loop finds out, and says so
        finally:
            if not is_sent:
                self._call(self._watch)
        if is_sent:
            self.push()  # output of others, which left it to this thread

    def call_close(self) -> None:
        """`close()`, from any thread."""
        self.call(self.close)

    def call(self, function: Callable[[], None]) -> None:
        """Call a function on the loop's thread: now if this is it, else soon."""
        if asyncio._get_running_loop() is self._loop:
            function()
        else:
            self._call(function)

    def _close_in_child(self) -> None:
        """In a forked child: close the copy of the socket, and touch nothing shared."""
        self._ended = True
        self._socket.close()

    def _call(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and all links with it
            self._loop.call_soon_threadsafe(function)

    def _watch(self) -> None:
        if not self._ended:
            self._loop.add_writer(self._socket.fileno(), self._write)

    def _write_all(self) -> bool:
        """Write as much as there is room for, while nobody else writes. Raises OSError.

        Returns False if that was not all.
        """
        output = self._output
        while True:
            with self._lock:
                parts = tuple(islice(output, 1 if self._is_tls else _PARTS))
                if not parts:
                    self._is_stuck = False
                    return True
            try:
                count = self._write_some(parts)
                if count == 0:
                    return False
                with self._lock:
                    self.output_size = max(0, self.output_size - count)
                    if self.output_size == 0:  # that was all, or the link broke
                        output.clear()
                        self._is_stuck = False
                        return True
                    for _ in parts:
                        output.popleft()
                    output.extendleft(reversed(_behind(count, parts)))
            except OSError:
                raise
            except BaseException:
                self.break_off("the thread that wrote to it was interrupted")
                raise

    def break_off(self, why: str) -> None:
        """Have the loop's thread abort; from now on nothing is sent or taken."""
        with self._lock:
            self._is_closing = True
            self._output.clear()
            self.output_size = 0
        self._call(partial(self.abort, why))

    def _write_some(self, parts: Sequence[Buffer]) -> int:
        """Write once; return the number of bytes written. Raises OSError."""
        try:
            if len(parts) == 1:
                return self._socket.send(parts[0])
            return self._socket.sendmsg(parts)
        except AGAIN:
            return 0


def why_it_breaks(error: Exception) -> str:
    """Return the reason of a link's end by `error`."""
    return f"the connection broke: {error}" if isinstance(error, OSError) else str(error)


def _behind(count: int, parts: Iterable[Buffer]) -> list[memoryview]:
    """Return the rest of `parts` after `count` bytes."""
    left = []
    for part in parts:
        if count < len(part):
            left.append(memoryview(part)[count:])
        count = max(0, count - len(part))
    return left


def _nothing() -> None:
    pass


def _ignore(what: object) -> None:
    pass


def _raise(error: Misframed) -> None:
    raise error
