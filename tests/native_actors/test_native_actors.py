"""Native actors: values in and out, buffers without copies, failures, and parallelism."""

import struct
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorStopped,
    ActorSystem,
    BoundedMailbox,
    DeadLetter,
    MailboxFull,
    PriorityMailbox,
    SpawnError,
    Supervision,
)
from callboard.native import NativeBuffer, NativeFailure, NativeRecord, Tagged
from callboard.policies import Fixed
from callboard.routers import LeastLoadedRouter, RoundRobinRouter
from tests.waiting import in_threads


class Collect(Actor[Any]):
    def __init__(self, into: list[Any]) -> None:
        self.into = into

    def receive(self, message: Any) -> None:
        self.into.append(message)


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem(workers=2) as made:
        yield made


@pytest.mark.parametrize(
    "value", [0, -1, 2**63 - 1, -(2**63), 0.5, NativeRecord(b"0123456789abcdef"), Tagged(7, 42)]
)
def test_values_keep_their_types(value: Any, system: ActorSystem, behaviours: ModuleType) -> None:
    got: list[Any] = []
    echo = system.spawn(behaviours.Echo, system.spawn(Collect, got))
    echo.tell(value)
    system.drain()
    if isinstance(value, Tagged):
        assert (got[0].tag, got[0].value) == (7, 42)
    else:
        assert got == [value]


def test_a_short_record_is_padded_and_keeps_its_fields() -> None:
    assert struct.unpack("<qd", NativeRecord(struct.pack("<q", 5)).data) == (5, 0.0)


@pytest.mark.parametrize("mailbox", [None, BoundedMailbox(1, "fail")])
def test_a_timer_sends_a_value(mailbox: Any, system: ActorSystem, behaviours: ModuleType) -> None:
    class Waking(Actor[ActorRef[Any]]):
        def receive(self, to: ActorRef[Any]) -> None:
            self.after(0.0, 7, to=to)

    class Done(Actor[Any]):
        def receive(self, message: Any) -> None:
            got.append(message)
            done.set()

    got: list[Any] = []
    done = threading.Event()
    echo = system.spawn(behaviours.Echo, system.spawn(Done), mailbox=mailbox)
    system.spawn(Waking).tell(echo)
    assert done.wait(30)
    assert got == [7]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_an_integer_over_64_bits(value: int, system: ActorSystem, behaviours: ModuleType) -> None:
    silent = system.spawn(behaviours.Silent)
    with pytest.raises(ValueError, match=str(value)):
        silent.tell(value)


@pytest.mark.parametrize("value", ["text", None, [1], object])
def test_other_values_are_refused(value: Any, system: ActorSystem, behaviours: ModuleType) -> None:
    silent = system.spawn(behaviours.Silent)
    with pytest.raises(TypeError, match="native actor expected"):
        silent.tell(value)
    with pytest.raises(TypeError, match="native actor expected"):
        silent.ask(value)


def test_bad_tags_and_records_are_refused(system: ActorSystem, behaviours: ModuleType) -> None:
    with pytest.raises(ValueError, match="4294967296"):
        Tagged(2**32, 1)
    with pytest.raises(ValueError, match="16 bytes"):
        NativeRecord(b"x" * 17)
    with pytest.raises(TypeError, match="cannot be asked"):
        system.spawn(behaviours.Silent).ask(NativeRecord(b""))


@pytest.mark.parametrize("value", [12, 0.25])
def test_an_ask_is_answered(value: Any, system: ActorSystem, behaviours: ModuleType) -> None:
    assert system.spawn(behaviours.Echo).ask(value).result(30) == value


def test_an_ask_without_an_answer_gets_none(system: ActorSystem, behaviours: ModuleType) -> None:
    assert system.spawn(behaviours.Silent).ask(1).result(30) is None


