"""The end of a `with` block, and stop(), return within their time limits."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DrainTimeout, Future
from callboard.shutdown import LAST_WORDS, STOP_TIMEOUT
from callboard.streams import entry
from callboard.streams.running.execution import Execution

LONG = 120.0  # seconds, of what is stuck until the test ends
LATE = 5.0  # far more than the half second that is left, and less than STOP_TIMEOUT, 10 s


@pytest.fixture
def opened() -> Iterator[threading.Event]:
    """An event whose waiters are set free when the test is over."""
    event = threading.Event()
    yield event
    event.set()


class Stuck(Actor[threading.Event]):
    def __init__(self, entered: threading.Event) -> None:
        self.entered = entered

    def receive(self, opened: threading.Event) -> None:
        self.entered.set()
        opened.wait(LONG)


class Stubborn(Stuck):
    """Does not end when it is cancelled."""

    async def receive(self, opened: threading.Event) -> None:  # type: ignore[override]
        self.entered.set()
        while not opened.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                self.was_cancelled = True


class Blocking(Stuck):
    """Blocks the event loop itself."""

    async def receive(self, opened: threading.Event) -> None:  # type: ignore[override]
        self.entered.set()
        opened.wait(LONG)


def _raise() -> None:
    raise KeyError


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Stuck, {}),
        (Stuck, {"dedicated": True}),
        (Stubborn, {"event_loop": True}),
        (Blocking, {"event_loop": True}),
    ],
    ids=["plain", "dedicated", "ignores-cancel", "blocks-the-loop"],
)
@pytest.mark.parametrize(
    ("end", "error"), [(bool, DrainTimeout), (_raise, KeyError)], ids=["drains", "raises"]
)
@pytest.mark.parametrize("in_coroutine", [False, True], ids=["with", "async-with"])
def test_a_stuck_actor_holds_up_the_end_of_the_block_for_its_drain_timeout_only(
    opened: threading.Event,
    kind: type[Actor[Any]],
    options: dict[str, Any],
    end: Callable[[], object],
    error: type[Exception],
    in_coroutine: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An exception that leaves the block goes on, and the log says what is stuck."""
    entered = threading.Event()
    left_at: list[float] = []

    def leave(system: ActorSystem) -> None:
        system.spawn(kind, entered, **options).tell(opened)
        assert entered.wait(LONG)
        left_at.append(time.monotonic())
        end()

    async def leave_in_coroutine() -> None:
        async with ActorSystem(workers=1, drain_timeout=0.2) as system:
            leave(system)

    def leave_block() -> None:
        with ActorSystem(workers=1, drain_timeout=0.2) as system:
            leave(system)

    with pytest.raises(error) as raised:
        asyncio.run(leave_in_coroutine()) if in_coroutine else leave_block()
    assert type(raised.value) is error
    assert "left behind" in (caplog.text if error is KeyError else str(raised.value))
    assert time.monotonic() - left_at[0] < LATE


def test_a_subscriber_that_blocks_a_worker_does_not_hold_stop_up(opened: threading.Event) -> None:
    system = ActorSystem(workers=1)
    system.dead_letters.subscribe(lambda letter: opened.wait(LONG))
    entered, told = threading.Event(), threading.Event()
    ref = system.spawn(Stuck, entered)
    ref.tell(told)
    assert entered.wait(LONG)
    ref.stop()
    ref.tell(opened)  # the worker makes it a dead letter, after the message that it is busy with
    told.set()
    before = time.monotonic()
    with pytest.raises(DrainTimeout, match="left behind"):
        system.stop(0.2)
    assert time.monotonic() - before < LATE


