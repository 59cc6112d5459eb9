"""A system that handles signals drains before it stops; a second signal stops it at once."""

import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from callboard import Actor, ActorSystem, CallboardError, ConfigError, SystemClosed, signals
from callboard._inside.life import exit as exiting
from callboard.streams import entry

PREAMBLE = """
import os, signal, sys, threading, time
import callboard._inside.life.exit
from callboard import Actor, ActorSystem, DrainTimeout
from callboard.shutdown import Shutdown

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores Ctrl-C
callboard._inside.life.exit.EXIT_TIMEOUT = 60.0  # on a busy machine an exit takes its time
go = threading.Event()

class Counter(Actor):
    handled = 0

    def receive(self, message):
        if message == 0:
            print("at work", flush=True)
            go.wait()
        self.handled += 1

    def on_stop(self):
        print(f"handled {self.handled}\\n", end="", flush=True)  # at once: two may stop together

class Heeding(ActorSystem):
    "Lets the counter go on when a signal has come."
    def _drain_for_signal(self):
        go.set()
        super()._drain_for_signal()
"""

WAITS = {
    "join": "system.join()",
    "drain": "system.drain()",
    "result": "counter.ask(20).result()",
    "own code": "while True: pass",
    "nothing": "pass",
}


class Quiet(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


def run(program: str, *signals: signal.Signals) -> tuple[int, str, str]:
    """Run a program; send it each signal when it has printed one line more."""
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", PREAMBLE + program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        printed = ""
        for number in signals:
            line = process.stdout.readline()
            assert line, f"it ended before signal {number}"
            printed += line
            process.send_signal(number)
        output, errors = process.communicate(timeout=90)
    finally:
        process.kill()
        process.wait()
    return process.returncode, printed + output, errors


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_program_told_to_terminate_handles_what_is_in_flight(wait: str) -> None:
    status, output, errors = run(
        f"""
with Heeding() as system:
    system.install_signal_handlers()
    counter = system.spawn(Counter)
    counter.tell_many(range(20))
    {wait}
""",
        signal.SIGTERM,
    )
    assert (status, errors) == (128 + signal.SIGTERM, "")
    assert output.splitlines() in (["at work", "handled 20"], ["at work", "handled 21"])


def test_an_interrupted_program_does_likewise_and_shows_where_it_was() -> None:
    status, output, errors = run(
        """
with Heeding() as system:
    system.install_signal_handlers()
    counter = system.spawn(Counter)
    counter.tell_many(range(20))
    system.join()
""",
        signal.SIGINT,
    )
    assert (status, output.splitlines()) == (-signal.SIGINT, ["at work", "handled 20"])
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("wait", ["await asyncio.sleep(600)", "while True: pass"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_program_in_asyncio_handles_what_is_in_flight(number: signal.Signals, wait: str) -> None:
    status, output, errors = run(
        f"""
import asyncio

class Heeding(ActorSystem):
    "Lets the counter go on when a signal has come, and the block is left."
    def adrain(self, timeout=None):
        go.set()
        return super().adrain(timeout)

async def main():
    async with Heeding() as system:
        system.install_signal_handlers()
        await system.spawn(Counter).atell_many(range(20))
        {wait}

asyncio.run(main())
""",
        number,
    )
    assert status == (-number if number == signal.SIGINT else 128 + number), errors
    assert output.splitlines() == ["at work", "handled 20"]


def test_a_second_signal_in_asyncio_ends_the_drain() -> None:
    status, output, _ = run(
        """
import asyncio

class Noting(ActorSystem):
    def adrain(self, timeout=None):
        print("drains", flush=True)
        return super().adrain(timeout)

    class _shutdown_class(Shutdown):
        def stop_blocking(self, seconds):
            for actor in self._runtime.top:
                actor.stop()  # before the counter goes on: it handles no more
            go.set()
            super().stop_blocking(seconds)

async def main():
    async with Noting() as system:
        system.install_signal_handlers()
        await system.spawn(Counter).atell_many(range(20))
        await asyncio.sleep(600)

asyncio.run(main())
""",
        signal.SIGTERM,
        signal.SIGTERM,
    )
    assert status == 128 + signal.SIGTERM
    assert output.splitlines()[:2] == ["at work", "drains"]
    assert "handled 20" not in output


def test_a_second_signal_ends_the_drain() -> None:
    status, output, errors = run(
        """
class Loud(ActorSystem):
    def _drain_for_signal(self):
        print("drains", flush=True)
        super()._drain_for_signal()

    def stop(self, timeout=10.0):
        for ref in self.actors:
            ref.stop()  # before it can go on
        go.set()
        super().stop(timeout)

with Loud() as system:
    system.install_signal_handlers()
    counter = system.spawn(Counter)
    counter.tell_many(range(20))
    system.join()
""",
        signal.SIGTERM,
        signal.SIGTERM,
    )
    assert (status, errors) == (128 + signal.SIGTERM, "")
    first, second, last = output.splitlines()
    assert (first, second) == ("at work", "drains")
    assert int(last.removeprefix("handled ")) < 20


def test_without_a_with_block_the_interpreters_exit_drains() -> None:
    status, output, errors = run(
        """
system = Heeding()
system.install_signal_handlers([signal.SIGUSR1])
counter = system.spawn(Counter)
counter.tell_many(range(20))
system.join()
""",
        signal.SIGUSR1,
    )
    assert (status, errors) == (128 + signal.SIGUSR1, "")
    assert output.splitlines() == ["at work", "handled 20"]


def test_two_systems_heed_one_signal() -> None:
    status, output, errors = run(
        """
with Heeding() as other, Heeding() as system:
    for each in (other, system):
        each.install_signal_handlers()
    mine, others = system.spawn(Counter), other.spawn(Counter)
    others.tell_many(range(1, 20))
    mine.tell_many(range(20))  # last: the signal comes when it is at work
    system.join()
""",
        signal.SIGTERM,
    )
    assert (status, errors) == (128 + signal.SIGTERM, "")
    assert sorted(output.splitlines()) == ["at work", "handled 19", "handled 20"]


def test_a_drain_that_takes_too_long_says_who_is_in_the_way() -> None:
    status, output, errors = run(
        """
class Stopping(ActorSystem):
    def stop(self, timeout=10.0):
        go.set()
        super().stop(timeout)

with Stopping(drain_timeout=0.1) as system:
    system.install_signal_handlers()
    counter = system.spawn(Counter, name="counter")
    counter.tell_many(range(20))
    system.join()
""",
        signal.SIGTERM,
    )
    assert output.startswith("at work\n")
    assert status == 1
    assert "DrainTimeout" in errors
    assert "/counter" in errors


def test_the_handlers_from_before_are_back_when_the_last_system_stops() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)
    with ActorSystem() as other:
        with ActorSystem() as system:
            system.install_signal_handlers()
            other.install_signal_handlers([signal.SIGTERM, signal.SIGUSR1])
            other.install_signal_handlers([signal.SIGTERM])
            assert signal.getsignal(signal.SIGUSR1) is not before[1]
        with pytest.raises(SystemExit) as raised:
            signal.raise_signal(signal.SIGTERM)
        assert raised.value.code == 128 + signal.SIGTERM
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)) == before