def test_the_duty_to_answer_is_passed_on(system: ActorSystem, behaviours: ModuleType) -> None:
    ref = system.spawn(behaviours.Echo)
    for _ in range(3):
        ref = system.spawn(behaviours.Forwarder, ref)
    assert ref.ask(99).result(30) == 99


def test_a_python_actor_answers_a_native_ask(system: ActorSystem, behaviours: ModuleType) -> None:
    class Double(Actor[int]):
        def receive(self, message: int) -> int:
            return message * 2

    forwarder = system.spawn(behaviours.Forwarder, system.spawn(Double))
    assert forwarder.ask(21).result(30) == 42


def test_an_object_with_memory_comes_back(system: ActorSystem, behaviours: ModuleType) -> None:
    numbers = array("q", [1, 2, 3])
    assert system.spawn(behaviours.Echo).ask(numbers).result(30) is numbers


def test_memory_is_freed_after_its_last_use(system: ActorSystem, behaviours: ModuleType) -> None:
    numbers = bytearray(8)
    silent = system.spawn(behaviours.Silent)
    references = sys.getrefcount(numbers)
    for _ in range(10):
        silent.tell(numbers)
    system.drain()
    silent.tell(b"")  # sends empty the list of the dead; so does the main thread, soon
    system.drain()
    silent.tell(b"")
    assert sys.getrefcount(numbers) == references
    numbers.append(1)  # raises BufferError while anything exports the memory


def test_native_memory_is_readable_and_writable_in_python(
    system: ActorSystem, behaviours: ModuleType
) -> None:
    result = system.spawn(behaviours.Doubler).ask(array("q", [1, 2, 3])).result(30)
    assert isinstance(result, NativeBuffer)
    view = memoryview(result)
    assert view.tolist() == [2, 4, 6]
    view[0] = 7
    assert memoryview(result)[0] == 7


def test_arrow_batches_pass_without_a_copy(system: ActorSystem, behaviours: ModuleType) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.record_batch({"n": [1, 2, 3]})
    assert system.spawn(behaviours.Echo).ask(batch).result(30) is batch


def test_memory_with_gaps_is_refused(system: ActorSystem, behaviours: ModuleType) -> None:
    with pytest.raises(ValueError, match="contiguous"):
        system.spawn(behaviours.Silent).tell(memoryview(b"abcdef")[::2])


def test_a_failure_goes_to_the_supervisor(system: ActorSystem, behaviours: ModuleType) -> None:
    fragile = system.spawn(behaviours.Fragile)
    with pytest.raises(NativeFailure, match="a negative number"):
        fragile.ask(-1).result(30)
    with pytest.raises(ActorStopped):
        fragile.ask(1).result(30)
    assert not fragile.is_alive


def test_a_restarted_native_actor_goes_on(system: ActorSystem, behaviours: ModuleType) -> None:
    fragile = system.spawn(behaviours.Fragile, supervision="restart")
    first, second = fragile.ask(-1), fragile.ask(5)
    with pytest.raises(NativeFailure):
        first.result(30)
    assert second.result(30) == 5


def test_a_dedicated_one_is_not_charged_before_its_thread_runs(behaviours: ModuleType) -> None:
    for _ in range(50):
        began = time.monotonic_ns()
        with ActorSystem(workers=1, monitoring="times") as timed:
            refs = [timed.spawn(behaviours.Silent, dedicated=True) for _ in range(3)]
            for ref in refs:
                ref.tell(1)
            timed.drain(30)
            busy = [ref._busy_ns for ref in refs]
        assert max(busy) <= time.monotonic_ns() - began


def test_hooks_run_at_start_and_stop(system: ActorSystem, behaviours: ModuleType) -> None:
    hooks: list[str] = []

    class Hooked(behaviours.Fragile):  # type: ignore[misc, name-defined]
        pass

    Hooked.hooks = hooks
    hooked: ActorRef[Any] = system.spawn(Hooked)
    hooked.tell(0)
    system.drain()
    assert hooks == ["start", "stop"]


