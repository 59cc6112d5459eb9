"""A small language of random programs over the public API, and the actors that run them.

A ScriptMessage has a script of deeds that its receiver does. Some of them send further messages,
so one script is a tree, and every program ends. Every actor and every outside thread has an Account
with a key; a message is known by its sender's key and a number. What happens is noted in the World,
and the laws in `laws.py` are about these notes.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    DeadLetter,
    Future,
    MailboxFull,
    PriorityMailbox,
    Supervision,
    Terminated,
)
from callboard.policies import Fixed

# Seconds that a script's times are multiples of: short for real clocks, any for a logical one.
TICK = 0.001


class ScriptedFailure(Exception):
    """What an actor raises that is told to fail."""


# --- the language -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tell:
    target: int  # which of the actors there are, counted round
    script: Script


@dataclass(frozen=True)
class TellMany:
    target: int
    scripts: tuple[Script, ...]


@dataclass(frozen=True)
class Ask:
    target: int
    script: Script
    timeout: int | None = None  # in ticks


@dataclass(frozen=True)
class Wait:
    """Ask, and wait for the answer: an async actor, or an outside thread. Others only ask."""

    target: int
    script: Script


@dataclass(frozen=True)
class Reply:
    script: Script


@dataclass(frozen=True)
class After:
    ticks: int
    script: Script


@dataclass(frozen=True)
class Spawn:
    kind: Kind
    script: Script  # of a first message to the new actor


@dataclass(frozen=True)
class Stop:
    target: int | None = None  # None: itself


@dataclass(frozen=True)
class Watch:
    target: int


@dataclass(frozen=True)
class Sleep:
    ticks: int


@dataclass(frozen=True)
class Simple:
    """A deed without arguments: fail, stash, unstash, become, unbecome, rebalance."""

    what: str


Deed: TypeAlias = (
    Tell | TellMany | Ask | Wait | Reply | After | Spawn | Stop | Watch | Sleep | Simple
)
Script: TypeAlias = tuple[Deed, ...]


@dataclass(frozen=True)
class Kind:
    """How an actor is made."""

    role: str = "each"  # handles each message; "many": takes batches; "async": may wait
    mailbox: BoundedMailbox | PriorityMailbox | None = None
    supervision: Supervision = field(default_factory=Supervision)
    fails_at_start: int = 0  # how often its __init__ fails
    dedicated: bool = False
    event_loop: bool = False  # of an async one
    concurrency: int = 1  # of an async one
    placement: int | None = None  # the worker that it was placed on, counted round

    @property
    def is_plain(self) -> bool:
        """Whether its mailbox keeps the order of each sender's messages."""
        return not isinstance(self.mailbox, PriorityMailbox)


@dataclass(frozen=True)
class Program:
    actors: tuple[Kind, ...]
    outside: tuple[Script, ...]  # one for each outside thread


@dataclass(frozen=True)
class ScriptMessage:
    uid: tuple[int, int]  # the sender's key, and its number there
    script: Script
    late: bool = False  # sent by a timer

    @property
    def priority(self) -> int:
        return self.uid[1] % 3


def priority_of(message: object) -> int:
    return message.priority if isinstance(message, ScriptMessage) else -1


# --- what happened ------------------------------------------------------------------------------


@dataclass
class Account:
    """What is known of one sender; of an actor it outlives the object."""

    key: int
    kind: Kind | None = None
    ref: ActorRef[Any] = field(init=False)  # once it is spawned
    numbers: int = 0
    fails_at_start: int = 0
    stashed: set[tuple[int, int]] = field(default_factory=set)
    watched: set[ActorRef[Any]] = field(default_factory=set)
    starts: int = 0
    stops: int = 0


