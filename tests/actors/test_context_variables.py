"""Context variables (PEP 567): each actor has its own, or handles messages with their senders'."""

import decimal
import gc
import sysconfig
import threading
import weakref
from contextvars import ContextVar, copy_context
from typing import Any, cast

import pytest
import structlog

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    BoundedMailbox,
    ConfigError,
    DeadLetter,
    PriorityMailbox,
    SpawnError,
    Supervision,
)
from callboard.native import NativeActor
from callboard.testing import ManualSystem

request_id: ContextVar[Any] = ContextVar("request_id", default=None)


class Memo(Actor[Any]):
    """Sets the variable to what it is told, and answers with what it found."""

    def receive(self, message: Any) -> Any:
        found = request_id.get()
        if message is not None:
            request_id.set(message)
        return found


class Divider(Actor[Any]):
    def receive(self, digits: int | None) -> str:
        if digits is not None:
            decimal.getcontext().prec = digits
        return str(decimal.Decimal(1) / 7)


class Waiter(Actor[Any]):
    """Sets the variable, waits in the middle of the message, and answers with what it finds."""

    async def receive(self, message: tuple[ActorRef[Any], Any]) -> Any:
        other, value = message
        request_id.set(value)
        await other.ask("wait")
        return request_id.get()


class Gate(Actor[Any]):
    """Answers nobody until it is opened."""

    def receive(self, message: str) -> None:
        if message == "open":
            self.become(lambda message: None)
            self.unstash_all()
        else:
            self.stash()


def test_an_actor_finds_what_it_set_and_no_other_actor_does(system: ActorSystem) -> None:
    actors = [system.spawn(Memo) for _ in range(8)]
    for number, actor in enumerate(actors):
        assert actor.ask(number).result(60) is None
    assert [actor.ask(None).result(60) for actor in actors] == list(range(8))
    assert request_id.get() is None


def test_a_decimal_precision_is_one_actors_own(system: ActorSystem) -> None:
    short, long = system.spawn(Divider), system.spawn(Divider)
    assert short.ask(3).result(60) == "0.143"
    assert long.ask(None).result(60) == "0.1428571428571428571428571429"
    assert short.ask(None).result(60) == "0.143"


def test_structlogs_bindings_stay_in_their_actor(system: ActorSystem) -> None:
    class Logger(Actor[Any]):
        def receive(self, message: Any) -> dict[str, Any]:
            if message is not None:
                structlog.contextvars.bind_contextvars(order=message)
            return structlog.contextvars.get_contextvars()

    first, second = system.spawn(Logger), system.spawn(Logger)
    assert first.ask(7).result(60) == {"order": 7}
    assert second.ask(None).result(60) == {}


def test_a_coroutine_keeps_its_variables_while_it_waits(system: ActorSystem) -> None:
    gate, bystander = system.spawn(Gate), system.spawn(Memo)
    waiters = [system.spawn(Waiter) for _ in range(8)]
    answers = [waiter.ask((gate, number)) for number, waiter in enumerate(waiters)]
    bystander.ask("other").result(60)
    gate.tell("open")
    assert [answer.result(60) for answer in answers] == list(range(8))


def test_an_actor_that_restarts_begins_with_no_variables(system: ActorSystem) -> None:
    class Failing(Memo):
        def receive(self, message: Any) -> Any:
            if message == "fail":
                raise ValueError("as it was told")
            return super().receive(message)

    actor = system.spawn(Failing, supervision=Supervision("restart"))
    actor.ask("set").result(60)
    assert actor.ask(None).result(60) == "set"
    assert isinstance(actor.ask("fail").exception(60), ValueError)
    assert actor.ask(None).result(60) is None


def test_hooks_run_with_their_actors_variables(system: ActorSystem) -> None:
    found = []

    class Hooked(Memo):
        def __init__(self) -> None:
            request_id.set("init")

        def on_start(self) -> None:
            found.append(request_id.get())

        def on_stop(self) -> None:
            found.append(request_id.get())

    actor, other = system.spawn(Hooked), system.spawn(Memo)
    assert actor.ask("told").result(60) == "init"
    assert other.ask(None).result(60) is None
    actor.stop()
    system.drain()
    assert found == ["init", "told"]


def test_a_stopped_actor_keeps_no_variables(system: ActorSystem) -> None:
    class Value:
        pass

    value = Value()
    alive = weakref.ref(value)
    actor = system.spawn(Memo)
    actor.ask(value).result(60)
    del value
    assert alive() is not None
    actor.stop()
    system.drain()
    gc.collect()
    assert alive() is None
    assert not actor.is_alive


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="without an interpreter lock the thread that made an object frees it: the test's",
)
def test_code_between_two_actors_leaves_no_variables_to_the_next() -> None:
    class Last(Actor[str]):
        """Its ref is freed by the worker, after its end: nobody else has it any more."""

        def receive(self, message: str) -> None:
            in_work.set()
            assert forgotten.wait(30)
            self.stop()

    def finalize() -> None:
        threads.append(threading.current_thread())
        request_id.set("left behind")

    in_work, forgotten = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []
    with ActorSystem() as system:
        last = system.spawn(Last)
        weakref.finalize(last, finalize)
        last.tell("the last")
        assert in_work.wait(30)
        del last
        forgotten.set()
        system.drain()
        assert threads != [threading.current_thread()]
        assert system.spawn(Memo).ask(None).result(60) is None
    assert len(threads) == 1