def test_a_stopped_mailboxs_values_are_dead(system: ActorSystem, behaviours: ModuleType) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    fragile = system.spawn(behaviours.Fragile)
    fragile.tell(0)
    asked = fragile.ask(1)
    fragile.tell_many([2, 3.5])
    system.drain()
    fragile.tell(Tagged(3, 4))
    system.drain()
    values = [
        letter.message.value if isinstance(letter.message, Tagged) else letter.message
        for letter in letters
    ]
    assert sorted(values) == [1, 2, 3.5, 4]
    assert {letter.reason for letter in letters} == {"stopped"}
    with pytest.raises(ActorStopped):
        asked.result(30)


def test_without_receive_an_actor_fails(system: ActorSystem, behaviours: ModuleType) -> None:
    with pytest.raises(NativeFailure, match="override"):
        system.spawn(behaviours.NoReceive).ask(1).result(30)


def test_a_send_to_none_fails(system: ActorSystem, behaviours: ModuleType) -> None:
    ref = system.spawn(behaviours.Echo, supervision=Supervision("resume"))
    ref.tell(1)
    assert ref.ask(2).result(30) == 2
    assert "sends to None" in system.dead_letters.failures[0][1].text
    with pytest.raises(NativeFailure, match="sends to None"):
        system.spawn(behaviours.Passer).ask(1).result(30)


def test_priority_and_drop_oldest_are_refused(system: ActorSystem, behaviours: ModuleType) -> None:
    with pytest.raises(SpawnError, match="PriorityMailbox"):
        system.spawn(behaviours.Silent, mailbox=PriorityMailbox(key=abs))
    with pytest.raises(SpawnError, match="drop_oldest"):
        system.spawn(behaviours.Silent, mailbox=BoundedMailbox(5, "drop_oldest"))


@pytest.mark.parametrize("overflow", ["block", "help", "throttle"])
def test_a_bounded_pipeline_loses_nothing(
    overflow: str, system: ActorSystem, behaviours: ModuleType
) -> None:
    got: list[int] = []
    box = BoundedMailbox(3, overflow, timeout=0.001 if overflow == "throttle" else 30.0)
    ref = system.spawn(Collect, got, mailbox=box)
    for _ in range(5):
        ref = system.spawn(behaviours.Forwarder, ref, mailbox=box)
    ref.tell_many(range(2000))
    system.drain()
    assert got == list(range(2000))


def test_a_dedicated_native_actor_works(system: ActorSystem, behaviours: ModuleType) -> None:
    echo = system.spawn(behaviours.Echo, dedicated=True)
    assert [echo.ask(n).result(30) for n in range(20)] == list(range(20))


def test_two_native_actors_run_at_the_same_time(behaviours: ModuleType) -> None:
    seats = array("q", [0, 0])
    with ActorSystem(workers=2) as system:
        pair = [system.spawn(behaviours.Meeting, seats, place) for place in (0, 1)]
        system.drain()
        for ref in pair:
            ref.tell(1)
    assert list(seats) == [2, 2]


@pytest.mark.parametrize(("workers", "placed"), [(2, 0), (4, 0), (4, 8)])
def test_order_is_kept_under_stealing(workers: int, placed: int, behaviours: ModuleType) -> None:
    """So much that a worker finds out, several times, whether its help is of use."""
    actors, messages = 60, 100_000
    notes = memoryview(array("q", [0, 0, 0] * actors)).cast("B").cast("q", [actors, 3])
    everybody: list[ActorRef[int]] = []
    with ActorSystem(workers=workers) as system:
        for number in range(actors):
            placement = Fixed(number % workers) if number < placed else None
            given = (notes, number, messages, everybody)
            ref = system.spawn(behaviours.Gossip, *given, placement=placement)
            everybody.append(ref)
        for ref in everybody:
            ref.tell(0)
        system.drain(timeout=110)
    sent, received, disordered = zip(*notes.tolist(), strict=True)
    assert sum(sent) == sum(received) >= messages
    assert sum(disordered) == 0


