"""Timers: `after`, `every`, `sleep`, and the clock that drives them."""

import ctypes
import sys
import threading
import weakref
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, Future, Supervision
from callboard.testing import ManualSystem
from callboard.timers import ManualTimers, Timer, Timers, _Sleep
from tests.remote.conftest import eventually


class Clock(Actor[Any]):
    """Does what it is told with timers, and keeps what they send."""

    def __init__(self, ticks: list[Any] | None = None) -> None:
        self.ticks: list[Any] = [] if ticks is None else ticks
        self.timer: Timer | None = None

    def receive(self, message: Any) -> Any:
        match message:
            case ("after", seconds, what):
                self.timer = self.after(seconds, what)
            case ("every", seconds, what):
                self.timer = self.every(seconds, what)
            case "cancel":
                assert self.timer is not None
                return self.timer.cancel()
            case "fail":
                raise ValueError("as told")
            case "report":
                return list(self.ticks)
            case _:
                self.ticks.append(message)
        return None


def test_after_sends_its_message_once_when_the_time_has_come(manual: ManualSystem) -> None:
    ticks: list[Any] = []
    manual.spawn(Clock, ticks).tell(("after", 2.0, "tick"))
    manual.advance(1.9)
    assert ticks == []
    manual.advance(0.1)
    assert ticks == ["tick"]
    manual.advance(100)
    assert ticks == ["tick"]


def test_every_sends_its_message_again_and_again(manual: ManualSystem) -> None:
    ticks: list[Any] = []
    manual.spawn(Clock, ticks).tell(("every", 2.0, "tick"))
    manual.advance(1)
    assert ticks == []
    manual.advance(9)
    assert ticks == ["tick"] * 5


def test_a_timer_of_no_time_at_all_sends_behind_what_waits(manual: ManualSystem) -> None:
    ticks: list[Any] = []
    ref = manual.spawn(Clock, ticks)
    ref.tell(("after", 0, "tick"))
    ref.tell("message")
    manual.run_until_idle()
    assert ticks == ["message"]
    manual.advance(0)
    assert ticks == ["message", "tick"]


def test_timers_fire_in_the_order_of_their_times_and_of_their_making(manual: ManualSystem) -> None:
    ticks: list[Any] = []
    ref = manual.spawn(Clock, ticks)
    for seconds, name in [(3, "c"), (1, "a"), (2, "b"), (3, "d"), (1, "a again")]:
        ref.tell(("after", seconds, name))
    manual.advance(3)
    assert ticks == ["a", "a again", "b", "c", "d"]


def test_a_cancelled_timer_sends_nothing_more_and_says_whether_it_would_have() -> None:
    with ManualSystem() as system:
        ticks: list[Any] = []
        ref = system.spawn(Clock, ticks)
        ref.tell(("after", 1, "once"))
        assert ref.ask("cancel").result() is True
        assert ref.ask("cancel").result() is False
        system.advance(2)
        assert ticks == []
        ref.tell(("every", 1, "again"))
        system.run_until_idle()
        system.advance(2)
        assert ref.ask("cancel").result() is True
        system.advance(2)
        assert ticks == ["again"] * 2


def test_a_timer_that_has_fired_cannot_be_cancelled(manual: ManualSystem) -> None:
    ref = manual.spawn(Clock)
    ref.tell(("after", 1, "tick"))
    manual.run_until_idle()
    manual.advance(1)
    assert ref.ask("cancel").result() is False


def test_a_timers_message_has_no_sender() -> None:
    class Sender(Actor[Any]):
        def on_start(self) -> None:
            self.after(1, "tick")

        def receive(self, message: Any) -> None:
            senders.append(self.sender)

    senders: list[Any] = []
    with ManualSystem() as system:
        system.spawn(Sender)
        system.run_until_idle()
        system.advance(1)
    assert senders == [None]


def test_an_actors_timers_end_with_it(manual: ManualSystem) -> None:
    ref = manual.spawn(Clock)
    ref.tell(("every", 1, "tick"))
    ref.tell(("after", 5, "tick"))
    manual.run_until_idle()
    ref.stop()
    manual.advance(10)
    assert manual.dead_letters.count == 0


def test_an_actors_timers_end_at_its_restart(manual: ManualSystem) -> None:
    ticks: list[Any] = []
    ref = manual.spawn(Clock, ticks, supervision="restart")
    ref.tell(("every", 1, "tick"))
    manual.run_until_idle()
    manual.advance(2)
    ref.tell("fail")
    manual.run_until_idle()
    manual.advance(10)
    assert ticks == ["tick"] * 2


def test_timers_made_in_on_stop_end_with_the_actor(manual: ManualSystem) -> None:
    class Late(Actor[Any]):
        def receive(self, message: Any) -> None:
            pass

        def on_stop(self) -> None:
            self.every(1, "too late")

    ref = manual.spawn(Late)
    manual.run_until_idle()
    ref.stop()
    manual.advance(10)
    assert manual.dead_letters.count == 0


