"""Calls: all ways to call give all answers."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def bench_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)  # for Ray's processes


@pytest.mark.parametrize(
    ("by", "at_once"),
    [("callboard", 1), ("callboard", 7), ("pool", 1), ("pool", 7), ("pipe", 7), ("ray", 7)],
)
def test_all_answers_come(by: str, at_once: int) -> None:
    import one

    if by == "ray":
        pytest.importorskip("ray")
    result = one.play("calling.playing", "none", 40, {"by": by, "at_once": at_once})
    answers = hash(tuple(range(1, 41)))
    assert (result.got, result.want) == (answers, answers)


def test_what_processes_below_this_one_spend_is_seen() -> None:
    import subprocess
    import sys

    from with_ray import cpu_of_children

    before = cpu_of_children()
    program = "x = sum(range(30_000_000)); print(flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert cpu_of_children() - before > 0.1
        child.communicate(b"\n")
