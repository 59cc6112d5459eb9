"""Probes: stand-ins for an actor's partners."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.core import checks
from callboard.core.handles import CopiedAsItself
from callboard.core.text import safe_repr
from callboard.core.threads.wait_queue import WaitQueue
from callboard.messages import Terminated

if TYPE_CHECKING:
    from callboard.system import ActorSystem

T = TypeVar("T")

# How long a probe of a system with threads waits for a message, in seconds.
_PATIENCE = 3.0


class Probe(CopiedAsItself):
    """A receiver of messages that a test can inspect.

    `probe.ref` is a ref like any other. Messages are kept, in order, until an expectation takes
    them. If an expectation fails, it takes nothing, and its AssertionError shows the messages
    received instead.

    On a ManualSystem an expectation runs the system, and advances its clock by at most `timeout`
    seconds, by default 0. On a system with threads it sleeps until the message is there, for at
    most `timeout` seconds, by default 3.

    `answer(message)` returns the answer to an ask of the probe, or raises its error; it runs on a
    worker.
    """

    def __init__(
        self,
        system: ActorSystem,
        name: str | None = None,
        *,
        answer: Callable[[Any], object] | None = None,
    ) -> None:
        self._system = system
        self._is_manual = system._runtime.manual
        self._inbox = _Inbox()
        self._sender: ActorRef[Any] | None = None
        self.ref: ActorRef[Any] = system.spawn(
            _Receiver, self._inbox, answer, name=name, supervision="resume"
        )

    # --- acting ----------------------------------------------------------------------------------

    def send(self, ref: ActorRef[Any], message: object) -> None:
        """Send `message` to `ref` with the probe as its sender."""
        self.ref.tell(_Send(ref, message))

    def watch(self, ref: ActorRef[Any]) -> None:
        """Receive `Terminated(ref)` when that actor has stopped."""
        self.ref.tell(_Watch(ref))

    # --- expecting -------------------------------------------------------------------------------

    def expect(self, message: T, timeout: float | None = None) -> T:
        """Take the next message, which must be equal to `message`, and return it."""
        came: T = self._take(lambda got: got == message, safe_repr(message), timeout)
        return came

    def expect_type(self, cls: type[T], timeout: float | None = None) -> T:
        """Take the next message, which must be an instance of `cls`, and return it."""
        came: T = self._take(lambda got: isinstance(got, cls), f"a {cls.__qualname__}", timeout)
        return came

    def expect_terminated(self, ref: ActorRef[Any], timeout: float | None = None) -> None:
        """Take the next message, which must say that `ref`, a watched actor, has stopped."""
        self.expect(Terminated(ref), timeout)

    def expect_nothing(self, timeout: float | None = None) -> None:
        """Make sure that there is no message, and that none arrives within `timeout` seconds.

        Without a timeout, make sure that there is none once the system has become idle.
        """
        if timeout is None:
            self._system.drain()
        else:
            self._wait(timeout)
        if came := self.messages:
            raise AssertionError(f"expected nothing, and {_listed(came)} came to {self.ref.path}")

    def receive_one(self, timeout: float | None = None) -> Any:
        """Take the next message, whatever it is, and return it."""
        return self._take(lambda got: True, "a message", timeout)

    def _take(self, fits: Callable[[Any], bool], wanted: str, timeout: float | None) -> Any:
        if not self._wait(timeout):
            raise AssertionError(f"expected {wanted}, and nothing came to {self._place(timeout)}")
        first = self._inbox.received[0]
        if not fits(first.message):
            raise AssertionError(
                f"expected {wanted}, and {_listed(self.messages)} came to {self.ref.path}"
            )
        self._inbox.received.popleft()
        self._sender = first.sender
        return first.message

    def _wait(self, timeout: float | None) -> bool:
        checks.timeout("an expectation's timeout", timeout)
        if self._is_manual:
            system: Any = self._system
            return bool(system.run_until(lambda: bool(self._inbox.received), timeout or 0.0))
        return self._inbox.wait(_PATIENCE if timeout is None else timeout)

    def _place(self, timeout: float | None) -> str:
        if self._is_manual:
            return f"{self.ref.path}; {self._system!r} is idle"
        return f"{self.ref.path} in {_PATIENCE if timeout is None else timeout} s"

    # --- what came -------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Any]:
        """The received messages that were not taken yet, oldest first.

        This neither runs the system nor waits.
        """
        return [each.message for each in list(self._inbox.received)]

    @property
    def sender(self) -> ActorRef[Any] | None:
        """The sender of the message taken last; None if no actor sent it."""
        return self._sender

    def __repr__(self) -> str:
        return f"<Probe {self.ref.path}, {len(self._inbox.received)} messages>"


class _Received(NamedTuple):
    message: Any
    sender: ActorRef[Any] | None


class _Send(NamedTuple):
    """Has the probe's actor send something, so that it is the sender."""

    ref: ActorRef[Any]
    message: Any


class _Watch(NamedTuple):
    """Has the probe's actor watch another."""

    ref: ActorRef[Any]


class _Inbox:
    """The messages between the probe's actor, which puts them, and the test, which takes them."""

    def __init__(self) -> None:
        self.received: deque[_Received] = deque()
        self._changed = WaitQueue()

    def put(self, message: _Received) -> None:
        self.received.append(message)
        self._changed.notify_all()

    def wait(self, timeout: float) -> bool:
        return self._changed.wait_for(lambda: self.received, timeout)


class _Receiver(Actor[Any]):
    def __init__(self, inbox: _Inbox, answer: Callable[[Any], object] | None) -> None:
        self._inbox = inbox
        self._answer = answer

    def receive(self, message: Any) -> Any:
        if isinstance(message, _Send):
            message.ref.tell(message.message)
        elif isinstance(message, _Watch):
            self.watch(message.ref)
        else:
            self._inbox.put(_Received(message, self.sender))
            return None if self._answer is None else self._answer(message)
        return None


def _listed(messages: list[Any]) -> str:
    first, *rest = map(safe_repr, messages)
    return first if not rest else f"{first} (then {', '.join(rest)})"
