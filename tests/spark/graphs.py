"""Actors and build functions for these tests, in a module that Spark's workers can import."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pyspark.sql.types import ArrayType, DoubleType, UserDefinedType

from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import PartitionContext, PartitionEnd, PartitionStart


class Echo(Actor[Any]):
    """Answers what it was told."""

    def receive(self, message: Any) -> Any:
        return message


class Tally(Actor[Any]):
    """Counts rows as a newcomer would write it, and answers the end with what it knows."""

    def __init__(self, context: PartitionContext) -> None:
        self.context = context
        self.rows = 0

    def receive(self, message: Any) -> Any:
        if isinstance(message, PartitionEnd):
            assert message.context == self.context
            task = self.context
            threads = threading.active_count()
            return [
                (
                    task.partition_id,
                    task.attempt_number,
                    os.getpid(),
                    self.rows,
                    id(self.system),
                    threads,
                )
            ]
        self.rows += len(message)
        return None


def tally(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Tally, context, name="tally")


def echo(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Echo, name="echo")


class KeptTally(Actor[Any]):
    """Counts the rows and the partitions of all tasks that its process runs."""

    def __init__(self) -> None:
        self.rows = 0
        self.partitions: list[int] = []

    def receive(self, message: Any) -> Any:
        if isinstance(message, PartitionStart):
            self.partitions.append(message.context.partition_id)
        elif isinstance(message, PartitionEnd):
            return [(os.getpid(), self.rows, tuple(self.partitions))]
        else:
            self.rows += len(message)
        return None


def kept_tally(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(KeptTally, name="tally")


class Refuse(Actor[Any]):
    """Fails, for a cause, at the message that says so."""

    def receive(self, message: Any) -> Any:
        try:
            return self.divide()
        except ZeroDivisionError as error:
            raise ValueError("no such author") from error

    def divide(self) -> float:
        return 1 / 0


def refuse(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Refuse, name="refuse")


class Forward(Actor[Any]):
    """Tells each message to another actor and answers at once."""

    def __init__(self, target: ActorRef[Any]) -> None:
        self.target = target

    def receive(self, message: Any) -> Any:
        self.target.tell(message)
        return None


class Delegate(Forward):
    """Answers with the future of another actor's answer."""

    def receive(self, message: Any) -> Any:
        return self.target.ask(message)


def refuse_behind(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Forward, system.spawn(Refuse, name="refuse"), name="forward")


class FailsAtEnd(Actor[Any]):
    """Passes on what it gets, and raises when it stops."""

    def receive(self, message: Any) -> Any:
        return message

    def on_stop(self) -> None:
        raise ValueError("at the end")


def kept_failing_at_end(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(FailsAtEnd)


class Stuck(Actor[Any]):
    """Says that it has a message, and never comes back from it."""

    reached = threading.Event()

    def receive(self, message: Any) -> None:
        self.reached.set()
        threading.Event().wait()


def until_stuck(rows: Iterable[Any]) -> Iterator[Any]:
    """Pass on ten rows, and the others when an actor of this process is stuck."""
    rows = iter(rows)
    yield from islice(rows, 10)
    assert Stuck.reached.wait(60)
    yield from rows


class Point(UserDefinedType):
    """A pair of numbers, as a type of a user's own."""

    @classmethod
    def module(cls) -> str:
        return "graphs"

    @classmethod
    def sqlType(cls) -> ArrayType:  # noqa: N802 - Spark calls it so
        return ArrayType(DoubleType(), False)

    def deserialize(self, datum: Any) -> Any:
        return tuple(datum)


ROWS = 2000
HALF = ROWS // 4  # of the rows of one of two partitions


class FailHalfway(Actor[Any]):
    """Counts rows; the first attempt at partition 0 does not survive half of them."""

    def __init__(self, context: PartitionContext, log: str) -> None:
        self.context = context
        self.log = Path(log, str(context.task_attempt_id))
        self.rows = 0

    def receive(self, message: Any) -> Any:
        if isinstance(message, PartitionEnd):
            return [(self.context.partition_id, self.context.attempt_number, self.rows)]
        self.rows += len(message)
        with self.log.open("a") as log:
            log.writelines(f"{row}\n" for row in message)
        first = self.context.attempt_number == 0 and self.context.partition_id == 0
        if first and self.rows >= HALF:
            self.end()
        return None

    def end(self) -> None:
        raise ValueError("not at the first attempt")


class DieHalfway(FailHalfway):
    """Takes its worker process along."""

    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
