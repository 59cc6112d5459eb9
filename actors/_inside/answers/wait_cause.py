"""The reasons why an actor waits, and their texts, which are made only here."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, NamedTuple


class WaitReason(StrEnum):
    """Why an actor, an operator or a process does nothing, or what it does.

    In the order of a text: those that explain a standstill come first.
    """

    STUCK = "stuck"
    LANES = "lanes"
    WINDOW = "window"
    TOKEN = "token"
    HEURISTIC = "heuristic"
    ROOM = "room"
    ANSWER = "answer"
    INPUT = "input"
    CHANNEL = "channel"
    TIMER = "timer"
    EVENT_LOOP = "event loop"
    ACTOR = "actor"
    RESTART = "restart"
    CHILDREN = "children"
    PROCESS = "process"
    QUEUED = "queued"
    RUNNING = "running"
    NO_INPUT = "no input"

    __repr__ = str.__repr__  # it prints as a plain string


class WaitTarget(Enum):
    """The things that an actor can wait for: the reason of each, and a text with its subject."""

    MESSAGE = WaitReason.NO_INPUT, "a message"
    ANSWER = WaitReason.ANSWER, "an answer"
    ANSWER_OF = WaitReason.ANSWER, "an answer of {}"
    ROOM = WaitReason.ROOM, "room at {}"
    CHANNEL_ROOM = WaitReason.CHANNEL, "room in channel {}"
    CHANNEL_VALUE = WaitReason.CHANNEL, "a value of channel {}"
    CHANNEL_ENDS = WaitReason.CHANNEL, "one of {} ends"
    TIMER = WaitReason.TIMER, "a timer"
    DELAYED_ASK = WaitReason.TIMER, "an ask that waits to be sent"
    EVENT_LOOP = WaitReason.EVENT_LOOP, "its event loop"
    ACTOR = WaitReason.ACTOR, "an actor at {}"
    RESTART = WaitReason.RESTART, "a restart"
    CHILDREN = WaitReason.CHILDREN, "the end of its children"


class WaitCause(NamedTuple):
    """The thing that an actor waits for, and its subject: a ref, a path, a channel or a number."""

    target: WaitTarget
    subject: Any = None

    @property
    def reason(self) -> WaitReason:
        """The reason that observers count."""
        reason, _ = self.target.value
        return reason

    def __str__(self) -> str:
        """Say it in words, as in "it waits for ..."."""
        _, text = self.target.value
        return text.format(getattr(self.subject, "_short_path", self.subject))


class ActorInfo(NamedTuple):
    """An actor at a moment: why it waits, and how many answers it still has to give."""

    waits_for: str | None
    """In words, such as "a message" or "an answer of /shop/cart".

    None if it has something to do, or has ended.
    """
    wait_reason: WaitReason | None
    """The same as a WaitReason, such as "answer"."""
    awaits: Any
    """The ref whose answer it awaits in the middle of a message, or None."""
    pending_answers: int
    """How many asks wait for futures that the actor returned as their answers."""
    is_suspended: bool
    """True while it is in the middle of an `async def receive`, or backs off before a restart."""
