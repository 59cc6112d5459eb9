"""The system that the calling thread runs."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from callboard import Actor, ActorStopped, ActorSystem, CallboardError, DrainTimeout, SystemClosed
from callboard.testing import ManualSystem
from tests.testing.actors import Forward, Patient, Sum


class Forever(Actor[str]):
    def receive(self, message: str) -> None:
        self.ref.tell(message)


class Clock(Actor[str]):
    """Notes at which time of the system's clock each message came."""

    def __init__(self, notes: list[tuple[float, str]]) -> None:
        self.notes = notes

    def on_start(self) -> None:
        self.after(1.5, "once")
        self.every(1.0, "again")

    def receive(self, message: str) -> None:
        assert isinstance(self.system, ManualSystem)
        self.notes.append((self.system.now, message))


# --- being made ---------------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["callboard.system.Observer", "ManualSystem._open"])
def test_a_system_whose_making_is_interrupted_stops_at_the_interpreters_exit(after: str) -> None:
    program = f"""
import callboard.system
from callboard.testing import ManualSystem
made = {after}
def interrupted(*args, **kwargs):
    made(*args, **kwargs)
    raise KeyboardInterrupt
{after} = interrupted
class Kept(ManualSystem):
    def __init__(self):
        kept.append(self)
        super().__init__()
kept = []
try:
    Kept()
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")


# --- running ------------------------------------------------------------------------------------


def test_nothing_runs_before_it_is_told_to(manual: ManualSystem) -> None:
    probe = manual.probe()
    probe.ref.tell("hello")
    assert probe.messages == []
    manual.run_until_idle()
    assert probe.messages == ["hello"]


def test_one_step_handles_one_message(manual: ManualSystem) -> None:
    probe = manual.probe()
    probe.ref.tell_many("ab")
    counts = []
    while manual.step():
        counts.append(len(probe.messages))
    assert sorted(set(counts)) == [1, 2]  # a last step finds that nothing is left
    assert not manual.step()


def test_a_quantum_lets_one_step_handle_several_messages() -> None:
    with ManualSystem(quantum=8) as system:
        probe = system.probe()
        probe.ref.tell_many("abc")
        assert system.step()
        assert probe.messages == ["a", "b", "c"]


def test_run_returns_the_number_of_steps(manual: ManualSystem) -> None:
    probe = manual.probe()
    assert manual.run_until_idle() == 1  # its start
    assert manual.run_until_idle() == 0
    probe.ref.tell(1)
    assert manual.run_until_idle() >= 1
    assert probe.messages == [1]


def test_everything_runs_on_the_calling_thread() -> None:
    seen = set()

    class Where(Actor[object]):
        def __init__(self) -> None:
            seen.add(threading.get_ident())

        def receive(self, message: object) -> None:
            seen.add(threading.get_ident())

    with ManualSystem() as system:
        system.spawn(Where).tell(1)
        system.spawn(Where, dedicated=True).tell(1)
    assert seen == {threading.get_ident()}


def test_actors_that_always_have_work_are_given_up() -> None:
    with ManualSystem(seed=5, max_steps=50) as system:
        ref = system.spawn(Forever, name="for-ever")
        ref.tell("again")
        with pytest.raises(DrainTimeout, match=r"(?s)seed 5.*after 50 steps.*/for-ever <- 'again'"):
            system.run_until_idle()
        with pytest.raises(DrainTimeout, match="after 7 steps"):
            system.run_until_idle(max_steps=7)
        with pytest.raises(DrainTimeout, match="after 50 steps"):
            system.drain()
        ref.stop()


def test_run_until_stops_as_soon_as_its_predicate_is_true(manual: ManualSystem) -> None:
    probe = manual.probe()
    probe.ref.tell_many(range(10))
    assert manual.run_until(lambda: len(probe.messages) == 4)
    assert probe.messages == [0, 1, 2, 3]
    assert not manual.run_until(lambda: len(probe.messages) == 11)
    assert len(probe.messages) == 10


def test_only_its_own_thread_may_run_it(manual: ManualSystem) -> None:
    manual.spawn(Sum).tell(1)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            manual.run_until_idle()
        except CallboardError as error:
            errors.append(error)

    other = threading.Thread(target=run, name="intruder")
    other.start()
    other.join()
    assert "intruder cannot run" in str(errors[0])


def test_other_threads_may_send_to_it(manual: ManualSystem) -> None:
    probe = manual.probe()
    other = threading.Thread(target=lambda: probe.ref.tell_many(range(1000)))
    other.start()
    other.join()
    manual.run_until_idle()
    assert probe.messages == list(range(1000))


def test_an_actor_cannot_run_the_system_it_is_in(manual: ManualSystem) -> None:
    class Impatient(Actor[str]):
        def receive(self, message: str) -> None:
            assert isinstance(self.system, ManualSystem)
            self.system.drain()

    answer = manual.spawn(Impatient).ask("now")
    with pytest.raises(CallboardError, match="would wait for the actor itself"):
        answer.result()


def test_two_systems_on_one_thread_do_not_mix() -> None:
    with ManualSystem(name="one") as one, ManualSystem(name="other") as other:
        probe = other.probe()
        relay = one.spawn(Forward, probe.ref)
        relay.tell("across")
        one.run_until_idle()
        assert probe.messages == []
        other.run_until_idle()
        assert probe.messages == ["across"]


def test_a_real_system_works_beside_it() -> None:
    with ManualSystem() as manual, ActorSystem() as real:
        probe = manual.probe()
        adder = real.spawn(Sum)
        assert adder.ask(5).result(timeout=30.0) == 5
        real.spawn(Forward, probe.ref).tell("from the other world")
        real.drain()
        manual.run_until_idle()
        assert probe.messages == ["from the other world"]


# --- time ---------------------------------------------------------------------------------------


def test_the_clock_stands_still_while_the_system_runs(manual: ManualSystem) -> None:
    notes: list[tuple[float, str]] = []
    ref = manual.spawn(Clock, notes)
    manual.run_until_idle()
    assert manual.now == 0.0
    assert notes == []
    ref.stop()


def test_timers_fire_in_the_order_of_their_times(manual: ManualSystem) -> None:
    notes: list[tuple[float, str]] = []
    ref = manual.spawn(Clock, notes)
    manual.advance(3.25)
    assert notes == [(1.0, "again"), (1.5, "once"), (2.0, "again"), (3.0, "again")]
    assert manual.now == 3.25
    ref.stop()


def test_a_timer_started_while_time_passes_counts_from_its_own_start() -> None:
    class Chain(Actor[int]):
        def __init__(self, notes: list[float]) -> None:
            self.notes = notes

        def receive(self, message: int) -> None:
            assert isinstance(self.system, ManualSystem)
            self.notes.append(self.system.now)
            if message:
                self.after(0.5, message - 1)

    notes: list[float] = []
    with ManualSystem() as system:
        system.spawn(Chain, notes).tell(3)
        system.advance(10.0)
    assert notes == [0.0, 0.5, 1.0, 1.5]


def test_time_cannot_go_back() -> None:
    with ManualSystem() as system, pytest.raises(ValueError, match=r"got -1"):
        system.advance(-1)


# --- becoming idle, and the end -----------------------------------------------------------------


def test_leaving_runs_to_rest_and_stops() -> None:
    stopped = []

    class Noter(Actor[str]):
        def receive(self, message: str) -> None:
            stopped.append(message)

        def on_stop(self) -> None:
            stopped.append("stopped")

    with ManualSystem() as system:
        ref = system.spawn(Noter)
        ref.tell("last words")
    assert stopped == ["last words", "stopped"]
    assert not ref.is_alive
    with pytest.raises(SystemClosed):
        system.spawn(Noter)


def test_drain_lets_time_pass_for_actors_in_the_middle_of_a_message(manual: ManualSystem) -> None:
    answer = manual.spawn(Patient).ask(20.0)
    manual.drain()
    assert answer.result() == "waited 20 s"


def test_a_drain_that_cannot_finish_names_the_actor() -> None:
    with ManualSystem(drain_timeout=5.0) as system:
        ref = system.spawn(Patient, name="patient")
        ref.tell(3600.0)
        with pytest.raises(DrainTimeout, match=r"(?s)in 5\.0 s.*/patient waits in the middle"):
            system.drain()
        ref.stop()


def test_join_lets_time_pass_until_all_actors_have_stopped(manual: ManualSystem) -> None:
    class Mayfly(Actor[str]):
        def on_start(self) -> None:
            self.after(86_400.0, "dusk")

        def receive(self, message: str) -> None:
            self.stop()

    manual.spawn(Mayfly)
    assert not manual.join(timeout=3600.0)
    assert manual.now == 3600.0
    assert manual.join()
    assert manual.now == 86_400.0


def test_stop_makes_dead_letters_of_what_waits() -> None:
    with ManualSystem() as system:
        ref = system.spawn(Sum)
        answer = ref.ask(1)
        ref.tell_many([2, 3])
        system.stop()
    assert system.dead_letters.reasons == {"system stopped": 3}
    with pytest.raises(ActorStopped):
        answer.result()


def test_an_escalated_failure_is_raised_on_leaving() -> None:
    class Fails(Actor[str]):
        def receive(self, message: str) -> None:
            raise ZeroDivisionError(message)

    with pytest.raises(ZeroDivisionError, match="boom"), ManualSystem() as system:
        system.spawn(Fails, supervision="escalate").tell("boom")


def fail_after_a_hundred_messages() -> None:
    with ManualSystem(seed=11) as system:
        probe = system.probe("probe")
        probe.ref.tell_many(range(100))
        system.run_until_idle()
        raise AssertionError


def test_a_failing_test_is_told_the_seed_and_the_latest_messages() -> None:
    with pytest.raises(AssertionError) as caught:
        fail_after_a_hundred_messages()
    [note] = caught.value.__notes__
    assert "seed 11" in note
    assert "the latest 10 of 100 messages: /probe <- 90, /probe <- 91" in note


def test_only_the_thread_that_made_a_manual_system_runs_it() -> None:
    with ManualSystem() as system, ThreadPoolExecutor(1) as elsewhere:
        assert system._is_run_here
        assert not elsewhere.submit(lambda: system._is_run_here).result()
    with ActorSystem() as threaded:
        assert not threaded._is_run_here
