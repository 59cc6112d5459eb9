"""`python -m callboard serve` as a process: it serves, drains at SIGTERM, and exits."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callboard import ActorStopped
from callboard.remote import connect
from callboard.remote.client import health_command
from tests.remote.conftest import DEADLINE, eventually

APP = """
import logging
import os
import signal
import threading
from dataclasses import dataclass
from callboard import Actor, Supervision

@dataclass
class Point:
    x: int

TYPES = [Point]

class Gate(Actor):
    waits = True

    def receive(self, message):
        if message == "stuck":
            print("at work", flush=True)
            threading.Event().wait(60)
        if self.waits:
            open("go").close()  # a pipe: until the test opens it, too
            self.waits = False
        print("handled", message, flush=True)
        return message

def build(system):
    return system.spawn(Gate, name="gate", dedicated=True)

class Fragile(Actor):
    def receive(self, message):
        raise ValueError(message)

def fragile(system):
    return system.spawn(Fragile, name="fragile", supervision=Supervision("escalate"))

def broken(system):
    return 3

class Mortal(Actor):
    def receive(self, message):
        self.stop()

def mortal(system):
    return {"one": system.spawn(Mortal), "other": system.spawn(Mortal)}

def signal_me():
    os.kill(os.getpid(), signal.SIGTERM)

class SignalAtTheEnd(logging.Handler):
    def emit(self, record):
        if "system stopped" in record.getMessage():
            signal_me()

def mortal_and_signalled(system):
    logging.getLogger("callboard").addHandler(SignalAtTheEnd())
    return mortal(system)

class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGTERM):
        kill(process, number)
        kill(process, signal.SIGINT)

def signalled_late(system):
    global late
    late = Late()  # which goes when the interpreter's modules do
    return build(system)

def linger():
    threading.main_thread().join()
    print("lingers", flush=True)
    threading.Event().wait(60)

def lingering(system):
    threading.Thread(target=linger).start()
    return build(system)
"""


class Process:
    def __init__(self, folder: Path, *options: str, build: str = "app:build") -> None:
        (folder / "app.py").write_text(APP)
        os.mkfifo(folder / "go")
        self.url = f"unix:{folder}/s"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "callboard", "serve", build, "--bind", self.url, *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_ready(self) -> None:
        self.wait_for(f"serving on {self.url}")

    def wait_for(self, line: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == line + "\n"

    def end(self) -> tuple[int, str, str]:
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors


Serve = Callable[..., Process]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a server with options, and wait until it serves, unless `waits` is false."""
    started: list[Process] = []

    def start(*options: str, waits: bool = True, **named: str) -> Process:
        started.append(Process(tmp_path, *options, **named))
        if waits:
            started[-1].wait_ready()
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_exits_0(number: signal.Signals, tmp_path: Path, serve: Serve) -> None:
    served = serve()
    with connect(served.url, timeout=DEADLINE) as connection:
        gate = connection.ref("gate")
        gate.tell_many(["one", "two"])
        asked = gate.ask("three")
        connection.health().result(DEADLINE)  # what was sent before it has been taken
        served.process.send_signal(number)
        eventually(lambda: drains(served), "it drains")
        assert not asked.done()
        (tmp_path / "go").write_text("")
        assert asked.result(DEADLINE) == "three"
        assert connection.unacknowledged == 0
    status, output, errors = served.end()
    assert (status, output) == (0, "handled one\nhandled two\nhandled three\n"), errors
    assert not (tmp_path / "s").exists()


def drains(served: Process) -> bool:
    return not Path(served.url.removeprefix("unix:")).exists()


def test_a_stuck_actor_is_named_and_the_status_is_1(serve: Serve) -> None:
    served = serve("--drain-timeout", "0.2")
    connection = connect(served.url, timeout=DEADLINE)
    connection.ref("gate").tell("stuck")
    served.wait_for("at work")
    served.process.terminate()
    status, _, errors = served.end()
    assert status == 1
    assert "did not become idle in 0.2 s" in errors
    assert "/gate" in errors
    connection.close()


def test_a_second_signal_ends_it_at_once(serve: Serve) -> None:
    served = serve("--drain-timeout", "60")
    connection = connect(served.url, timeout=DEADLINE)
    connection.ref("gate").tell("stuck")
    connection.health().result(DEADLINE)
    served.process.terminate()
    eventually(lambda: drains(served), "it drains")
    served.process.terminate()
    status, _, errors = served.end()
    assert status == 1
    assert "a second signal ended it" in errors
    connection.close()


