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
    """A mailbox has become long, or is short again, or its actor has ended."""

    kind: Literal["mailbox_high", "mailbox_low"]
    actor: ActorRef[Any]
    queue: int
    """How many messages waited then."""


Subscriber = Callable[[MailboxEvent], object]


class MailboxWatch:
    """Looks at all mailboxes again and again, until it is stopped, or its system is.

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
            raise ConfigError(f"`low` is less than `high`, but they are {low} and {high}")
        if subscriber is not None and not (callable(subscriber) or hasattr(subscriber, "tell")):
            what = safe_repr(subscriber)
            raise ConfigError(f"events of mailboxes go to a ref or a function, not to {what}")
        self._name = runtime.name
        self._high, self._low = high, low
        self._subscriber = subscriber
        self._scan = ActorScan(runtime)
        self._lock = threading.Lock()
        self._found: deque[MailboxEvent] = deque()
        self._is_handing_out = False
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
        """Look once, at once, and hand out the events that this finds. Returns them. Any thread.

        Events are handed out in their order, one at a time. If another call is handing out events,
        as when a subscriber looks, that call hands out these, too, and this one does not wait.
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
        self._hand_out_all()
        return found

    def stop(self) -> None:
        """Look no more. An event that is being handed out may still come."""
        self._stopped.set()

    def _event(self, kind: Literal["mailbox_high", "mailbox_low"], ref: ActorRef[Any]) -> Any:
        if kind == "mailbox_high":
            self._long[ref] = None
        else:
            del self._long[ref]
        return MailboxEvent(kind, ref, ref._queue_length or 0)

    def _hand_out_all(self) -> None:
        while True:
            with self._lock:
                if self._is_handing_out or not self._found:
                    return
                self._is_handing_out = True
                event = self._found.popleft()
            try:
                self._hand_out(event)
            finally:
                self._is_handing_out = False

    def _hand_out(self, event: MailboxEvent) -> None:
        write = log.warning if event.kind == "mailbox_high" else log.info
        write(event.kind, system=self._name, actor=event.actor._short_path, queue=event.queue)
        try:
            if self._subscriber is None:
                pass
            elif callable(self._subscriber):
                self._subscriber(event)
            elif self._subscriber != event.actor:  # else its mailbox would be longer for each event
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
    """Log an event for each mailbox in which `high` messages wait; hand it to `to`, as well.

    The next event of that mailbox is that `low` or less wait, half of `high` without it, or that
    the actor has ended. A thread looks each `every` seconds, so a mailbox that is long for less
    time may have no event; it calls the function. Senders and receivers do no more work. An event
    about the mailbox of the ref `to` itself is logged, and not sent to it. The watch ends with the
    system, with its `stop()`, and when nobody has what this returns.

    Raises CallboardError below the monitoring level "mailboxes", at which mailboxes without limits
    are not counted, and ConfigError.
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
    """Look each time, as long as somebody has the watch."""
    while not stopped.wait(every):
        watch = reference()
        if watch is None:
            return
        watch.look()
        del watch
