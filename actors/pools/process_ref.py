"""The ref of an actor in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from callboard import Future
from callboard.core import checks
from callboard.core.errors import AskTimeout, CallboardError
from callboard.core.handles import CopiedAsItself
from callboard.pools.link import ProcessLink
from callboard.pools.messages import BATCH, TELL, TELL_MANY
from callboard.recipient import TOLD, together
from callboard.remote.client.remote_ref import Leaving, missing_attribute
from callboard.remote.client.session import may_block
from callboard.remote.errors import ConnectionLost
from callboard.remote.wire.arrow_ipc import write_batch
from callboard.remote.wire.codec import Codec
from callboard.rows.batches import iterator_over
from callboard.timers import Timers

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1024  # of tell_many(), in a message
_LONGEST = 1 << 26  # bytes of these
# Seconds that a thread waits until a process takes a message. It may start slowly on a busy
# machine, or work for long; a stop of the pool ends the wait at once.
_PATIENCE = 3600.0


class ProcessRef(CopiedAsItself):
    """A handle on the actor in one process of a pool. Safe in every thread.

    `tell` and `tell_many` never wait in an actor, in a coroutine, or in a callback of an answer.
    Messages wait there in this process. They are dead letters if they can never leave.
    """

    def __init__(self, link: ProcessLink, codec: Codec, timers: Timers) -> None:
        self.path = link.path
        self._link = link
        self._codec = codec
        self._timers = timers
        self._retire: Callable[[], object] = _nothing

    def tell(self, message: Any) -> None:
        """Send `message`. Waits for the process where the thread may wait.

        Raises ConnectionLost if the pool has stopped, and CodecError.
        """
        self._tell(TELL, self._codec.encode(message), 1)

    def tell_many(self, messages: Iterable[Any]) -> None:
        """Send all of `messages`, in their order, many at a time."""
        for data, size in self._portions(messages):
            self._tell(TELL_MANY, data, size)

    def atell(self, message: Any) -> Future[None]:
        """Send `message` as soon as the process takes it; return a future that is done then."""
        return self._soon(TELL, self._codec.encode(message), 1)

    def atell_many(self, messages: Iterable[Any]) -> Future[None]:
        """Send all of `messages` as soon as the process takes them; return a future."""
        return together([self._soon(TELL_MANY, *portion) for portion in self._portions(messages)])

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Send an Arrow record batch as one message. Waits and raises like `tell`."""
        self._tell(BATCH, b"".join(write_batch(batch)), 1)

    def asend_batch(self, batch: pa.RecordBatch) -> Future[None]:
        """Send an Arrow record batch as soon as the process takes it; return a future."""
        return self._soon(BATCH, b"".join(write_batch(batch)), 1)

    def ask(self, message: Any, timeout: float | None = None) -> Future[Any]:
        """Send `message`, and return a future of the answer.

        It fails with ConnectionLost if the process ends before it has answered. A thread that waits
        in `result()` receives the answers itself, and completes all that come.
        """
        if timeout is None:
            return self._link.ask(message)
        seconds = checks.seconds("timeout", timeout)
        answer = self._link.ask(message)
        error = AskTimeout(f"no answer from {self.path!r} after {seconds:g} s")

        def expire() -> None:
            if answer.set_exception(error):
                self._link.withdraw(answer)

        timer = self._timers.call_after(seconds, expire)
        if not answer._take_timer(timer):
            timer.cancel()
        return answer

    def stop(self, *, after_queue: bool = False) -> None:
        """End the process when all that was sent is handled. For the router."""
        self._retire()

    @property
    def queue_length(self) -> int:
        """How many messages were sent, and are not known to be handled."""
        return self._link.outstanding

    def _portions(self, messages: Iterable[Any]) -> Iterator[tuple[bytes, int]]:
        source = iterator_over("tell_many()", messages, "messages")
        while rows := list(islice(source, _ROWS)):
            yield from self._codec.encode_lots(rows, _LONGEST)

    def _tell(self, kind: int, data: bytes, size: int) -> None:
        may_wait = may_block() and not self._link.is_received_here
        waiting = self._link.submit(kind, data, size, may_wait)
        if waiting is not None and may_wait:
            self._wait_for(waiting.sent)

    def _wait_for(self, sent: Future[None]) -> None:
        try:
            sent.result(_PATIENCE)
        except BaseException as error:
            is_withdrawn = self._link.withdraw(sent)
            if is_withdrawn and isinstance(error, AskTimeout):
                text = f"{self.path} has taken no message for {_PATIENCE:g} s"
                raise ConnectionLost(text) from None
            if is_withdrawn or not isinstance(error, CallboardError):
                raise
        sent.result(_PATIENCE)  # not withdrawn: it is sent, or refused

    def _soon(self, kind: int, data: bytes, size: int) -> Future[None]:
        waiting = self._link.submit(kind, data, size, True)
        if waiting is None:
            return TOLD
        return Leaving(waiting.sent, partial(self._link.withdraw, waiting.sent))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: its process belongs to this program")

    def __repr__(self) -> str:
        return f"<ProcessRef {self.path}>"


def _nothing() -> None:
    pass
