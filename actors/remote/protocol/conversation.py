"""A client's messages across connections: which wait, which are sent, which are lost.

Without I/O: `take()` returns the data to send and the futures to complete. Each
message is sent at most once. A message that was not sent when a connection broke goes over the next
one. A message that was sent and not acknowledged is counted and reported.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from callboard import Future
from callboard.core import errors
from callboard.core.errors import CallboardError
from callboard.remote.errors import (
    BatchCommitted,
    CodecError,
    CommitConflict,
    ConnectionLost,
    NotPublished,
    NotUploaded,
    RemoteCallError,
    RemoteError,
    UploadRefused,
)
from callboard.remote.protocol.client_side import (
    BEFORE_DATA,
    Answered,
    ClientSide,
    Failed,
    Pong,
    Welcome,
)
from callboard.remote.protocol.kinds import Goodbye, MessageKind
from callboard.remote.protocol.shard import Shard
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Buffer, Frame

# Callboard's own exceptions keep their class on the way.
_KNOWN = {
    cls.__name__: cls
    for cls in (
        errors.ActorStopped,
        errors.AskDeadlock,
        errors.AskTimeout,
        errors.MailboxFull,
        BatchCommitted,
        CommitConflict,
        NotPublished,
        NotUploaded,
        UploadRefused,
    )
}


def error_of(kind: str, text: str) -> CallboardError:
    """Return the exception of an actor elsewhere, by its type and its text."""
    known = _KNOWN.get(kind)
    return RemoteCallError(kind, text) if known is None else known(text)


class Submission:
    """One or several messages for an entry point of the server."""

    __slots__ = (
        "answer",
        "entry",
        "kind",
        "messages",
        "outcome",
        "parts",
        "sent",
        "size",
        "trace",
    )

    raises_earlier_errors = True
    """Whether `submit()` raises the errors of messages before it."""

    def __init__(
        self,
        kind: MessageKind,
        entry: str,
        parts: tuple[Buffer, ...],
        messages: int = 1,
        answer: Future[Any] | None = None,
        trace: str | None = None,
    ) -> None:
        self.kind = kind
        self.entry = entry
        self.parts = parts
        """The data, which lie one behind the other."""
        self.size = sum(map(len, parts))
        self.messages = messages
        self.answer = answer
        """The future of an ask's answer."""
        self.outcome: Future[Any] = Future() if answer is None else answer
        """The answer, or for a told message a future that is done when it is sent."""
        self.sent: Future[None] | None = self.outcome if answer is None else None
        """This future, if the message is told."""
        self.trace = trace
        """The W3C `traceparent` of the span that sends it, for servers that take one."""

    def fits(self, side: ClientSide, places: Mapping[str, int]) -> bool:
        """Tell whether it may be sent now."""
        return self.entry in places and side.has_room(self.messages, self.size)

    def obstacle(self, side: ClientSide, places: Mapping[str, int]) -> RemoteError | None:
        """Return why the server will never take it, or None."""
        server = side.server
        assert server is not None
        if self.entry not in places:
            known = ", ".join(map(repr, server.entries)) or "none"
            return RemoteError(f"the server has no entry point {self.entry!r}; it has {known}")
        size = self.size + BEFORE_DATA
        if size > server.longest or self.messages > server.messages:
            return RemoteError(
                f"{self.messages} messages of {size} bytes are more than the server takes at a "
                f"time: {server.messages} messages, {server.longest} bytes"
            )
        return None

    def loss(self, side: ClientSide | None) -> ConnectionLost | None:
        """Return why no connection will ever take it, from `side` on, or None."""
        return None

    def dispatch(
        self, side: ClientSide, places: Mapping[str, int]
    ) -> tuple[int, tuple[Buffer, ...]]:
        """Return its sequence number, and what is to be sent."""
        place = places[self.entry]
        sequence, parts = side.deliver(self.kind, place, self.parts, self.size, self.messages)
        if self.trace is not None and side.server is not None and side.server.traces:
            parts = (MessageKind.TRACE.frame(rest=self.trace.encode()), *parts)
        return sequence, parts


class Completion(NamedTuple):
    """The completion of a future, for after the lock is released."""

    future: Future[Any]
    value: Any
    error: BaseException | None

    def complete(self) -> None:
        """Complete the future, which calls its callbacks."""
        if self.error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.error)


