"""Dead letters: messages that were told and not handled."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from callboard.core.interrupts import comes_from_signal
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.failures import ActorEnd, FailureReport, plain_ends
from callboard.messages import DeadLetter

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard.recipient import Recipient


_ENDS = ("stopped", "system stopped")  # reasons of messages left in a mailbox


class WakeUps(NamedTuple):
    """Messages that an actor leaves behind and that are not dead letters, and their handling."""

    kind: type
    see_to: Callable[[Any, ActorRef[Any]], object]


class DeadLetters:
    """Counts dead letters by reason, and hands them to subscribers. Knows how actors ended."""

    def __init__(self, system: str = "callboard") -> None:
        self._system = system
        self._plain_ends = plain_ends(system)
        # Reentrant: a forgotten failure may free an object whose __del__ tells a stopped actor.
        self._lock = threading.RLock()
        self._on_failure: Callable[[BaseException], object] | None = None  # for tests
        # The traces: called in any thread with what happened, the actor, and a name for it.
        self.observer: Callable[[str, ActorRef[Any], str], object] | None = None
        # Keeps the latest ones for observers: called in any thread, with what `post()` is given.
        self.keeper: Callable[[Any, Any, Any, str, Any], object] | None = None
        self._reasons: defaultdict[str, int] = defaultdict(int)
        self._subscribers: list[Any] = []
        self._failures: deque[tuple[str, FailureReport]] = deque(maxlen=100)
        self._failure_count = 0
        self._restart_count = 0
        self._fatal: list[tuple[str, FailureReport]] = []
        self._ends: WeakKeyDictionary[ActorRef[Any], ActorEnd] = WeakKeyDictionary()
        self._woken: WeakKeyDictionary[ActorRef[Any], WakeUps] = WeakKeyDictionary()

    @property
    def count(self) -> int:
        """How many dead letters there were."""
        with self._lock:
            return sum(self._reasons.values())

    @property
    def reasons(self) -> dict[str, int]:
        """How many there were for each reason."""
        with self._lock:
            return dict(self._reasons)

    @property
    def failures(self) -> list[tuple[str, FailureReport]]:
        """The latest failures of actors, 100 at most: the actor's path, and its exception."""
        with self._lock:
            return list(self._failures)

    @property
    def failure_count(self) -> int:
        """How many times actors failed."""
        return self._failure_count

    @property
    def restart_count(self) -> int:
        """How many times actors were restarted after a failure."""
        return self._restart_count

    @property
    def fatal(self) -> list[tuple[str, FailureReport]]:
        """The first failures, 100 at most, that supervision let stop their actors."""
        with self._lock:
            return list(self._fatal)

    def subscribe(self, subscriber: Recipient[DeadLetter] | Callable[[DeadLetter], object]) -> None:
        """Hand every DeadLetter from now on to an actor or another Recipient, or to a function.

        A function runs in the thread that made the dead letter, often a worker: keep it short. If
        it raises, that is logged, SystemExit included.
        """
        if not callable(subscriber) and not hasattr(subscriber, "tell"):
            raise TypeError(f"subscribe() expects a ref or a function, got {safe_repr(subscriber)}")
        with self._lock:
            self._subscribers = [*self._subscribers, subscriber]

    def unsubscribe(self, subscriber: object) -> None:
        """Take `subscribe(subscriber)` back."""
        with self._lock:
            self._subscribers = [other for other in self._subscribers if other != subscriber]

    def post(
        self,
        message: object,
        recipient: ActorRef[Any],
        sender: ActorRef[Any] | None,
        reason: str,
        error: BaseException | None = None,
    ) -> None:
        """Count a dead letter and hand it on. The runtime calls this, in any thread."""
        with self._lock:
            left = self._woken.get(recipient) if reason in _ENDS else None
            if left is None or not isinstance(message, left.kind):
                left = None
                self._reasons[reason] += 1
                subscribers = self._subscribers
        if left is not None:
            left.see_to(message, recipient)
            return
        if self.observer is not None:
            self.observer("dead letter to", recipient, reason)
        if self.keeper is not None:
            self.keeper(message, recipient, sender, reason, error)
        if not subscribers or isinstance(message, DeadLetter):
            return  # a letter about a letter would have no end
        letter = DeadLetter(message, recipient, sender, reason, error)
        for subscriber in subscribers:
            try:
                if hasattr(subscriber, "tell"):
                    subscriber.tell(letter)
                else:
                    subscriber(letter)
            except BaseException as failure:  # it does not reach the sender of the message
                if comes_from_signal(failure):
                    raise
                log.error("a subscriber of dead letters failed", exc_info=failure)

    def expect_wake_ups(
        self,
        ref: ActorRef[Any],
        kind: type = object,
        see_to: Callable[[Any, ActorRef[Any]], object] = lambda _message, _ref: None,
    ) -> None:
        """Make no letters of the messages of this kind that an actor leaves: they only wake it.

        `see_to(message, ref)` is called instead, in any thread. The runtime calls this, for actors
        of its own.
        """
        with self._lock:
            self._woken[ref] = WakeUps(kind, see_to)

    def note_failure(self, ref: ActorRef[Any], error: BaseException) -> None:
        """Remember that an actor failed. The runtime calls this."""
        report = FailureReport.of(error)
        with self._lock:
            self._failure_count += 1
            self._failures.append((ref.path, report))
        if self._on_failure is not None:
            self._on_failure(error)
        if self.observer is not None:
            self.observer("failure of", ref, report.type.__qualname__)

    def note_restart(self, ref: ActorRef[Any]) -> None:
        """Count that an actor restarts, and tell traces. The runtime calls this."""
        with self._lock:
            self._restart_count += 1
        if self.observer is not None:
            self.observer("restart of", ref, "")

    def note_fatal(
        self, ref: ActorRef[Any], error: BaseException, *, begun: bool = True, counts: bool = True
    ) -> None:
        """Remember a failure that ends its actor, or that happened in its end. For the runtime.

        `begun` is false for a failure in the actor's start. If it does not count, it is another's,
        too.
        """
        report = FailureReport.of(error)
        end = ActorEnd._by_failure(ref._short_path, report, begun=begun)
        with self._lock:
            self._ends.setdefault(ref, end)
            if counts and len(self._fatal) < 100:
                self._fatal.append((ref.path, report))

    def note_end_with(self, ref: ActorRef[Any], other: ActorRef[Any]) -> None:
        """Remember that an actor is stopped because `other` has failed. For the runtime."""
        with self._lock:
            end = self._ends.get(other)
            if end is not None:
                self._ends.setdefault(ref, end._of_another())

    def end_of(self, ref: ActorRef[Any]) -> ActorEnd:
        """Return how an actor ended. All that tell of its end have it from here."""
        with self._lock:
            end = self._ends.get(ref)
        return self._plain_ends[ref._ending] if end is None else end

    def __repr__(self) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.reasons.items()))
        return (
            f"<DeadLetters of {self._system!r}: {reasons or 'none'}; "
            f"{self._failure_count} failures of actors>"
        )
