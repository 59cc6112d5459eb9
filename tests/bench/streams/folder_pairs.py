"""Two authors in one folder within an hour, in the real stream of commits: a self-join.

The query is that of `examples/side_by_side.py`: pairs of commits by different authors, each
commit's visit of a folder counted once.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from savina.result import Result
from streams.real_changes import first_changes  # before the examples: it says where these are
from streams.timing import timed

from sessions import Change  # isort: skip
from side_by_side import HOUR, Visit, pairs, visit_of  # isort: skip

Found = Sequence[tuple[Any, Any]]
"""Pairs of visits, or of rows with the same values."""


def run(n: int, *, by: str = "graph", **options: Any) -> Result:
    changes = first_changes(n)
    want = by_plain_python(changes)[1]
    seconds, found = BY[by](changes, **options)
    return Result(len(changes), seconds, got=digest(found), want=digest(want))


def digest(found: Found) -> list[int]:
    """Count pairs, and sum up which commits they are of and when, in any order."""
    sums = [
        (left.commit + 1) * (right.commit + 1) + left.ts + 3 * right.ts for left, right in found
    ]
    return [len(sums), sum(sums)]


def by_graph(changes: list[Change], **options: Any) -> tuple[float, Found]:
    return timed(pairs, [("changes", changes)], None, **options)


def by_plain_python(changes: list[Change]) -> tuple[float, Found]:
    """Compare each visit with those of its folder in the hour before."""
    begin = perf_counter()
    found = []
    visits = dict.fromkeys(map(visit_of, changes))
    folders: defaultdict[str, deque[Visit]] = defaultdict(deque)
    for visit in visits:
        others = folders[visit.folder]
        while others and visit.ts - others[0].ts > HOUR:
            others.popleft()
        for other in others:
            if other.author != visit.author:
                first = other.author < visit.author
                found.append((other, visit) if first else (visit, other))
        others.append(visit)
    return perf_counter() - begin, found


def by_duckdb(changes: list[Change]) -> tuple[float, Found]:
    """Make a table of the rows, and rows of a query's answer, by one thread."""
    import duckdb
    import pyarrow

    with duckdb.connect(config={"threads": 1}) as base:
        begin = perf_counter()
        columns = zip(Change._fields, zip(*changes, strict=True), strict=True)
        base.register("changes", pyarrow.table(dict(columns)))
        rows = base.execute(
            "with visits as (select distinct ts, author, commit, repo || '/' ||"
            " case when contains(path, '/') then regexp_replace(path, '/[^/]*$', '') else '' end"
            " as folder from changes)"
            " select a.ts, a.folder, a.author, a.commit, b.ts, b.folder, b.author, b.commit"
            " from visits a join visits b on a.folder = b.folder and a.author < b.author"
            f" and a.ts between b.ts - {HOUR} and b.ts + {HOUR}"
        ).fetchall()
        found = [(Visit(*row[:4]), Visit(*row[4:])) for row in rows]
        return perf_counter() - begin, found


BY: dict[str, Callable[..., tuple[float, Found]]] = {
    "graph": by_graph,
    "plain": by_plain_python,
    "duckdb": by_duckdb,
}
