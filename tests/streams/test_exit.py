"""The end of the interpreter while runs still exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import callboard._inside.life.exit
callboard._inside.life.exit.EXIT_TIMEOUT = 60.0  # on a busy machine an exit takes its time
from callboard import ActorSystem
from callboard.streams import entry

system = ActorSystem(workers=2)
run = system.run(entry("x").map(abs).collect())
run.send("x", range(1000))
{end}
"""


RESTING = """
import gc, threading
from callboard import ActorSystem
from callboard.streams import entry

came = threading.Event()
system = ActorSystem()
run = system.run(entry("x").throttle(0.001).to(lambda _: came.set()), batch_size=1)
run.send("x", [1, 2, 3])
assert came.wait(60)
del run
system.stop()
gc.collect()
"""


def test_a_run_that_rests_may_be_forgotten(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", RESTING], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    "end",
    [
        "",
        "run.finish()",
        "run.cancel()",
        "cycle = [run]; cycle.append(cycle); del run",
        "system.stop()",
        "sys.modules['kept'] = run",
        "import threading; kept = threading.local(); kept.run = run",
    ],
)
def test_a_run_left_at_the_interpreters_end_prints_no_error(tmp_path: Path, end: str) -> None:
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(end=end)],
            cwd=tmp_path, capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        assert (ended.returncode, ended.stderr) == (0, "")