@dataclass
class World:
    """One run of one program. The lists are appended to from every thread."""

    system: ActorSystem
    numbering: threading.Lock = field(default_factory=threading.Lock)  # no two have one key
    accounts: list[Account] = field(default_factory=list)
    actors: list[Account] = field(default_factory=list)
    sent: list[ScriptMessage] = field(default_factory=list)
    refused: list[ScriptMessage] = field(default_factory=list)
    unsure: list[list[ScriptMessage]] = field(
        default_factory=list
    )  # chunks that were refused in part
    events: list[tuple[str, int, Any]] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    asks: list[tuple[ScriptMessage, Future[Any]]] = field(default_factory=list)
    stopped: list[ActorRef[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.system.dead_letters.subscribe(self.dead.append)

    def account(self, kind: Kind | None = None) -> Account:
        with self.numbering:
            account = Account(len(self.accounts), kind)
            self.accounts.append(account)
        if kind is not None:
            account.fails_at_start = kind.fails_at_start
        return account

    def spawn(self, spawner: Any, kind: Kind) -> ActorRef[Any] | None:
        """Spawn an actor; None if its parent or the system is stopping."""
        account = self.account(kind)
        place = kind.placement
        is_async = kind.role == "async"
        event_loop = is_async and kind.event_loop
        try:
            ref: ActorRef[Any] = spawner.spawn(
                PLAYERS[kind.role],
                self,
                account,
                name=f"{kind.role}-{account.key}",
                mailbox=kind.mailbox,
                supervision=kind.supervision,
                dedicated=kind.dedicated and not event_loop,
                event_loop=event_loop,
                concurrency=kind.concurrency if is_async else 1,
                placement=None if place is None else Fixed(place % self.system.config.workers),
            )
        except CallboardError:
            return None
        account.ref = ref
        self.actors.append(account)
        return ref

    def target(self, number: int) -> ActorRef[Any]:
        return self.actors[number % len(self.actors)].ref


class Sender:
    """Does the deeds that actors and outside threads have in common."""

    world: World
    account: Account

    def message(self, script: Script, *, late: bool = False) -> ScriptMessage:
        self.account.numbers += 1
        message = ScriptMessage((self.account.key, self.account.numbers), script, late)
        self.world.sent.append(message)
        return message

    def tell(self, ref: ActorRef[Any], script: Script) -> None:
        message = self.message(script)
        try:
            ref.tell(message)
        except MailboxFull:
            self.world.refused.append(message)

    def tell_many(self, ref: ActorRef[Any], scripts: tuple[Script, ...]) -> None:
        messages = [self.message(script) for script in scripts]
        try:
            ref.tell_many(messages)
        except MailboxFull:
            self.world.unsure.append(messages)

    def ask(self, ref: ActorRef[Any], script: Script, ticks: int | None) -> Future[Any]:
        message = self.message(script)
        future = ref.ask(message, timeout=None if ticks is None else ticks * TICK)
        self.world.asks.append((message, future))
        return future

    def send(self, deed: Deed) -> bool:
        """Do a deed that is not an actor's alone; False if it is."""
        target = self.world.target
        match deed:
            case Tell():
                self.tell(target(deed.target), deed.script)
            case TellMany():
                self.tell_many(target(deed.target), deed.scripts)
            case Ask():
                self.ask(target(deed.target), deed.script, deed.timeout)
            case Spawn():
                spawned = self.world.spawn(self.spawner, deed.kind)
                if spawned is not None:
                    self.tell(spawned, deed.script)
            case Stop(target=int(number)):
                ref = target(number)
                ref.stop()
                self.world.stopped.append(ref)
            case Simple("rebalance"):
                if self.world.system.config.threading == "assigned":
                    self.world.system.rebalance()
            case _:
                return False
        return True

    @property
    def spawner(self) -> Any:
        return self.world.system


class Outsider(Sender):
    """A thread that is no worker."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.account = world.account()

    def play(self, deed: Deed) -> None:
        if isinstance(deed, Wait):
            future = self.ask(self.world.target(deed.target), deed.script, 500)
            with suppress(CallboardError, ScriptedFailure):
                future.result(timeout=20.0)
        else:
            self.send(deed)


class Player(Actor[Any], Sender):
    """Handles each message by itself."""

    def __init__(self, world: World, account: Account) -> None:
        self.world = world
        self.account = account
        if account.fails_at_start > 0:
            account.fails_at_start -= 1
            raise ScriptedFailure("at the start")

    def on_start(self) -> None:
        self.account.starts += 1

    def on_stop(self) -> None:
        self.account.stops += 1

    def receive(self, message: Any) -> Any:
        if isinstance(message, Terminated):
            return self.note_end(message)
        try:
            deeds = self.play(message, may_wait=False)
            next(deeds)
        except StopIteration as end:
            return self.settle(message, end.value)
        raise AssertionError(f"{deeds} waited")

    def other(self, message: Any) -> Any:
        return self.receive(message)

    @property
    def spawner(self) -> Any:
        return self

    def note(self, what: str, about: Any) -> None:
        self.world.events.append((what, self.account.key, about))

    def note_end(self, message: Terminated) -> None:
        self.note("saw the end of", message.ref)

    def settle(self, message: ScriptMessage, stashed: bool) -> tuple[int, int] | None:
        if stashed:
            return None
        self.note("handled", message.uid)
        return message.uid

    def play(self, message: ScriptMessage, *, may_wait: bool) -> Generator[Future[Any], None, bool]:
        """Do what a message says. Returns whether it was stashed."""
        self.note("began", message.uid)
        stashed = False
        for deed in message.script:
            match deed:
                case Wait():
                    future = self.ask(self.world.target(deed.target), deed.script, 5)
                    if may_wait:
                        with suppress(CallboardError, ScriptedFailure):
                            yield future
                case Sleep():
                    if may_wait:
                        yield self.sleep(deed.ticks * TICK)
                case Reply():
                    if self.sender is not None:
                        self.tell(self.sender, deed.script)
                case After():
                    self.after(deed.ticks * TICK, self.message(deed.script, late=True))
                case Stop(target=None):
                    self.stop()
                    self.world.stopped.append(self.ref)
                case Watch():
                    other = self.world.target(deed.target)
                    if other is not self.ref and other not in self.account.watched:
                        self.account.watched.add(other)
                        self.watch(other)
                case Simple("stash"):
                    if message.uid not in self.account.stashed and self.can_stash:
                        self.account.stashed.add(message.uid)
                        self.stash()
                        stashed = True
                case Simple("unstash"):
                    self.unstash_all()
                case Simple("become"):
                    self.become(self.other)
                case Simple("unbecome"):
                    with suppress(CallboardError):  # it was at its first handler
                        self.unbecome()
                case Simple("fail"):
                    raise ScriptedFailure(message.uid)
                case _:
                    assert self.send(deed)
        return stashed

    can_stash = True


class AsyncPlayer(Player):
    """May wait in the middle of a message."""

    async def receive(self, message: Any) -> Any:
        if isinstance(message, Terminated):
            return self.note_end(message)
        deeds = self.play(message, may_wait=True)
        try:
            awaited = next(deeds)
            while True:
                try:
                    await awaited
                except (CallboardError, ScriptedFailure) as error:
                    awaited = deeds.throw(error)
                else:
                    awaited = next(deeds)
        except StopIteration as end:
            return self.settle(message, end.value)

    async def other(self, message: Any) -> Any:
        return await self.receive(message)


class BatchPlayer(Player):
    """Takes what waits as one batch: all of it is handled, or none."""

    in_batch = False

    def receive_many(self, messages: list[Any]) -> None:
        self.in_batch = True
        try:
            for message in messages:
                if not isinstance(message, Terminated):
                    for _ in self.play(message, may_wait=False):
                        raise AssertionError("a batch waited")
        finally:
            self.in_batch = False
        for message in messages:  # none of a batch that fails is handled: they are dead letters
            if isinstance(message, Terminated):
                self.note_end(message)
            else:
                self.settle(message, False)

    @property
    def can_stash(self) -> bool:  # type: ignore[override]
        return not self.in_batch


PLAYERS: dict[str, type[Player]] = {"each": Player, "async": AsyncPlayer, "many": BatchPlayer}