def test_actors_that_can_stop_do_so_though_the_drain_took_all_the_time(
    opened: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.shutdown.LAST_WORDS", LONG)  # which a busy machine may need
    stopped = threading.Event()

    class Endless(Actor[None]):
        def receive(self, message: None) -> None:
            self.ref.tell(None)

        def on_stop(self) -> None:
            stopped.set()

    with (
        pytest.raises(DrainTimeout, match=r"did not become idle in 0\.1 s"),
        ActorSystem(workers=1, drain_timeout=0.1) as system,
    ):
        system.spawn(Endless).tell(None)
    assert stopped.is_set()
    assert system.is_closed


def _wait_for_ever(opened: threading.Event) -> type[Actor[Any]]:
    class Asking(Stuck):
        async def receive(self, opened: threading.Event) -> None:  # type: ignore[override]
            self.entered.set()
            await Future()

    return Asking


def _spin(opened: threading.Event) -> type[Actor[Any]]:
    class Busy(Stuck):
        def receive(self, opened: threading.Event) -> None:
            self.entered.set()
            while not opened.is_set():
                pass

    return Busy


class Recorded(ActorSystem):
    """Notes how long its stop may take."""

    given: float

    def stop(self, timeout: float = 10.0) -> None:
        self.given = timeout
        super().stop(timeout)


@pytest.mark.parametrize(
    ("kind", "moment"),
    [(lambda _: Stuck, 0.35), (_spin, 0.35), (_wait_for_ever, LONG)],
    ids=["blocks", "spins", "can stop"],
)
def test_a_drain_that_took_all_the_time_leaves_a_moment_for_the_stop_and_one_error(
    opened: threading.Event,
    kind: Callable[[threading.Event], type[Actor[Any]]],
    moment: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert LAST_WORDS == 0.35
    monkeypatch.setattr("callboard.shutdown.LAST_WORDS", moment)
    entered = threading.Event()
    system = Recorded("shop", workers=1, drain_timeout=0.1)
    ref = system.spawn(kind(opened), entered, name="stuck")
    ended = ref.ended
    ref.tell(opened)
    assert entered.wait(LONG)
    with pytest.raises(
        DrainTimeout, match=r"^the system 'shop' did not become idle in 0\.1 s"
    ) as e:
        system.__exit__(None, None, None)
    assert "/stuck" in str(e.value)
    assert ("left behind" in str(e.value)) == (not ended.done())
    assert e.value.__context__ is None
    assert system.given <= moment
    assert system.is_closed


def test_a_stuck_run_of_streams_is_named_in_the_one_error(opened: threading.Event) -> None:
    entered = threading.Event()

    def wait(row: int) -> int:
        entered.set()
        opened.wait(LONG)
        return row

    system = ActorSystem(workers=1, drain_timeout=0.1)
    run = system.run(entry("x", int).map(wait).collect(), batch_size=1)
    run.send("x", [1])
    assert entered.wait(LONG)
    with pytest.raises(DrainTimeout, match="did not become idle") as raised:
        system.__exit__(None, None, None)
    assert "in wait" in str(raised.value)
    assert raised.value.__context__ is None


class Interrupted(ActorSystem):
    """Gets Ctrl-C in the drain."""

    def drain(self, timeout: float | None = None) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [ActorSystem, Interrupted], ids=["in-the-block", "in-the-drain"])
def test_ctrl_c_comes_out_though_an_actor_is_left_behind(
    opened: threading.Event, kind: type[ActorSystem], caplog: pytest.LogCaptureFixture
) -> None:
    entered = threading.Event()

    def leave() -> None:
        with kind(workers=1, drain_timeout=0.1) as system:
            system.spawn(Stuck, entered, name="stuck").tell(opened)
            assert entered.wait(LONG)
            if kind is ActorSystem:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert "left behind" in caplog.text
    assert "/stuck" in caplog.text


def _stuck_run(system: ActorSystem, entered: threading.Event, opened: threading.Event) -> Any:
    """Return a run of which an operator waits for the test."""

    def wait(row: int) -> int:
        entered.set()
        opened.wait(LONG)
        return row

    run = system.run(entry("x", int).map(wait).collect(), batch_size=1)
    run.send("x", [1])
    assert entered.wait(LONG)
    return run


def test_nested_blocks_share_time(opened: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    cancels: list[float] = []
    real = Execution.cancel

    def cancel(self: Execution, timeout: float = 5.0) -> None:
        cancels.append(timeout)
        real(self, min(timeout, 0.3))

    monkeypatch.setattr(Execution, "cancel", cancel)
    system = Recorded(workers=1, drain_timeout=30.0)
    monkeypatch.setattr("callboard.shutdown.STOP_TIMEOUT", 1.0)

    def leave() -> None:
        with system, _stuck_run(system, threading.Event(), opened) as run, run:  # as of two runs
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert cancels[0] == 1.0
    assert cancels[1] <= 0.7
    assert system.given <= 1.0 - 2 * 0.3


def test_an_error_that_does_not_leave_the_systems_block_takes_none_of_its_time(
    opened: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Execution.cancel
    monkeypatch.setattr(Execution, "cancel", lambda self, _: real(self, 0.2))
    system = Recorded(workers=1, drain_timeout=60.0)

    def leave() -> None:
        with system:
            run = _stuck_run(system, threading.Event(), opened)
            with contextlib.suppress(KeyError), run:
                raise KeyError
            opened.set()
            raise LookupError

    with pytest.raises(LookupError):
        leave()
    assert system.given == STOP_TIMEOUT
