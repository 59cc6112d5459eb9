"""The five questions about real file changes, against code that holds all rows and counts again."""

import statistics
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from sessions import Change
from tests.examples.sequential import read_rows
from tpcxbb import changes, sequential

File = tuple[str, str]
Row = dict[str, str]


@cache
def read_all_rows(data: Path) -> list[Row]:
    return read_rows(data)


@pytest.fixture
def rows(data: Path) -> list[Row]:
    return read_all_rows(data)


def answer(query: int, stream: list[Change]) -> list[tuple[Any, ...]]:
    return sequential.answer(query, changes.about(stream)[query], stream)


def file_of(row: Row) -> File:
    return row["repo"], row["path"]


def first_files(rows: list[Row], limit: int) -> list[File]:
    return sorted(list(dict.fromkeys(map(file_of, rows)))[:limit])


def sessions_of(rows: list[Row]) -> list[list[Row]]:
    """Cut where an author's next change is more than an hour later, all rows at hand."""
    cut: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (int(row["author"]), int(row["ts"]))):
        before = cut[-1][-1] if cut else None
        same = before is not None and before["author"] == row["author"]
        if before is None or not same or int(row["ts"]) - int(before["ts"]) > 3600:
            cut.append([])
        cut[-1].append(row)
    return cut


def ranked(counts: Counter[Any], top: int) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:top]


def test_files_changed_together_by_the_hour(stream: list[Change], rows: list[Row]) -> None:
    commits = defaultdict(list)
    for row in rows:
        commits[int(row["ts"]) // 3600, row["commit"]].append(row)
    hours: defaultdict[int, Counter[Any]] = defaultdict(Counter)
    for (hour, _), of_commit in commits.items():
        hours[hour].update(combinations(first_files(of_commit, 50), 2))
    expected = [
        (hour, *pair, count) for hour in sorted(hours) for pair, count in ranked(hours[hour], 100)
    ]
    assert answer(1, stream) == expected


def test_files_seen_together_in_a_session(stream: list[Change], rows: list[Row]) -> None:
    pairs: Counter[Any] = Counter()
    for session in sessions_of(rows):
        pairs.update(combinations(first_files(session, 100), 2))
    assert answer(2, stream) == [(*pair, count) for pair, count in ranked(pairs, 30)]


def test_files_touched_before_a_hot_file(stream: list[Change], rows: list[Row]) -> None:
    hot = {file for file, _ in ranked(Counter(map(file_of, rows)), 20)}
    by_author: defaultdict[str, list[Row]] = defaultdict(list)
    touched: dict[File, Counter[File]] = {}
    for row in rows:
        before = by_author[row["author"]]
        file = file_of(row)
        if file in hot:
            recent = [
                file_of(other)
                for other in before[-5:]
                if int(row["ts"]) - int(other["ts"]) <= 10 * 86400 and file_of(other) != file
            ]
            if recent:
                touched.setdefault(file, Counter()).update(recent)
        before.append(row)
    expected = [
        (file, other, count) for file in touched for other, count in ranked(touched[file], 30)
    ]
    assert len(touched) > 10
    assert answer(3, stream) == expected


def test_sessions_that_added_and_never_deleted(stream: list[Change], rows: list[Row]) -> None:
    sizes = [
        len(session)
        for session in sessions_of(rows)
        if any(row["added"] != "0" for row in session)
        and all(row["deleted"] == "0" for row in session)
    ]
    assert answer(4, stream) == [(len(sizes), sum(sizes), statistics.fmean(sizes))]


def test_repositories_without_growing_activity(stream: list[Change], rows: list[Row]) -> None:
    days: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in rows:
        days[row["repo"]][int(row["ts"]) // 86400] += 1
    slopes = {
        repo: statistics.linear_regression(list(counts), list(counts.values())).slope
        for repo, counts in days.items()
        if len(counts) > 1
    }
    found = answer(15, stream)
    assert [repo for repo, _ in found] == [repo for repo, slope in slopes.items() if slope <= 0]
    assert [slope for _, slope in found] == pytest.approx([slopes[repo] for repo, _ in found])


def test_equally_busy_files_are_hot_in_the_order_of_their_names() -> None:
    stream = [Change(0, 1, "r", commit, path, 1, 0) for commit, path in enumerate("cab")]
    event = changes.about(stream, hot=2)[3].fields
    assert [hot for change in stream for *_, hot in event(change)] == [False, True, True]
