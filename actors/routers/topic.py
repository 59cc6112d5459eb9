"""Publish and subscribe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from callboard import Actor, ActorRef, Terminated
from callboard.core.text import safe_repr
from callboard.recipient import Recipient, is_recipient


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Told to a topic: from now on `ref` gets each message of class `kind` or a subclass."""

    ref: Recipient[Any]
    kind: type = object

    def __post_init__(self) -> None:
        if not is_recipient(self.ref):
            raise TypeError(f"Subscribe() expects a ref, got {safe_repr(self.ref)}")
        if not isinstance(self.kind, type):
            raise TypeError(f"Subscribe() expects a class, got {safe_repr(self.kind)}")


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Told to a topic: `ref` gets no more messages."""

    ref: Recipient[Any]


class Topic(Actor[Any]):
    """Forwards each message that it is told to its subscribers.

    A subscriber gets a message once, however many of its classes match. Messages of one publisher
    reach each subscriber in order. An actor that ends is no longer a subscriber. If a subscriber's
    `tell` raises, for example because its mailbox is full, the message for it becomes a dead
    letter, `refused`, and the others still get it.
    """

    def __init__(self) -> None:
        self._kinds: dict[Recipient[Any], tuple[type, ...]] = {}

    def receive(self, message: Any) -> None:
        """Subscribe, unsubscribe, or tell the subscribers."""
        if isinstance(message, Subscribe):
            kinds = self._kinds.get(message.ref, ())
            if message.kind not in kinds:
                self._kinds[message.ref] = (*kinds, message.kind)
            if isinstance(message.ref, ActorRef):
                self.watch(message.ref)
        elif isinstance(message, Unsubscribe):
            if self._kinds.pop(message.ref, None) and isinstance(message.ref, ActorRef):
                self.unwatch(message.ref)
        elif isinstance(message, Terminated) and message.ref in self._kinds:
            del self._kinds[message.ref]
        else:
            for ref, kinds in list(self._kinds.items()):
                if isinstance(message, kinds):
                    self._tell(ref, message)

    def _tell(self, ref: Recipient[Any], message: Any) -> None:
        try:
            ref.tell(message)
        except Exception as error:
            to = ref if isinstance(ref, ActorRef) else self.ref
            system = self.ref.system
            assert system is not None, "its worker keeps it"
            system.dead_letters.post(message, to, self.ref, "refused", error)