def test_native_actors_have_variables_of_their_own_too(system: ActorSystem) -> None:
    found = []

    class Native(NativeActor):
        def __init__(self, value: str) -> None:
            request_id.set(value)

        def on_start(self) -> None:
            found.append(request_id.get())

        def on_stop(self) -> None:
            found.append(request_id.get())

    cls: Any = Native
    actors: list[ActorRef[Any]] = [system.spawn(cls, name) for name in ("first", "second")]
    system.drain()
    for actor in actors:
        actor.stop()
        system.drain()
    assert sorted(found[:2]) == ["first", "second"]
    assert found[2:] == ["first", "second"]


def test_a_manual_system_leaves_the_variables_of_its_thread_alone() -> None:
    token = request_id.set("test")
    try:
        with ManualSystem() as system:
            actor = system.spawn(Memo)
            assert actor.ask("actor").result() is None
            assert request_id.get() == "test"
            assert actor.ask(None).result() == "actor"
    finally:
        request_id.reset(token)


@pytest.mark.parametrize("overflow", ["block", "help"])
def test_actors_that_run_while_another_waits_for_room_have_their_own(overflow: str) -> None:
    class Sender(Actor[Any]):
        def receive(self, to: ActorRef[Any]) -> Any:
            request_id.set("sender")
            for number in range(20):
                to.tell(number)
            return request_id.get()

    with ActorSystem() as system:
        receiver = system.spawn(Memo, mailbox=BoundedMailbox(2, overflow=overflow, timeout=30))
        sender = system.spawn(Sender)
        assert sender.ask(receiver).result(30) == "sender"
        assert receiver.ask(None).result(30) == 19
        assert sender.ask(receiver).result(30) == "sender"


# --- those of the sender --------------------------------------------------------------------------


class Link(Actor[Any]):
    """Adds its name to the variable, and asks the next one, or answers with what came together."""

    def __init__(self, following: ActorRef[Any] | None = None) -> None:
        self.following = following

    def receive(self, message: Any) -> Any:
        request_id.set(f"{request_id.get()} {self.ref.name}")
        return self.following.ask(message) if self.following is not None else request_id.get()


