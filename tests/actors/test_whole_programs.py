"""Whole programs that end in every way, and forks, which refuse the use of their copy."""

import os
import signal
import subprocess
import sys

import pytest

PREAMBLE = """
import gc, os, signal, sys, threading
import callboard._inside.life.exit
from callboard import Actor, ActorRef, ActorSystem, ForkedSystem, SystemClosed

callboard._inside.life.exit.EXIT_TIMEOUT = 60.0  # on a busy machine an exit takes its time

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores Ctrl-C

class Echo(Actor):
    def receive(self, message):
        return message

    def on_stop(self):
        print("stopped", flush=True)

class Deaf(Actor):
    "Is in the middle of its message for longer than anyone waits."
    def receive(self, message):
        print("deaf", flush=True)
        threading.Event().wait()
"""


def run(program: str, *, interrupt_at: str | None = None) -> tuple[int, str, str]:
    """Run a program; send it Ctrl-C when it has printed a line. Returns status, output, errors."""
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", PREAMBLE + program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    printed = ""
    try:
        if interrupt_at is not None:
            assert process.stdout is not None
            while interrupt_at not in printed:
                line = process.stdout.readline()
                assert line, f"it ended before it printed {interrupt_at!r}"
                printed += line
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=90)
    finally:
        process.kill()
    return process.returncode, printed + output, errors


# --- whole programs -------------------------------------------------------------------------------


def test_a_system_left_open_ends_with_the_program() -> None:
    status, output, errors = run(
        """
system = ActorSystem(workers=2)
assert system.spawn(Echo).ask("x").result(timeout=30) == "x"
"""
    )
    assert (status, output, errors) == (0, "stopped\n", "")


def test_a_program_ends_though_an_actor_never_comes_back() -> None:
    status, _, errors = run(
        """
callboard._inside.life.exit.EXIT_TIMEOUT = 0.1
system = ActorSystem()
system.spawn(Deaf).tell("x")
"""
    )
    assert status == 0
    assert "Fatal" not in errors
    assert "Traceback" not in errors


def test_messages_that_never_end_do_not_keep_a_program_alive() -> None:
    status, _, errors = run(
        """
class Busy(Actor):
    def receive(self, message):
        self.ref.tell(message)

system = ActorSystem(workers=2)
for _ in range(4):
    system.spawn(Busy).tell("x")
assert system.spawn(Echo).ask("x").result(timeout=60) == "x"
"""
    )
    assert (status, errors) == (0, "")


@pytest.mark.parametrize("wait", ["ask.result()", "system.drain(timeout=600)", "system.join()"])
def test_ctrl_c_ends_a_wait_and_stops_the_actors(wait: str) -> None:
    status, output, errors = run(
        f"""
class Silent(Echo):
    async def receive(self, message):
        print("waiting", flush=True)
        await self.sleep(600)

with ActorSystem() as system:
    ask = system.spawn(Silent).ask("x")
    {wait}
""",
        interrupt_at="waiting",
    )
    assert status == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "stopped" in output


def test_ctrl_c_ends_the_drain_at_the_end_of_the_block() -> None:
    status, output, _ = run(
        """
class Silent(Echo):
    async def receive(self, message):
        print("waiting", flush=True)
        await self.sleep(600)

with ActorSystem(drain_timeout=600) as system:
    system.spawn(Silent).tell("x")
""",
        interrupt_at="waiting",
    )
    assert status == -signal.SIGINT
    assert "stopped" in output


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_copy_refuses_use_and_the_original_goes_on() -> None:
    status, output, errors = run(
        """
import warnings
warnings.simplefilter("ignore")
system = ActorSystem(name="shop")
ref = system.spawn(Echo, name="echo")
assert ref.ask("x").result(timeout=30) == "x"
sys.stdout.flush()
child = os.fork()
if not child:
    for use in [
        lambda: ref.tell("x"),
        lambda: ref.tell_many(["x"]),
        lambda: ref.ask("x"),
        lambda: system.spawn(Echo),
        lambda: system.drain(),
        lambda: system.join(),
    ]:
        try:
            use()
        except ForkedSystem as error:
            assert "make one in this process" in str(error), error
        else:
            raise AssertionError("the copy worked")
    system.stop()  # has nothing to stop
    with ActorSystem() as own:
        assert own.spawn(Echo).ask("y").result(timeout=30) == "y"
    print("child done", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert ref.ask("z").result(timeout=30) == "z"
"""
    )
    assert (status, errors) == (0, "")
    assert output == "stopped\nchild done\nstopped\n"


def test_a_child_that_exits_as_programs_do_ends_too() -> None:
    status, output, errors = run(
        """
import warnings
warnings.simplefilter("ignore")
system = ActorSystem(workers=2)
ref = system.spawn(Echo)
ref.ask("x").result(timeout=30)
child = os.fork()
if not child:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert (status, output, errors) == (0, "stopped\n", "")
