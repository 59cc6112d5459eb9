"""The same five questions about a stream of file changes.

A commit is a basket, a file an item, an author a customer; a change of a file is a visit that may
put something in (added lines) and take something out (deleted ones); a repository is a category.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from changes import read_changes
from sessions import Change
from tpcxbb.questions import Question

__all__ = ["about", "read_changes"]

STREAM = "changes"
LARGEST_COMMIT = 50
LARGEST_SESSION = 100
"""A commit that moves 10,000 files says little on which of them belong together."""


def about(changes: Iterable[Change], hot: int = 20) -> dict[int, Question]:
    """Return the questions, by the number of the query that has their shape.

    :param hot: how many files are hot, namely those with most changes in `changes`.
    """
    counts = Counter(file_of(change) for change in changes)
    ranked = sorted(counts, key=lambda file: (-counts[file], file))
    hot_files = frozenset(ranked[:hot])

    def event(change: Change) -> tuple[int, int, tuple[str, str], bool]:
        file = file_of(change)
        return change.ts, change.author, file, file in hot_files

    return {
        1: Question(
            "Files changed together, by the hour",
            STREAM,
            line,
            settings={"largest": LARGEST_COMMIT},
        ),
        2: Question(
            "Files seen together in a session", STREAM, view, settings={"largest": LARGEST_SESSION}
        ),
        3: Question("Files touched before a hot file", STREAM, event),
        4: Question("Sessions that added and never deleted", STREAM, visit),
        15: Question("Repositories with flat or declining activity", STREAM, activity),
    }


def file_of(change: Change) -> tuple[str, str]:
    return change.repo, change.path


def line(change: Change) -> tuple[int, int, int, tuple[str, str]]:
    return change.ts, change.author, change.commit, file_of(change)


def view(change: Change) -> tuple[int, int, tuple[str, str]]:
    return change.ts, change.author, file_of(change)


def visit(change: Change) -> tuple[int, int, bool, bool]:
    return change.ts, change.author, change.added > 0, change.deleted > 0


def activity(change: Change) -> tuple[int, str, int]:
    return change.ts // (24 * 60 * 60), change.repo, 1