def test_a_period_is_above_0() -> None:
    wrong = "a timer's period must be a number of seconds above 0 and at most 1e9, got 0"
    with ManualSystem() as system, pytest.raises(ValueError, match=wrong):
        system.spawn(Busy).ask(0).result()


class Busy(Actor[Any]):
    def receive(self, message: Any) -> None:
        self.every(message, "tick")


def test_a_full_mailbox_does_not_hold_timers_up(manual: ManualSystem) -> None:
    ticks: list[Any] = []
    mailbox = BoundedMailbox(1, "fail")
    ref = manual.spawn(Clock, ticks, mailbox=mailbox)
    ref.tell(("after", 1, "tick"))
    manual.run_until_idle()
    ref.tell("message")
    manual._timers.advance_to(1)  # the mailbox is full just now
    assert ref.statistics().queue == 2
    manual.run_until_idle()
    assert ticks == ["message", "tick"]


class Waking(Actor[Any]):
    """Has what it is told sent to another actor, at once and again and again."""

    def __init__(self, to: ActorRef[Any]) -> None:
        self.to = to

    def receive(self, message: Any) -> None:
        self.after(1, message, to=self.to)
        self.every(2, message, to=self.to)


def test_a_timer_may_send_to_another_actor_until_its_own_ends(manual: ManualSystem) -> None:
    class Keeping(Actor[Any]):
        def receive(self, message: Any) -> None:
            seen.append(message)

    seen: list[Any] = []
    waking = manual.spawn(Waking, manual.spawn(Keeping))
    waking.tell("up")
    manual.advance(4.5)
    assert seen == ["up"] * 3
    waking.stop()
    manual.advance(10)
    assert seen == ["up"] * 3


def test_a_timer_sends_through_another_actors_full_mailbox(manual: ManualSystem) -> None:
    full = manual.spawn(Clock, [], mailbox=BoundedMailbox(1, "fail"))
    manual.spawn(Waking, full).tell("up")
    manual.run_until_idle()
    full.tell("message")
    manual._timers.advance_to(1)
    assert full.statistics().queue == 2


def test_drain_does_not_wait_for_timers(system: ActorSystem) -> None:
    ref = system.spawn(Clock)
    ref.tell(("after", 1_000, "tick"))
    ref.tell(("every", 1_000, "tick"))
    system.drain(timeout=30)
    assert ref.is_alive


def test_timers_come_in_real_time_too(system: ActorSystem) -> None:
    class Ticker(Actor[Any]):
        def on_start(self) -> None:
            self.count = 0
            self.timer = self.every(0.001, "tick")

        def receive(self, message: Any) -> None:
            self.count += 1
            if self.count == 5:
                assert self.timer.cancel()
                done.set()

    done = threading.Event()
    ref = system.spawn(Ticker)
    assert done.wait(30)
    assert ref.is_alive


def test_a_shorter_timer_overtakes_the_one_that_the_clock_waits_for(system: ActorSystem) -> None:
    class Overtaker(Actor[Any]):
        def on_start(self) -> None:
            self.after(10_000, "never in this test")
            self.after(0.001, "soon")

        def receive(self, message: Any) -> None:
            came.append(message)
            done.set()

    came: list[Any] = []
    done = threading.Event()
    system.spawn(Overtaker)
    assert done.wait(30)
    assert came == ["soon"]


# --- leftovers of timers -------------------------------------------------------------------------


def test_timers_that_were_cancelled_do_not_pile_up() -> None:
    timers = ManualTimers()
    kept = timers.call_after(500, lambda: None)
    for _ in range(10_000):
        timers.call_after(1_000, lambda: None).cancel()
    assert len(timers._heap) < 200
    assert timers.next_due() == 500
    assert kept.cancel()
    assert timers.next_due() is None


def test_a_timer_that_is_cancelled_while_it_fires_does_not_fire_again() -> None:
    timers = ManualTimers()
    fired: list[float] = []

    def action() -> None:
        fired.append(timers.now())
        assert timer.cancel()

    timer = timers.call_after(1, action, period=1)
    timers.advance_to(10)
    assert len(fired) == 1


def test_a_timer_whose_action_fails_leaves_the_others_alone() -> None:
    timers = ManualTimers()
    fired: list[str] = []

    def broken() -> None:
        raise LookupError("a broken timer")

    timers.call_after(1, broken)
    timers.call_after(1, lambda: fired.append("other"))
    timers.advance_to(1)
    assert fired == ["other"]


