"""An actor that waits for a run helps with its work."""

import subprocess
import sys

# In a process of its own: what it hunts is a helper that holds the interpreter while it waits for a
# lock whose holder wants the interpreter, and no thread of this process could end that.
PROGRAM = """
import time
from callboard import Actor, ActorSystem
from callboard.streams import entry

def give_way(row):
    time.sleep(0)
    return row

class Driver(Actor):
    def receive(self, graph):
        for _ in range(30):
            run = self.system.run(graph, batch_size=1, window=16, rivals="locked")
            run.send("x", range(400))
            assert run.finish(timeout=30) == list(range(400))

graph = entry("x", int).map(give_way, releases_gil=True).map(lambda row: row).collect()
with ActorSystem(workers=2) as system:
    system.spawn(Driver, dedicated=True).ask(graph).result(timeout=60)
"""


def test_who_helps_does_not_keep_the_interpreter_from_who_holds_a_lock() -> None:
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
