"""Fixtures of the tests of the examples: their modules, and the real data."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sessions import Change

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SAMPLE = EXAMPLES / "data" / "changes-sample.csv.gz"
WHOLE = Path(
    os.environ.get("CALLBOARD_CHANGES", ROOT.parent / "shared" / "data" / "changes.csv.gz")
)

# The examples are scripts: they import each other from their own folder, as when Python runs them.
sys.path.insert(0, str(EXAMPLES))


@cache
def read_all(path: Path) -> "list[Change]":
    from changes import read_changes

    with path.open("rb") as file:
        return list(read_changes(file))


@pytest.fixture
def examples() -> Path:
    return EXAMPLES


@pytest.fixture
def sample() -> Path:
    return SAMPLE


# The whole stream takes seconds of processor time: minutes, on a machine with much else to do.
@pytest.fixture(params=["sample", pytest.param("whole", marks=pytest.mark.timeout(900))])
def data(request: pytest.FixtureRequest) -> Path:
    """Run a test on the sample and on the whole change stream."""
    path = SAMPLE if request.param == "sample" else WHOLE
    if not path.exists():
        pytest.skip(f"the change stream is not at {path}; CALLBOARD_CHANGES may name it")
    return path


@pytest.fixture
def stream(data: Path) -> "list[Change]":
    """All changes of the sample, or of the whole change stream; read once, so not to be changed."""
    return read_all(data)