def test_a_system_that_fails_ends_it(serve: Serve) -> None:
    served = serve(build="app:fragile")
    connection = connect(served.url, timeout=DEADLINE)
    connection.ref("fragile").tell("boom")
    status, _, errors = served.end()
    assert (status, "all actors have stopped" in errors) == (1, True)
    connection.close()


def test_it_ends_with_its_actors_though_a_client_is_connected(tmp_path: Path, serve: Serve) -> None:
    served = serve(build="app:mortal")
    connection = connect(served.url, timeout=DEADLINE)
    connection.ref("one").tell("stop")
    with pytest.raises(ActorStopped):
        connection.ref("one").ask("anybody?").result(DEADLINE)
    assert connection.health().result(DEADLINE)["state"] == "serving"
    connection.ref("other").tell("stop")
    status, _, errors = served.end()
    assert (status, "all actors have stopped" in errors) == (1, True)
    assert not (tmp_path / "s").exists()
    connection.close()


def test_with_a_state_it_serves_on_when_all_actors_have_stopped(serve: Serve) -> None:
    served = serve("--state", "state", build="app:mortal")
    with connect(served.url, timeout=DEADLINE) as connection:
        for name in ("one", "other"):
            connection.ref(name).tell("stop")
            with pytest.raises(ActorStopped):
                connection.ref(name).ask("anybody?").result(DEADLINE)
        assert connection.health().result(DEADLINE)["state"] == "serving"
    served.process.terminate()
    assert served.end()[0] == 0


def test_a_signal_after_it_has_ended_by_itself_changes_nothing(serve: Serve) -> None:
    served = serve(build="app:mortal_and_signalled")
    connection = connect(served.url, timeout=DEADLINE)
    connection.ref("one").tell("stop")
    connection.ref("other").tell("stop")
    status, _, errors = served.end()
    assert status == 1
    assert errors.endswith(
        "callboard serve: all actors have stopped: there is nothing left to serve\n"
    )
    assert "Traceback" not in errors
    connection.close()


def test_signals_while_the_interpreter_ends_change_nothing(serve: Serve) -> None:
    served = serve(build="app:signalled_late")
    served.process.terminate()
    status, _, errors = served.end()
    assert status == 0, errors


def test_a_second_signal_ends_it_while_a_thread_of_the_programs_lingers(serve: Serve) -> None:
    served = serve(build="app:lingering")
    served.process.terminate()
    served.wait_for("lingers")

    def is_ended() -> bool:
        served.process.terminate()  # Python does not see one that comes just before it waits
        return served.process.poll() is not None

    eventually(is_ended, "it ends")
    assert served.end()[0] == 1


def test_health_is_told_to_who_watches(tmp_path: Path, serve: Serve) -> None:
    served = serve("--types", "app:TYPES", "--max-connections", "7")
    command = [sys.executable, "-m", "callboard", "health", served.url, "--timeout", "60"]
    seen = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(seen.stdout)["state"] == "serving"
    assert json.loads(seen.stdout)["connections"] == 1
    served.process.terminate()
    assert served.end()[0] == 0
    gone = subprocess.run(
        [*command, "--timeout", "0.1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert gone.returncode == 1
    assert "no connection to unix:" in gone.stderr


def test_health_says_which_timeout_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        health_command.main(["unix:nobody", "--timeout", "0"])
    assert "--timeout must be a number of seconds above 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["app:nothing"], "has no 'nothing'"),
        (["nowhere:build"], "there is no module 'nowhere'"),
        (["app"], "expected MODULE:NAME"),
        (["os:name"], "os:name must be a function of an actor system, got 'posix'"),
        (["app:build", "--log-level", "LOUD"], "--log-level must be one of DEBUG, INFO, "),
        (["app:broken"], "build must return a ref"),
        (["app:build", "--drain-timeout", "-1"], "--drain-timeout must be a number of seconds"),
        (["app:build", "--max-frame", "7"], "frame must be a whole number from 4096"),
        (["app:build", "--tls-cert", "x"], "one of them is missing"),
        (["app:build", "--secret-file", "none"], "cannot be read"),
        (["app:build", "--config", "none.toml"], "none.toml"),
    ],
)
def test_errors_are_one_line(arguments: list[str], said: str, serve: Serve) -> None:
    build, *options = arguments
    served = serve(*options, build=build, waits=False)
    status, _, errors = served.end()
    assert status == 1
    last = errors.splitlines()[-1]
    assert last.startswith("callboard serve: ")
    assert said in last


def test_a_command_that_is_not_there_shows_those_that_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "callboard", "sing"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    for command in ("demo", "serve", "health", "info", "top", "dashboard", "tree", "dump", "bench"):
        assert command in done.stderr
