"""A dispatch begins no message after its time slice; the message in work can be seen."""

import threading
import time
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, ConfigError
from callboard.policies import Fixed
from callboard.testing import ManualSystem

SLOW = 0.02  # seconds of a slow message: several ticks of the kernel's clock


def spend(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


class Slow(Actor[float]):
    """Takes as long for a message as it says."""

    def __init__(self, handled: list[float]) -> None:
        self.handled = handled

    def receive(self, seconds: float) -> None:
        spend(seconds)
        self.handled.append(seconds)


class AsyncSlow(Slow):
    async def receive(self, seconds: float) -> None:  # type: ignore[override]
        spend(seconds)
        self.handled.append(seconds)


class Witness(Actor[list[float]]):
    """Says how much another actor has handled."""

    def receive(self, handled: list[float]) -> int:
        return len(handled)


class Gate(Actor[tuple[threading.Event, threading.Event]]):
    """Keeps its worker until it is opened, so that all others there are ready at once."""

    def receive(self, events: tuple[threading.Event, threading.Event]) -> None:
        reached, opened = events
        reached.set()
        assert opened.wait(60)


def handled_before_another(kind: type[Slow], messages: list[float], **options: Any) -> int:
    """Return how much of `messages` an actor handles before another one has its turn."""
    with ActorSystem(workers=1, **options) as system:
        handled: list[float] = []
        slow, witness = system.spawn(kind, handled), system.spawn(Witness)
        witness.ask([]).result(60)
        reached, opened = threading.Event(), threading.Event()
        system.spawn(Gate).tell((reached, opened))
        assert reached.wait(60)
        slow.tell_many(messages)
        answer = witness.ask(handled)
        opened.set()
        seen: int = answer.result(60)
        slow.stop()
    return seen


@pytest.mark.parametrize("kind", [Slow, AsyncSlow])
def test_an_actor_of_slow_messages_lets_another_have_its_turn_after_one(kind: type[Slow]) -> None:
    assert handled_before_another(kind, [SLOW] * 64) == 1


def test_an_actor_that_becomes_slow_lets_another_have_its_turn_soon() -> None:
    assert handled_before_another(Slow, [0.0] * 32 + [SLOW] * 32) <= 32 + 8


def test_an_actor_of_quick_messages_has_its_quantum() -> None:
    assert handled_before_another(Slow, [0.0] * 100, time_slice=60) == 64


def test_a_slice_may_be_so_long_that_the_quantum_alone_counts() -> None:
    assert handled_before_another(Slow, [SLOW] * 10, time_slice=1e9) == 10


def test_messages_are_counted_while_more_of_them_wait() -> None:
    with ActorSystem(workers=1) as system:
        handled: list[float] = []
        slow = system.spawn(Slow, handled, name="slow")
        slow.tell_many([SLOW] * 64)
        while len(handled) < 4:
            pass
        counted = system.statistics().of("/slow").messages
        slow.stop()
    assert counted >= 3


def test_a_manual_systems_steps_do_not_depend_on_the_time() -> None:
    with ManualSystem(quantum=8) as system:
        handled: list[float] = []
        system.spawn(Slow, handled).tell_many([SLOW] * 8)
        while not handled:
            system.step()
        assert len(handled) == 8


# --- what is in work ------------------------------------------------------------------------------


class Held(Actor[threading.Event]):
    """Is in its message until it is let go."""

    def __init__(self, entered: threading.Event) -> None:
        self.entered = entered

    def receive(self, left: threading.Event) -> None:
        self.entered.set()
        assert left.wait(60)


@pytest.mark.parametrize("options", [{"placement": Fixed(0)}, {"dedicated": True}])
def test_statistics_have_the_message_in_work_and_its_time(options: dict[str, Any]) -> None:
    with ActorSystem(workers=1, threading="assigned") as system:
        entered, left = threading.Event(), threading.Event()
        echo: ActorRef[Any] = system.spawn(Witness)
        for _ in range(100):  # quick ones before it
            echo.ask([]).result(60)
        system.drain(60)  # an idle worker reads its clock when it is woken
        told = time.monotonic()
        system.spawn(Held, entered, name="held", **options).tell(left)
        assert entered.wait(60)
        came = time.monotonic()
        while time.monotonic() < came + 3 * SLOW:
            pass
        statistics = system.statistics()
        most = time.monotonic() - told
        left.set()
        system.drain()
        after = system.statistics()
    held = statistics.of("/held")
    assert held.in_message is not None
    assert 3 * SLOW <= held.in_message <= most + SLOW  # the clock's ticks
    (worker,) = [worker for worker in statistics.workers if worker.actor is not None]
    assert (worker.actor, worker.in_message) == ("/held", held.in_message)
    assert f"{worker.name} has been in a message of /held for 0.0" not in str(statistics)
    assert f"{worker.name} has been in a message of /held for " in str(statistics)
    assert all(worker.actor is None and worker.in_message is None for worker in after.workers)
    assert after.of("/held").in_message is None


@pytest.mark.parametrize("wrong", [0, -1, "soon", float("nan")])
def test_a_time_slice_is_a_number_of_seconds_above_0(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="time_slice must be a number of seconds above 0"):
        ActorSystem(time_slice=wrong)
