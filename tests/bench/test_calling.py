"""All ways to call return all answers."""

import subprocess
import sys
from itertools import product

import pytest

pytestmark = pytest.mark.usefixtures("bench_modules")

RAY = ("ray", "ray_compiled")
MODULES = {"shared_memory": "iceoryx2", **dict.fromkeys(RAY, "ray")}


@pytest.mark.parametrize(
    ("by", "at_once"),
    [*product(["callboard", "pool", "shared_memory"], [1, 7]), *product(["pipe", *RAY], [7])],
)
def test_all_answers_come(by: str, at_once: int) -> None:
    import one

    if by in MODULES:
        pytest.importorskip(MODULES[by])
    result = one.play("calling.playing", "none", 40, {"by": by, "at_once": at_once})
    answers = hash(tuple(range(1, 41)))
    assert (result.got, result.want) == (answers, answers)


PARENT = """
import subprocess, sys
from with_ray import cpu_of_children

command = [sys.executable, "-c", "x = sum(range(30_000_000)); print(flush=True); input()"]
before = cpu_of_children()
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
    child.stdout.readline()
    living = cpu_of_children()
    child.communicate(b"\\n")
print(living - before, cpu_of_children() - before)
"""


def test_time_spent_in_child_processes_is_counted() -> None:
    """In a process of its own: below this one, processes of other tests may be about to end."""
    run = [sys.executable, "-c", PARENT]
    living, ended = map(float, subprocess.run(run, capture_output=True, check=True).stdout.split())
    assert living > 0.1
    assert ended >= living