class Conversation:
    """One client's state. Callers in several threads need a lock."""

    def __init__(
        self,
        encoding: Codec,
        secret: bytes,
        shard: Shard | None = None,
    ) -> None:
        self._codec = encoding
        self._secret = secret
        self._shard = shard
        self.side: ClientSide | None = None
        self.last_server: Welcome | None = None
        """The last server's description of itself."""
        self.health: dict[str, Any] = {}
        """The content of the last PONG."""
        # By their outcomes, so that one of many is taken back without a search.
        self.waiting: OrderedDict[Future[Any], Submission] = OrderedDict()
        self._places: dict[str, int] = {}  # of the server's entry points
        self._answers: dict[int, Future[Any]] = {}
        self._wanted: set[Future[Any]] = set()  # of these, but for those that were forgotten
        self._flushes: list[Future[None]] = []
        self._pings: dict[int, Future[dict[str, Any]]] = {}
        self._pinged = 0
        self.lost = 0
        """The number of told messages that connections lost, not reported yet."""
        self._refused: Failed | None = None  # the first of what was told and failed
        self._refusals = 0  # how many there were, with that one
        self._output: list[Buffer] = []
        self._outcomes: list[Completion] = []

    def take(self) -> tuple[list[Buffer], list[Completion]]:
        """Return the data to send, in order, and the futures to complete after that."""
        taken = self._output, self._outcomes
        self._output, self._outcomes = [], []
        return taken

    # --- calls of the user ------------------------------------------------------------------------

    @property
    def unacknowledged(self) -> int:
        """The number of told messages that are not known to be handled."""
        return self.lost + (0 if self.side is None else self.side.unacknowledged)

    @property
    def outstanding(self) -> int:
        """The number of told and asked messages that are not known to be handled.

        Each delivery that waits for credit counts as one.
        """
        told = 0 if self.side is None else self.side.unacknowledged
        return told + len(self._answers) + len(self.waiting)

    def raise_earlier_errors(self) -> None:
        """Raise the error of earlier told messages, once."""
        if self.lost:
            lost, self.lost = self.lost, 0
            raise ConnectionLost(
                f"the connection was lost, and {lost} messages on it were not acknowledged", lost
            )
        if (refusal := self._take_refusal()) is not None:
            raise refusal

    def submit(self, submission: Submission) -> None:
        """Send it as soon as there is a connection and credit, after those before it."""
        if (loss := submission.loss(self.side)) is not None:
            self._fail_submission(submission, loss)
            return
        if self.waiting or not self._send(submission):
            self.waiting[submission.outcome] = submission

    def withdraw(self, submission: Submission) -> bool:
        """Withdraw a submission. Returns False if it was sent."""
        if self.waiting.pop(submission.outcome, None) is None:
            return False
        self._go_on()  # with what waited behind it, or for the end of it
        return True

    def forget(self, answer: Future[Any]) -> None:
        """Note that an ask was cancelled or timed out. It is withdrawn if it was not sent."""
        self.waiting.pop(answer, None)
        self._wanted.discard(answer)
        self._go_on()

    def flush(self, flushed: Future[None]) -> None:
        """Complete a future when all messages are handled; it fails if some were lost."""
        self._flushes.append(flushed)
        self._note_rest()

    def ping(self, answer: Future[dict[str, Any]]) -> None:
        """Ask how the server is. Raises ConnectionLost without a connection."""
        if self.side is None or self.side.server is None:
            raise ConnectionLost("there is no connection to ask over")
        self._pinged += 1
        self._pings[self._pinged] = answer
        self._output.append(self.side.ping(self._pinged))

    def say_goodbye(self) -> None:
        """Say goodbye."""
        if self.side is not None:
            self._output.append(self.side.goodbye("the client is done"))

    # --- events of the connection -----------------------------------------------------------------

    def begin(self) -> None:
        """Begin with a new connection."""
        self.side = ClientSide(self._codec, self._secret, self._shard)
        self._output.append(self.side.hello())

    def receive(self, received: Frame) -> Welcome | Goodbye | None:
        """Take a frame; return what concerns the connection itself. Raises Rejected,
        ConnectionRejected.
        """
        assert self.side is not None
        event = self.side.receive(received)
        if isinstance(event, Answered):
            error = event.value if isinstance(event.value, CodecError) else None
            self._complete(self._take_answer(event.sequence), event.value, error)
            self._go_on()
            return None
        if isinstance(event, Failed):
            self._fail(event)
        elif isinstance(event, Pong):
            self.health = event.health
            self._complete(self._pings.pop(event.nonce, None), event.health)
        elif isinstance(event, Welcome):
            self.last_server = event
            self._places = {name: place for place, name in enumerate(event.entries)}
        self._go_on()
        return event if isinstance(event, (Welcome, Goodbye)) else None

    def end(self, why: str) -> None:
        """Note that the connection is gone. The asks on it fail."""
        if self.side is None:
            return
        side, self.side = self.side, None
        self._output.clear()
        self.lost = lost = self.lost + side.unacknowledged
        asked = sum(not answer.done() for answer in self._answers.values())
        for answer in (*self._answers.values(), *self._pings.values()):
            self._complete(
                answer, None, ConnectionLost(f"{why}; whether it was handled is unknown")
            )
        self._answers.clear()
        self._wanted.clear()
        self._pings.clear()
        for submission in [*self.waiting.values()]:
            if (loss := submission.loss(None)) is not None:
                del self.waiting[submission.outcome]
                self._fail_submission(submission, loss)
        if (lost or asked) and self._flushes:
            self.lost = 0
            error = ConnectionLost(
                f"{why}, and {lost} messages were not acknowledged, {asked} asks not answered", lost
            )
            for flushed in self._flushes:
                self._complete(flushed, None, error)
            self._flushes.clear()
        self._note_rest()

    def give_up(self, error: RemoteError) -> None:
        """Fail all waiting messages: there will be no other connection."""
        for submission in self.waiting.values():
            self._fail_submission(submission, error)
        self.waiting.clear()
        for flushed in self._flushes:
            self._complete(flushed, None, error)
        self._flushes.clear()

    def _take_answer(self, sequence: int) -> Future[Any]:
        answer = self._answers.pop(sequence)
        self._wanted.discard(answer)
        return answer

    def _fail(self, event: Failed) -> None:
        error = error_of(event.kind, event.text)
        if event.was_asked:
            self._complete(self._take_answer(event.sequence), None, error)
        else:
            self._refused = self._refused or event
            self._refusals += 1

    def _take_refusal(self) -> RemoteCallError | None:
        """Return the error of told messages that failed, once."""
        refused, self._refused = self._refused, None
        count, self._refusals = self._refusals, 0
        if refused is None:
            return None
        more = f" (the first of {count} failures)" if count > 1 else ""
        return RemoteCallError(refused.kind, refused.text + more)

    def _go_on(self) -> None:
        """Send what waited for credit, and complete flushes."""
        if self.waiting:
            self._send_waiting()
        if self._flushes:
            self._note_rest()

    def _send_waiting(self) -> None:
        while self.waiting:
            submission = next(iter(self.waiting.values()))
            if not self._send(submission):
                return
            del self.waiting[submission.outcome]

    def _send(self, submission: Submission) -> bool:
        """Send it, or fail it if the server will never take it. Returns False if it must wait."""
        side = self.side
        if side is None or not side.is_open:
            return False
        if not submission.fits(side, self._places):
            obstacle = submission.obstacle(side, self._places)
            if obstacle is not None:
                self._fail_submission(submission, obstacle)
            return obstacle is not None
        sequence, parts = submission.dispatch(side, self._places)
        self._output += parts
        if submission.answer is not None:
            self._answers[sequence] = submission.answer
            self._wanted.add(submission.answer)
        else:
            self._complete(submission.sent, None)
        return True

    def _fail_submission(self, submission: Submission, error: RemoteError) -> None:
        self._complete(submission.outcome, None, error)

    def _note_rest(self) -> None:
        if self._flushes and not self.waiting and not self._is_waited_for():
            refusal = self._take_refusal()
            for flushed in self._flushes:
                self._complete(flushed, None, refusal)
            self._flushes.clear()

    def _is_waited_for(self) -> bool:
        """Tell whether a flush must wait for messages on their way.

        It does not wait for asks that timed out or were cancelled.
        """
        side = self.side
        if side is None or not side.account.messages:
            return False
        return bool(side.unacknowledged or self._wanted)

    def _complete(
        self, future: Future[Any] | None, value: Any, error: BaseException | None = None
    ) -> None:
        if future is not None:
            self._outcomes.append(Completion(future, value, error))
