"""The demo's answers by plain sequential Python: the oracle that its tests compare with.

Nothing is shared with `examples/sessions.py`: all rows are held in memory, sorted by author and
time, and cut where the gap to the row before is a pause.
"""

import csv
import gzip
from collections import Counter
from pathlib import Path

PAUSE_SECONDS = 3600


def read_rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sessions_of(rows: list[dict[str, str]]) -> list[tuple[int, int, int, int, int, int]]:
    """Return (author, start, end, commits, changes, lines) of every session, sorted."""
    runs: list[list[dict[str, str]]] = []
    before = None
    for row in sorted(rows, key=lambda row: (int(row["author"]), int(row["ts"]))):
        if (
            before is None
            or row["author"] != before["author"]
            or int(row["ts"]) - int(before["ts"]) >= PAUSE_SECONDS
        ):
            runs.append([])
        runs[-1].append(row)
        before = row
    return sorted(
        (
            int(run[0]["author"]),
            int(run[0]["ts"]),
            int(run[-1]["ts"]),
            len({row["commit"] for row in run}),
            len(run),
            sum(int(row["added"]) + int(row["deleted"]) for row in run),
        )
        for run in runs
    )


def changes_by_file(rows: list[dict[str, str]]) -> Counter[tuple[str, str]]:
    return Counter((row["repo"], row["path"]) for row in rows)