def test_sleeps_that_are_due_together_end_in_their_order_among_other_timers() -> None:
    timers, go_on, over = Timers(), threading.Event(), threading.Event()
    ended: list[str] = []
    timers.call_after(0, lambda: go_on.wait(30))  # the thread stays here until all are due

    def sleep(name: str) -> None:
        timers.sleep(0).add_done_callback(lambda _: ended.append(name))

    sleep("a")
    sleep("b")
    cancelled: list[Timer] = []
    timers.call_after(0, lambda: ended.append(f"c, {cancelled[0].cancel()}"))
    cancelled.append(timers.call_after(0, lambda: ended.append("never")))
    sleep("d")
    later = timers.sleep(1_000)
    timers.call_after(0, over.set)
    go_on.set()
    assert over.wait(30)
    timers.close()
    assert ended == ["a", "b", "c, True", "d"]
    assert not later.done()


def test_a_sleep_that_was_cancelled_and_one_of_closed_timers_do_no_harm() -> None:
    timers = ManualTimers()
    cancelled, pending = timers.sleep(1), timers.sleep(2)
    assert cancelled.cancel()
    timers.advance_to(1)
    timers.close()
    assert timers.next_due() is None
    assert not pending.done()
    assert not timers.sleep(1).done()


class WeakSleep(_Sleep):
    """One that a test may watch."""


def test_a_sleep_that_is_over_is_freed_while_the_next_timer_is_long_not_due() -> None:
    timers = Timers()
    timers.call_after(1_000, lambda: None)
    weak = weakref.ref(sleep := WeakSleep())
    timers._add(timers.now(), sleep)
    sleep.result(30)
    del sleep
    eventually(lambda: weak() is None, "the sleep is freed")
    timers.close()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_the_timers_thread_is_woken_within_a_microsecond_of_its_time() -> None:
    timers = Timers()
    slack = Future[int]()
    timers.call_after(0, lambda: slack.set_result(ctypes.CDLL(None).prctl(30, 0, 0, 0, 0)))
    assert slack.result(30) == 1_000  # nanoseconds, from PR_GET_TIMERSLACK
    timers.close()


def test_closed_timers_take_no_more() -> None:
    timers = Timers("test")
    pending = timers.call_after(1_000, lambda: None)
    timers.close()
    late = timers.call_after(0, lambda: None)
    assert late.is_over
    assert not late.cancel()
    assert not pending.cancel(), "it can happen no more"


# --- back-off -------------------------------------------------------------------------------------


def test_restarts_back_off_twice_as_long_each_time(manual: ManualSystem) -> None:
    class Crashing(Actor[Any]):
        def on_start(self) -> None:
            starts.append(manual.now)
            raise ValueError("no luck")

        def receive(self, message: Any) -> None:
            pass

    starts: list[float] = []
    policy = Supervision("restart", limit=5, window=1_000, backoff=1, max_backoff=5)
    ref = manual.spawn(Crashing, supervision=policy)
    manual.advance(100)
    assert starts == [0, 1, 3, 7, 12, 17]
    assert not ref.is_alive


def test_a_timer_that_exits_is_logged_and_others_fire(caplog: pytest.LogCaptureFixture) -> None:
    def leave() -> None:
        raise SystemExit

    timers, came = Timers(), threading.Event()
    timers.call_after(0, leave)
    timers.call_after(0, came.set)
    assert came.wait(30)
    timers.close()
    assert "a timer failed" in caplog.text


def test_ctrl_c_in_the_middle_of_the_threading_module_leaves_the_timers_unlocked() -> None:
    def interrupt(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != threading.__file__:
            return None
        if event == "return" and frame.f_code.co_name in ("__enter__", "__exit__"):
            raise KeyboardInterrupt
        return interrupt

    timers = ManualTimers()
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with suppress(KeyboardInterrupt):
            timers.call_after(1, lambda: None)
    finally:
        sys.settrace(before)
    other = threading.Thread(target=timers.call_after, args=[2, lambda: None], daemon=True)
    other.start()
    other.join(30)
    assert not other.is_alive(), "it waits for a lock that nobody will let go"


class Unsteady(weakref.WeakSet[Timer]):
    """One that shrinks in the middle of the first look at it."""

    looks = 0

    def __iter__(self) -> Any:
        Unsteady.looks += 1
        if Unsteady.looks == 1:
            raise RuntimeError("Set changed size during iteration")
        return super().__iter__()


def test_timers_are_cancelled_though_one_ends_just_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weakref, "WeakSet", Unsteady)
    with ManualSystem() as system:
        ref = system.spawn(Clock)
        ref.tell(("every", 1, "tick"))
        system.run_until_idle()
        ref.stop()
        system.advance(5)
        assert system.dead_letters.count == 0
    assert Unsteady.looks >= 2


def test_timers_that_the_old_object_sets_in_its_end_are_not_the_new_ones() -> None:
    class Late(Clock):
        def on_stop(self) -> None:
            self.after(1, "of the old object")

    with ManualSystem() as system:
        ticks: list[Any] = []
        system.spawn(Late, ticks, supervision="restart").tell("fail")
        system.advance(5)
        assert ticks == []
