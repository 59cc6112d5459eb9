"""A client's messages across connections: which wait, which are sent, which are lost.

Without I/O: `take()` returns the data to send and the futures to complete. Each
message is sent at most once. A message that was not sent when a connection broke goes over the next
one. A message that was sent and not acknowledged is counted and reported.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from callboard import Future
from callboard.core import errors
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
    Credit,
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


class Submission:
    """One or several messages for an entry point of the server."""

    __slots__ = (
        "answer",
        "dead_letters",
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
        self.dead_letters: set[int] | None = None
        """The places of messages that are dead letters already, for a pool."""

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


OnLoss = Callable[[list[Submission], RemoteError], object]
"""Called with told messages that were lost or refused, and why; at the end of a connection also
without any."""


class Conversation:
    """One client's state. Callers in several threads need a lock."""

    def __init__(
        self,
        encoding: Codec,
        secret: bytes,
        shard: Shard | None = None,
        on_loss: OnLoss | None = None,
    ) -> None:
        """With `on_loss`, told messages are kept until they are acknowledged.

        It is called for those that are lost or refused, and no later call raises their errors.
        """
        self._on_loss = on_loss
        self._told: deque[list[Any]] = deque()  # sequence, messages, the Submission or None
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

    def told(self, sequence: int) -> Submission | None:
        """Return the told submission with this number, unless it is known to be handled.

        It is of this connection, or of the one that has just ended. None without `on_loss`.
        """
        for number, _, submission in self._told:  # it is one of the first
            if number >= sequence:
                return submission if number == sequence else None
        return None

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
        self._told.clear()

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
        elif isinstance(event, Credit):
            self._note_credit(event.messages)
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
        lost = side.unacknowledged
        if self._on_loss is None:
            self.lost = lost = self.lost + lost
        else:
            self._lose([told for _, _, told in self._told if told is not None], why)
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
        known = _KNOWN.get(event.kind)
        error = RemoteCallError(event.kind, event.text) if known is None else known(event.text)
        if event.was_asked:
            self._complete(self._take_answer(event.sequence), None, error)
        elif self._on_loss is not None:
            self._refuse(event)
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

    def _note_credit(self, messages: int) -> None:
        """Drop kept messages that are acknowledged."""
        while messages > 0 and self._told:
            messages -= self._told.popleft()[1]

    def _lose(self, submissions: list[Submission], why: str) -> None:
        messages = sum(submission.messages for submission in submissions)
        text = f"{why}; whether it was handled is unknown"
        self._call_on_loss(submissions, ConnectionLost(text, messages))

    def _refuse(self, event: Failed) -> None:
        if event.kind == errors.MailboxFull.__name__:
            return  # there are dead letters of those that were refused
        for told in self._told:
            if told[0] == event.sequence and told[2] is not None:
                submission, told[2] = told[2], None
                self._call_on_loss([submission], RemoteCallError(event.kind, event.text))

    def _call_on_loss(self, submissions: list[Submission], error: RemoteError) -> None:
        assert self._on_loss is not None
        lost: Future[None] = Future()
        call = partial(self._on_loss, submissions, error)
        lost.add_done_callback(lambda _: call())
        self._complete(lost, None)

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
            if self._on_loss is not None:
                self._told.append([sequence, submission.messages, submission])
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

        It does not wait for asks that timed out or were cancelled. A pool, which has `on_loss`,
        does, as its process works on them.
        """
        side = self.side
        if side is None or not side.account.messages:
            return False
        if self._on_loss is not None or side.unacknowledged:
            return True
        return bool(self._wanted)

    def _complete(
        self, future: Future[Any] | None, value: Any, error: BaseException | None = None
    ) -> None:
        if future is not None:
            self._outcomes.append(Completion(future, value, error))
