"""Events when mailboxes become long, and when they are short again."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from callboard.core import checks
from callboard.core.errors import CallboardError, ConfigError
from callboard.core.interrupts import comes_from_signal
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.observing.scan import ActorScan

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime
    from callboard.recipient import Recipient
    from callboard.system import ActorSystem


@dataclass(frozen=True, slots=True)
class MailboxEvent:
    """A mailbox has become long or short again, or its actor has ended."""

    kind: Literal["mailbox_high", "mailbox_low"]
    actor: ActorRef[Any]
    queue: int
    """The number of waiting messages."""


Subscriber = Callable[[MailboxEvent], object]


class MailboxWatch:
    """Checks all mailboxes periodically, until it or its system is stopped.

    Made by `watch_mailboxes()`. Leaving its `with` block stops it.
    """

    def __init__(
        self,
        runtime: Runtime,
        high: int,
        low: int,
        every: float,
        subscriber: Recipient[MailboxEvent] | Subscriber | None,
    ) -> None:
        if low >= high:
            raise ConfigError(f"expected `low` below `high`, got {low} and {high}")
        if subscriber is not None and not (callable(subscriber) or hasattr(subscriber, "tell")):
            what = safe_repr(subscriber)
            raise ConfigError(f"`to` expects a ref or a function, got {what}")
        self._name = runtime.name
        self._high, self._low = high, low
        self._subscriber = subscriber
        self._scan = ActorScan(runtime)
        self._lock = threading.Lock()
        self._found: deque[MailboxEvent] = deque()
        self._is_delivering = False
        self._long: dict[ActorRef[Any], None] = {}
        self._stopped = threading.Event()
        thread = threading.Thread(
            target=_watch,
            args=(weakref.ref(self), self._stopped, every),
            name=f"{runtime.name}-mailboxes",
            daemon=True,
        )
        thread.start()

    def look(self) -> list[MailboxEvent]:
        """Check now; deliver and return the events found. Any thread may call this.

        Events are delivered in order, one at a time. If another call is delivering events, for
        instance because a subscriber calls this, that call delivers these events, too, and this one
        does not wait.
        """
        with self._lock:
            if self._stopped.is_set():
                return []
            found = [
                self._event("mailbox_high", ref)
                for ref in self._scan.with_queue(self._high)
                if ref not in self._long
            ]
            found += [
                self._event("mailbox_low", ref)
                for ref in list(self._long)
                if not ref.is_alive or (ref._queue_length or 0) <= self._low
            ]
            self._found.extend(found)
        self._deliver_all()
        return found

    def stop(self) -> None:
        """Stop. An event that is being delivered may still come."""
        self._stopped.set()

    def _event(self, kind: Literal["mailbox_high", "mailbox_low"], ref: ActorRef[Any]) -> Any:
        if kind == "mailbox_high":
            self._long[ref] = None
        else:
            del self._long[ref]
        return MailboxEvent(kind, ref, ref._queue_length or 0)

    def _deliver_all(self) -> None:
        while True:
            with self._lock:
                if self._is_delivering or not self._found:
                    return
                self._is_delivering = True
                event = self._found.popleft()
            try:
                self._deliver(event)
            finally:
                self._is_delivering = False

    def _deliver(self, event: MailboxEvent) -> None:
        write = log.warning if event.kind == "mailbox_high" else log.info
        write(event.kind, system=self._name, actor=event.actor._short_path, queue=event.queue)
        try:
            if self._subscriber is None:
                pass
            elif callable(self._subscriber):
                self._subscriber(event)
            elif self._subscriber != event.actor:  # whose mailbox would grow by each event
                self._subscriber.tell(event)
        except BaseException as error:
            if comes_from_signal(error):
                raise
            log.error("a subscriber of mailboxes' events failed", exc_info=error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()


def watch_mailboxes(
    system: ActorSystem,
    *,
    high: int,
    low: int | None = None,
    every: float = 1.0,
    to: Recipient[MailboxEvent] | Subscriber | None = None,
) -> MailboxWatch:
    """Log an event for each mailbox in which `high` messages wait.

    The next event of that mailbox is when `low` or fewer wait, or when the actor has ended. Senders
    and receivers do no additional work. The watch ends with the system, with its `stop()`, or when
    the returned object is collected.

    Args:
        system: The system whose mailboxes are watched.
        high: The number of messages at which a mailbox is long.
        low: The number at which it is short again; by default half of `high`.
        every: Seconds between two checks, by a thread. A mailbox that is long for less time may
            cause no event.
        to: A ref or a function that also gets the events, except those about its own mailbox. The
            thread calls the function.

    Raises:
        CallboardError: The monitoring level is below "mailboxes", so unbounded mailboxes are not
            counted.
        ConfigError: An argument is invalid.
    """
    runtime = system._runtime
    runtime.refuse_fork()
    if not (runtime.counted or runtime.manual):  # a manual system has no levels
        raise CallboardError(
            f"the system {runtime.name!r} counts no mailboxes, because monitoring is "
            f"{runtime.config.monitoring!r}: make it with monitoring='mailboxes'"
        )
    most = checks.whole("`high`", high, error=ConfigError)
    least = most // 2 if low is None else checks.whole("`low`", low, 0, error=ConfigError)
    seconds = checks.seconds("`every`", every, zero=False, error=ConfigError)
    watch = MailboxWatch(runtime, most, least, seconds, to)
    system._observer.stop_with_system(watch)
    return watch


def _watch(reference: weakref.ref[MailboxWatch], stopped: threading.Event, every: float) -> None:
    """Look again and again, while the watch exists."""
    while not stopped.wait(every):
        watch = reference()
        if watch is None:
            return
        watch.look()
        del watch