def test_many_threads_may_send(system: ActorSystem, behaviours: ModuleType) -> None:
    got: list[int] = []
    echo = system.spawn(behaviours.Echo, system.spawn(Collect, got))

    def send(first: int) -> None:
        for number in range(first, first + 1000):
            echo.tell(number)

    in_threads(send, [1000 * i for i in range(4)])
    system.drain()
    assert sorted(got) == list(range(4000))
    for i in range(4):
        mine = [number for number in got if number // 1000 == i]
        assert mine == sorted(mine)


def test_an_escalated_native_failure_stops_the_system(behaviours: ModuleType) -> None:
    with pytest.raises(NativeFailure), ActorSystem() as system:
        system.spawn(behaviours.Fragile, supervision=Supervision("escalate")).tell(-1)


@pytest.mark.parametrize(
    ("overflow", "reason"), [("drop_newest", "dropped_newest"), ("fail", "refused")]
)
def test_a_forwarded_ask_that_a_full_mailbox_does_not_take_is_a_readable_dead_letter(
    overflow: str, reason: str, system: ActorSystem, behaviours: ModuleType
) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    gate, entered = threading.Event(), threading.Event()

    class Held(Collect):
        def on_start(self) -> None:
            entered.set()
            assert gate.wait(30)

    mailbox = BoundedMailbox(1, overflow)
    held = system.spawn(Held, [], mailbox=mailbox, dedicated=True)
    assert entered.wait(30)
    held.tell(0)
    error = system.spawn(behaviours.Forwarder, held).ask(7).exception(timeout=30)
    gate.set()
    assert type(error) is MailboxFull
    assert [(letter.message, letter.recipient, letter.reason) for letter in letters] == [
        (7, held, reason)
    ]
    assert held.is_alive


def test_a_native_actor_is_ready_and_stops_behind_its_queue_and_says_how_it_ended(
    system: ActorSystem, behaviours: ModuleType
) -> None:
    got: list[Any] = []
    to = system.spawn(Collect, got)
    ref = system.spawn(behaviours.Forwarder, to).ready.result(30)
    ended = ref.ended
    ref.tell_many(range(1_000))
    assert not ended.done()
    ref.stop(after_queue=True)
    assert ended.result(30).reason == "stopped"
    assert ref.ended.result(30) == ended.result(30)
    system.drain(30)
    assert got == list(range(1_000))
    assert system.dead_letters.count == 0


def test_an_expected_error_is_an_answer(system: ActorSystem, behaviours: ModuleType) -> None:
    supervision = Supervision(expected=NativeFailure)
    ref = system.spawn(behaviours.Fragile, supervision=supervision)
    assert isinstance(ref.ask(-1).exception(30), NativeFailure)
    assert ref.ask(1).exception(30) is None
    system.drain(30)
    assert system.dead_letters.failure_count == 0


def test_a_router_sends_native_values(system: ActorSystem, behaviours: ModuleType) -> None:
    got: list[Any] = []
    collect = system.spawn(Collect, got)
    router = RoundRobinRouter([system.spawn(behaviours.Echo, collect) for _ in range(3)])
    for number in range(300):
        router.tell(number)
    router.tell_many([0.5, array("q", [1, 2])])
    assert router.ask(7).result(30) == 7
    with pytest.raises(TypeError):
        router.tell("text")
    least = LeastLoadedRouter.spawn(system, behaviours.Echo, collect, routees=2)
    least.tell_many(range(300, 400))
    least.resize(1)
    least.tell(400)
    system.drain(30)
    numbers = [value for value in got if isinstance(value, int)]
    assert sorted(numbers) == [*range(401)]
    assert len(got) == 403
    assert system.dead_letters.count == 0