class Collector(Actor[Any]):
    """Notes the variable as each message found it, and changes it."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def receive(self, message: Any) -> Any:
        if message == "all":
            return list(self.found)
        self.found.append(request_id.get())
        request_id.set("changed by the receiver")
        return None


def send_as(value: Any, ref: ActorRef[Any], message: Any = 0) -> None:
    def send() -> None:
        request_id.set(value)
        ref.tell(message)
        request_id.set("changed after the send")

    copy_context().run(send)


def test_a_message_is_handled_with_its_senders_variables_in_a_chain(system: ActorSystem) -> None:
    last = system.spawn(Link, name="last", context="sender")
    first = system.spawn(Link, last, name="first", context="sender")

    def ask(number: int) -> Any:
        request_id.set(number)
        return first.ask(None)

    answers = [copy_context().run(ask, number) for number in range(20)]
    assert [answer.result(60) for answer in answers] == [f"{n} first last" for n in range(20)]


def test_each_message_has_the_variables_of_its_moment_of_sending(system: ActorSystem) -> None:
    actor = system.spawn(Collector, context="sender")
    send_as("one", actor)
    actor.tell(0)
    send_as("two", actor)
    assert actor.ask("all").result(60) == ["one", None, "two"]


def test_each_of_many_messages_has_a_copy(system: ActorSystem) -> None:
    actor = system.spawn(Collector, context="sender")

    def send() -> None:
        request_id.set("sender")
        actor.tell_many([1, 2, 3])

    copy_context().run(send)
    assert actor.ask("all").result(60) == ["sender"] * 3


def test_a_message_that_was_put_aside_comes_back_with_its_variables(system: ActorSystem) -> None:
    class Patient(Actor[Any]):
        def __init__(self) -> None:
            self.found: list[Any] = []

        def receive(self, message: Any) -> Any:
            if message == "now":
                self.become(self.handle)
                self.unstash_all()
            else:
                self.stash()

        def handle(self, message: Any) -> Any:
            if message == "all":
                return self.found
            self.found.append((message, request_id.get(), self.sender))
            return None

    actor = system.spawn(Patient, context="sender")
    send_as("one", actor, 1)
    send_as("two", actor, 2)
    actor.tell("now")
    assert actor.ask("all").result(60) == [(1, "one", None), (2, "two", None)]


def test_a_prioritised_message_has_its_own_senders_variables() -> None:
    with ManualSystem() as system:
        mailbox = PriorityMailbox(key=lambda message: -message)
        found = []

        class Taker(Actor[int]):
            def receive(self, message: int) -> None:
                found.append((message, request_id.get()))

        actor = system.spawn(Taker, mailbox=mailbox, context="sender")
        for number in range(3):
            send_as(f"sender {number}", actor, number)
        system.run_until_idle()
    assert found == [(2, "sender 2"), (1, "sender 1"), (0, "sender 0")]


def test_a_coroutine_goes_on_with_the_variables_of_its_message(system: ActorSystem) -> None:
    class Patient(Actor[Any]):
        async def receive(self, gate: ActorRef[Any]) -> Any:
            await gate.ask("wait")
            return request_id.get()

    gate = system.spawn(Gate)
    actors = [system.spawn(Patient, context="sender") for _ in range(4)]

    def ask(number: int) -> Any:
        request_id.set(number)
        return actors[number].ask(gate)

    answers = [copy_context().run(ask, number) for number in range(4)]
    gate.tell("open")
    assert [answer.result(60) for answer in answers] == [0, 1, 2, 3]


def test_a_timers_message_has_the_variables_of_when_the_timer_was_set(manual: ManualSystem) -> None:
    class Reminded(Collector):
        def receive(self, message: Any) -> Any:
            if message == "remind":
                self.after(5.0, "reminder")
                self.every(10.0, "again")
                request_id.set("changed after the timers")
                return None
            return super().receive(message)

    actor = manual.spawn(Reminded, context="sender")
    send_as("setter", actor, "remind")
    manual.advance(25.0)
    assert actor.ask("all").result() == ["setter"] * 3


def test_the_sender_is_known_beside_the_variables(manual: ManualSystem) -> None:
    class Sender(Actor[ActorRef[Any]]):
        def receive(self, to: ActorRef[Any]) -> None:
            request_id.set("sender")
            to.tell("hello")

    class Enemy(Actor[ActorRef[Any]]):
        def receive(self, to: ActorRef[Any]) -> None:
            request_id.set("enemy")
            to.tell("too late")
            to.stop()  # which overtakes it

    class Receiver(Actor[str]):
        def receive(self, message: str) -> None:
            found.append((self.sender, request_id.get()))

    found: list[Any] = []
    letters: list[DeadLetter] = []
    receiver = manual.spawn(Receiver, context="sender")
    sender = manual.spawn(Sender)
    sender.tell(receiver)
    manual.run_until_idle()
    assert found == [(sender, "sender")]
    manual.dead_letters.subscribe(letters.append)
    enemy = manual.spawn(Enemy)
    enemy.tell(receiver)
    manual.run_until_idle()
    assert [(letter.message, letter.sender) for letter in letters] == [("too late", enemy)]


def test_nothing_keeps_a_message_s_variables_once_it_was_handled(system: ActorSystem) -> None:
    class Value:
        pass

    actor = system.spawn(Collector, context="sender")
    value = Value()
    alive = weakref.ref(value)
    send_as(value, actor, "all")
    system.drain()
    del value
    gc.collect()
    assert alive() is None


def test_a_system_may_have_it_for_all_actors_that_can() -> None:
    class Batch(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return request_id.get()

        def receive_many(self, messages: list[Any]) -> None:
            pass

    with ActorSystem(context="sender") as system:
        plain, own = system.spawn(Collector), system.spawn(Collector, context="own")
        send_as("sender", plain)
        send_as("sender", own)
        assert plain.ask("all").result(60) == ["sender"]
        assert own.ask("all").result(60) == [None]
        batch = system.spawn(Batch)
        assert copy_context().run(lambda: (request_id.set(1), batch.ask(0)))[1].result(60) is None


def test_an_operator_may_have_it_for_a_class_or_an_actor() -> None:
    config = {"actors": {"traced": {"context": "sender"}}}
    with ActorSystem(config=config) as system:
        traced, other = system.spawn(Collector, name="traced"), system.spawn(Collector)
        send_as("sender", traced)
        send_as("sender", other)
        assert traced.ask("all").result(60) == ["sender"]
        assert other.ask("all").result(60) == [None]


def test_a_wrong_context_is_refused(system: ActorSystem) -> None:
    class Batch(Actor[Any]):
        def receive(self, message: Any) -> None: ...

        def receive_many(self, messages: list[Any]) -> None: ...

    with pytest.raises(SpawnError, match="context must be one of own, sender, got 'senders'"):
        system.spawn(Memo, context="senders")  # type: ignore[call-overload,call-arg]
    with pytest.raises(SpawnError, match=r"Batch has receive_many\(\), whose messages have many"):
        system.spawn(Batch, context="sender")
    with pytest.raises(SpawnError, match="NativeActor is native, and has no place"):
        system.spawn(cast("Any", NativeActor), context="sender")
    with pytest.raises(ConfigError, match="context must be one of own, sender, got 'message'"):
        ActorSystem(context="message")
    with pytest.raises(
        ConfigError, match=r"context of actors\.a must be one of own, sender, got 1"
    ):
        ActorSystem(config={"actors": {"a": {"context": 1}}})
