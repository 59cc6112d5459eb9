"""Messages that a run's actor has left when it stopped, or never saw."""

from __future__ import annotations

from functools import partial
from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard.dead_letters import DeadLetters
from callboard.nets.errors import NetEnded
from callboard.nets.running.messages import GiveBack, NetMessage, SentRows, Take


def leave_nothing(dead_letters: DeadLetters, conductor: ActorRef[Any]) -> None:
    """Have the records in such messages become dead letters, and who waits for outputs told."""
    dead_letters.expect_wake_ups(conductor, NetMessage, partial(_see_to, dead_letters))


def _see_to(dead_letters: DeadLetters, message: NetMessage, conductor: ActorRef[Any]) -> None:
    match message:
        case SentRows(rows, told=True):
            for row in rows:
                dead_letters.post(row, conductor, None, "stopped", _ended())
        case GiveBack(outputs):
            for output in outputs:
                dead_letters.post(output, conductor, None, "untaken")
        case Take(answer):
            answer.set_exception(_ended())


def _ended() -> NetEnded:
    return NetEnded("the run has ended")
