"""Without an interpreter lock, references to constants that threads share are not counted."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from callboard.core.threads.constants import make_constants_immortal
from callboard.core.threads.interpreter import has_gil

NEAR = """
import far

class Base:
    def inherited(self):
        return 70_002

class Worker(Base):
    def __init__(self, help=None):
        self.help = help

    def work(self, row):
        return row + 70_003

    @staticmethod
    def plain():
        return 70_004

    @property
    def size(self):
        return 70_005

def helper(row):
    return row + 70_006

def work(row, by=helper):
    def inner():
        return 70_007
    return far.far(row) + inner()

def closed(function):
    return lambda row: function(row) + 70_008
"""
FAR = """
def far(row):
    return row + 70_009
"""
LOOK = """
import sys
from functools import partial
from types import CodeType

import near
from callboard.core.threads.constants import make_constants_immortal

def are_immortal(*functions):
    codes = [function.__code__ for function in functions]
    counts = []
    for code in codes:
        codes.extend(one for one in code.co_consts if isinstance(one, CodeType))
        numbers = [one for one in code.co_consts if isinstance(one, int) and one > 70_000]
        counts += map(sys.getrefcount, numbers)
    assert counts
    return [count > 1 << 30 for count in counts]

assert not any(are_immortal({functions}))
make_constants_immortal({root})
print(*are_immortal({functions}))
"""
CASES = {
    "a function": ("near.helper", "near.helper"),
    "what it calls": ("near.work", "near.work, near.helper, near.far.far"),
    "a closure": ("near.closed(near.helper)", "near.closed, near.helper"),
    "a partial object": ("partial(print, near.helper)", "near.helper"),
    "a method": ("near.Worker().work", "near.Worker.work, near.Base.inherited"),
    "an object's attribute": ("near.Worker(near.helper).work", "near.helper"),
    "a class": (
        "near.Worker",
        "near.Worker.work, near.Base.inherited, near.Worker.plain, near.Worker.size.fget",
    ),
}


def run(folder: Path, program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],  # from a .pyc file they come immortal
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return done.stdout


@pytest.mark.parametrize("name", CASES)
def test_constants_that_a_call_comes_to_are_immortal(name: str, tmp_path: Path) -> None:
    root, functions = CASES[name]
    (tmp_path / "near.py").write_text(NEAR)
    (tmp_path / "far.py").write_text(FAR)
    answers = run(tmp_path, LOOK.format(root=root, functions=functions)).split()
    assert set(answers) == {"False" if has_gil() else "True"}


def test_things_of_any_kind_are_looked_at() -> None:
    def unset() -> int:
        return later  # it has no value

    if not sys.argv:
        later = 1

    class Sealed:
        __slots__ = ()

    things = (None, 1, "text", [unset], Sealed(), print, pytest, ModuleType("x"), unset, type)
    for each in things:
        make_constants_immortal(each)


def test_functions_that_refer_to_each_other_are_looked_at_once() -> None:
    def one() -> Any:
        return other

    def other() -> Any:
        return one

    make_constants_immortal(one, other)
