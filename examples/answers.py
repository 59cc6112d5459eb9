"""Fold the demo's records into answers, and print them as small tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sessions import FileCount, Record, Session


class AuthorTotal(NamedTuple):
    """The sessions of one author, added up."""

    author: int
    sessions: int
    seconds: int
    commits: int
    changes: int


class Answers:
    """The answers: fold records in, in any order, then `render`."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.files: Counter[tuple[str, str]] = Counter()

    def add(self, records: Iterable[Record]) -> None:
        """Fold records in; counts of one file from several partitions add up."""
        for record in records:
            if isinstance(record, Session):
                self.sessions.append(record)
            else:
                self.files[record.repo, record.path] += record.changes

    @property
    def changes(self) -> int:
        return sum(session.changes for session in self.sessions)

    def longest(self, top: int) -> list[Session]:
        return sorted(self.sessions, key=lambda s: (-s.seconds, s.start, s.author))[:top]

    def busiest(self, top: int) -> list[AuthorTotal]:
        """Return the authors with most time in sessions."""
        by_author: defaultdict[int, list[Session]] = defaultdict(list)
        for session in self.sessions:
            by_author[session.author].append(session)
        totals = [
            AuthorTotal(
                author,
                sessions=len(own),
                seconds=sum(session.seconds for session in own),
                commits=sum(session.commits for session in own),
                changes=sum(session.changes for session in own),
            )
            for author, own in by_author.items()
        ]
        return sorted(totals, key=lambda total: (-total.seconds, total.author))[:top]

    def hottest(self, top: int) -> list[FileCount]:
        counts = (FileCount(repo, path, count) for (repo, path), count in self.files.items())
        return sorted(counts, key=lambda file: (-file.changes, file.repo, file.path))[:top]

    def render(self, top: int = 5) -> str:
        """Return the answers as text, with `top` lines in each table."""
        longest = [
            (str(s.author), _time(s.start), _duration(s.seconds), s.commits, s.changes, s.lines)
            for s in self.longest(top)
        ]
        busiest = [
            (str(a.author), a.sessions, _duration(a.seconds), a.commits, a.changes)
            for a in self.busiest(top)
        ]
        hottest = [(file.changes, file.repo, file.path) for file in self.hottest(top)]
        return "\n\n".join(
            [
                self._totals(),
                _table(
                    "Longest sessions",
                    ["author", "<start (UTC)", "length", "commits", "changes", "lines"],
                    longest,
                ),
                _table(
                    "Authors with most time in sessions",
                    ["author", "sessions", "time", "commits", "changes"],
                    busiest,
                ),
                _table("Files that change most", ["changes", "<repository", "<path"], hottest),
            ]
        )

    def _totals(self) -> str:
        commits = sum(session.commits for session in self.sessions)
        authors = len({session.author for session in self.sessions})
        several = [session.seconds for session in self.sessions if session.seconds > 0]
        mean = sum(several) / len(several) if several else 0
        return (
            f"{self.changes:,} changes in {commits:,} commits by {authors:,} authors\n"
            f"{len(self.sessions):,} sessions of work, {len(several):,} of them of more than one "
            f"moment: {_duration(mean)} on average"
        )


def _time(ts: int) -> str:
    return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%d %H:%M")


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay out a titled table: a column is set left if its name starts with '<', else right."""
    cells = [[name.lstrip("<") for name in header]]
    cells += [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    columns = [
        (str.ljust if name.startswith("<") else str.rjust, max(map(len, column)))
        for name, column in zip(header, zip(*cells, strict=True), strict=True)
    ]
    lines = (
        "  ".join(set_(cell, width) for cell, (set_, width) in zip(row, columns, strict=True))
        for row in cells
    )
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])
