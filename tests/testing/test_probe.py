"""Probes, on manual systems and on real ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from callboard import Actor, ActorRef, ActorSystem, Terminated
from callboard.testing import ManualSystem, Probe


class Doubler(Actor[int]):
    def receive(self, message: int) -> None:
        assert self.sender is not None
        self.sender.tell(message * 2)


class Later(Actor[str]):
    def __init__(self, to: ActorRef[str], seconds: float) -> None:
        self.to = to
        self.seconds = seconds

    def receive(self, message: str) -> None:
        if message == "now":
            self.to.tell("late")
        else:
            self.after(self.seconds, "now")


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.testing.probe._PATIENCE", 60.0)  # on a busy machine


@pytest.fixture(params=[ManualSystem, ActorSystem])
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    make: Callable[[], ActorSystem] = request.param
    with make() as made:
        yield made


@pytest.fixture
def probe(system: ActorSystem) -> Probe:
    return Probe(system, "probe")


def test_an_expected_message_is_taken_and_returned(probe: Probe) -> None:
    probe.ref.tell_many([1, 2])
    assert probe.expect(1) == 1
    assert probe.expect(2) == 2
    probe.expect_nothing()


def test_a_message_of_an_expected_type_is_taken_and_returned(probe: Probe) -> None:
    probe.ref.tell("text")
    assert probe.expect_type(str) == "text"


def test_any_message_can_be_taken(probe: Probe) -> None:
    probe.ref.tell(None)
    assert probe.receive_one() is None


def test_a_failed_expectation_shows_what_came_instead(system: ActorSystem, probe: Probe) -> None:
    probe.ref.tell_many(["b", "c"])
    system.drain()
    with pytest.raises(AssertionError, match=r"^expected 'a', and 'b' \(then 'c'\) came to"):
        probe.expect("a")
    with pytest.raises(AssertionError, match=r"^expected a int, and 'b'"):
        probe.expect_type(int)
    with pytest.raises(AssertionError, match=r"^expected nothing, and 'b'"):
        probe.expect_nothing()
    assert probe.messages == ["b", "c"]


def test_an_expectation_gives_up_after_its_timeout(system: ActorSystem, probe: Probe) -> None:
    where = "in 0.05 s" if type(system) is ActorSystem else f"{system!r}"[:20]
    with pytest.raises(AssertionError, match=r"^expected 'a', and nothing came to") as caught:
        probe.expect("a", timeout=0.05)
    assert where in str(caught.value)


def test_a_probe_can_be_the_sender(system: ActorSystem, probe: Probe) -> None:
    doubler = system.spawn(Doubler)
    probe.send(doubler, 21)
    probe.expect(42)
    assert probe.sender is doubler


def test_a_message_from_the_test_has_no_sender(probe: Probe) -> None:
    probe.ref.tell(1)
    probe.expect(1)
    assert probe.sender is None


def test_a_watched_actors_end_is_expected_once(system: ActorSystem, probe: Probe) -> None:
    doubler = system.spawn(Doubler)
    probe.watch(doubler)
    probe.expect_nothing()
    doubler.stop()
    probe.expect_terminated(doubler)
    probe.expect_nothing()


def test_an_ask_gets_the_answer_that_the_test_chose(system: ActorSystem) -> None:
    probe = Probe(system, answer=lambda message: message.upper())
    assert probe.ref.ask("hello").result(timeout=30) == "HELLO"
    probe.expect("hello")


def test_an_ask_can_be_made_to_fail(system: ActorSystem) -> None:
    def refuse(message: object) -> None:
        raise LookupError(message)

    probe = Probe(system, answer=refuse)
    for _ in range(2):
        with pytest.raises(LookupError, match="hello"):
            probe.ref.ask("hello").result(timeout=30)
    assert probe.messages == ["hello", "hello"]


def test_a_probe_tells_what_it_holds(probe: Probe) -> None:
    assert repr(probe) == "<Probe /probe, 0 messages>"
    assert Terminated(probe.ref) == Terminated(probe.ref)


# --- the logical clock --------------------------------------------------------------------------


def test_an_expectation_without_a_timeout_lets_no_time_pass() -> None:
    with ManualSystem() as system:
        probe = system.probe()
        later = system.spawn(Later, probe.ref, 5.0)
        later.tell("go")
        with pytest.raises(AssertionError, match=re.escape(f"{system!r} is idle")):
            probe.expect("late")
        assert system.now == 0.0


def test_an_expectation_with_a_timeout_lets_as_much_time_pass_as_it_needs() -> None:
    with ManualSystem() as system:
        probe = system.probe()
        system.spawn(Later, probe.ref, 5.0).tell("go")
        with pytest.raises(AssertionError):
            probe.expect("late", timeout=4.9)
        assert system.now == 4.9
        probe.expect("late", timeout=10.0)
        assert system.now == 5.0


def test_nothing_can_be_expected_for_some_time(manual: ManualSystem) -> None:
    probe = manual.probe()
    manual.spawn(Later, probe.ref, 5.0).tell("go")
    probe.expect_nothing(timeout=4.0)
    assert manual.now == 4.0
    with pytest.raises(AssertionError, match="'late' came"):
        probe.expect_nothing(timeout=2.0)
