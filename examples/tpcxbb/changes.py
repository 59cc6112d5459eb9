"""The same five questions about a stream of file changes.

A commit is a basket, a file an item, an author a customer; a change of a file is a visit that may
put something in (added lines) and take something out (deleted ones); a repository is a category.
A commit that moves 10,000 files says little on which of them belong together, so only the first 50
files of a commit count, and the first 100 of a session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter

from changes import read_changes
from sessions import Change
from tpcxbb.questions import Question
from tpcxbb.tables import SECONDS_A_DAY

__all__ = ["about", "read_changes"]

File = tuple[str, str]


def about(changes: Iterable[Change], hot: int = 20) -> dict[int, Question]:
    """Return the questions, by the number of the query that has their shape.

    The `hot` files with most changes in `changes` are the hot ones.
    """
    counts = Counter(map(file_of, changes))
    hot_files = frozenset(sorted(counts, key=lambda file: (-counts[file], file))[:hot])

    def event(change: Change) -> Iterable[tuple[int, int, File, bool]]:
        file = file_of(change)
        return ((change.ts, change.author, file, file in hot_files),)

    stream = "changes"
    by_repository = {"group_of": itemgetter(0)}
    return {
        1: Question("Files changed together, by the hour", stream, line, {"largest": 50}),
        2: Question("Files seen together in a session", stream, view, {"largest": 100}),
        3: Question("Files touched before a hot file", stream, event),
        4: Question("Sessions that added and never deleted", stream, visit),
        15: Question("Repositories with flat or falling activity", stream, activity, by_repository),
    }


def file_of(change: Change) -> File:
    return change.repo, change.path


def line(change: Change) -> Iterable[tuple[int, int, int, File]]:
    return ((change.ts, change.author, change.commit, file_of(change)),)


def view(change: Change) -> Iterable[tuple[int, int, File]]:
    return ((change.ts, change.author, file_of(change)),)


def visit(change: Change) -> Iterable[tuple[int, int, bool, bool]]:
    return ((change.ts, change.author, change.added > 0, change.deleted > 0),)


def activity(change: Change) -> Iterable[tuple[int, File, int]]:
    return ((change.ts // SECONDS_A_DAY, file_of(change), 1),)
