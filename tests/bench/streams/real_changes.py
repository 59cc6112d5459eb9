"""The real stream of commits: the whole of it if it is at hand, else a sample."""

import sys
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "examples"))

from changes import read_changes  # noqa: E402
from sessions import Change  # noqa: E402

WHOLE = ROOT.parent / "shared/data/changes.csv.gz"
SAMPLE = ROOT / "examples/data/changes-sample.csv.gz"


def first_changes(n: int) -> list[Change]:
    with (WHOLE if WHOLE.exists() else SAMPLE).open("rb") as file:
        return list(islice(read_changes(file), n))
