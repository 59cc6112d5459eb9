"""When memory is exhausted, each call raises MemoryError, and the system survives."""

import subprocess
import sys

import pytest

# What is limited is the address space. The room that `hold` takes is there for the end of the test.
PROGRAM = """
import gc, resource, sys, threading
from callboard import Actor, ActorSystem, BoundedMailbox, Future, PriorityMailbox

class Echo(Actor):
    def receive(self, message):
        return message

class Waits(Actor):
    def receive(self, message):
        gate.wait()

class NeverAnswered(Actor):
    async def receive(self, message):
        return await Future()

gate = threading.Event()
with ActorSystem("small", workers=2) as system:
    echo, busy = system.spawn(Echo), system.spawn(Waits)
    bounded = system.spawn(Waits, mailbox=BoundedMailbox(2**30))
    ranked = system.spawn(Waits, mailbox=PriorityMailbox(key=lambda message: 0))
    many = system.spawn(NeverAnswered, concurrency=10**6)
    kept = []
    hold = bytearray(1 << 22)
    with open("/proc/self/statm") as pages:
        now = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (24 << 20), resource.RLIM_INFINITY))
    try:
        while True:
            CALL
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        gate.set()
        many.stop()
        assert echo.ask("alive").result(60) == "alive"
        system.drain(60)
        print("raised")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space, as Linux counts it")
@pytest.mark.parametrize(
    "call",
    [
        "busy.tell(1)",
        "busy.tell_many([1] * 1000)",
        "bounded.tell(1)",
        "ranked.tell(1)",
        "kept.append(busy.ask(1))",
        "many.tell(1)",
        "kept.append(system.spawn(Echo))",
        "kept.append(system.spawn(Echo, mailbox=BoundedMailbox(10)))",
    ],
)
def test_a_call_without_memory_raises_memory_error(call: str) -> None:
    program = PROGRAM.replace("CALL", call)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "raised\n"), done.stderr
