"""Actors that are Python classes, compiled by Cython: their worker never runs Python code."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

# In a process of its own: what it hunts is a worker that never lets the interpreter go, or never
# stops for the collector, and no thread of this process could end that.
PROGRAM = """
import gc
from behaviours import Rally
from callboard import ActorSystem

with ActorSystem() as system:
    rally = system.spawn(Rally)
    assert rally.ask("begin").result(timeout=30) == "begun"
    gc.collect()
    rally.stop()
"""


def test_a_busy_compiled_actor_lets_other_threads_run(behaviours: ModuleType) -> None:
    assert behaviours.__file__ is not None
    folder = Path(behaviours.__file__).parent
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=240
    )
    assert run.returncode == 0, run.stderr