def test_ctrl_c_out_of_a_sinks_close_keeps_nothing_else_from_its_end() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    closed: list[Any] = []

    class Sink:
        def put(self, row: Any) -> None:
            pass

        def close(self) -> None:
            closed.append(self)
            raise KeyboardInterrupt

    system = ActorSystem(workers=1)
    system.install_signal_handlers()
    sinks = [Sink(), Sink()]
    running = [system.run(entry("rows").to(sink)) for sink in sinks]
    for run_ in running:
        run_.send("rows", [1])
    with pytest.raises(KeyboardInterrupt):
        system.stop()
    assert {*closed} == {*sinks}
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert system not in exiting._live


def test_a_system_that_another_thread_stopped_hands_the_next_signal_back() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    try:
        system = ActorSystem()
        system.install_signal_handlers([signal.SIGUSR1])
        stopper = threading.Thread(target=system.stop)
        stopper.start()
        stopper.join()
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
        assert came == [signal.SIGUSR1] * 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_handlers_are_installed_in_the_main_thread_alone() -> None:
    with ActorSystem() as system:
        failed: list[Exception] = []

        def install() -> None:
            try:
                system.install_signal_handlers()
            except CallboardError as error:
                failed.append(error)

        thread = threading.Thread(target=install, name="other")
        thread.start()
        thread.join()
        assert "must be called in the main thread" in str(failed[0])
        assert "not in the thread 'other'" in str(failed[0])


@pytest.mark.parametrize("signals", [signal.SIGTERM, None])
def test_signals_are_given_as_a_list(signals: Any) -> None:
    with (
        ActorSystem() as system,
        pytest.raises(ConfigError, match=f"expects a list of signals, got {signals!r}"),
    ):
        system.install_signal_handlers(signals)


@pytest.mark.parametrize("number", [signal.SIGKILL, 0, 10_000, "SIGTERM", True])
def test_a_signal_that_cannot_be_handled_is_refused(number: Any) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ActorSystem() as system:
        with pytest.raises(ConfigError, match="expected a signal that a program can handle"):
            system.install_signal_handlers([signal.SIGTERM, number])
        assert signal.getsignal(signal.SIGTERM) == before


def test_a_stopped_system_handles_no_signals() -> None:
    with ActorSystem() as system:
        pass
    with pytest.raises(SystemClosed, match="handles no signals"):
        system.install_signal_handlers()


def test_a_handler_may_ask_for_the_handlers_of_its_signal_while_a_system_stops() -> None:
    number = signal.SIGUSR1
    first, second = signals.Signals(), signals.Signals()
    first.install([number])
    second.install([number])
    try:
        reading = iter(signals._handling[number])
        next(reading)
        other = threading.Thread(target=second.restore)
        other.start()
        other.join()
        assert len(list(reading)) == 1
        with pytest.raises(SystemExit):
            signal.raise_signal(number)
        assert (first.count, second.count) == (1, 0)
    finally:
        first.restore()
    assert signal.getsignal(number) is signal.SIG_DFL
