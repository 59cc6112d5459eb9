"""Sessions in the real stream of commits: by the built-in window, a class, plain Python, pandas."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from callboard.streams import Graph, KeyedStream, SessionWindow, Window, entry
from savina.result import Result
from streams.real_changes import first_changes  # before the example: it says where that is
from streams.timing import timed

from sessions import PAUSE, Change  # isort: skip

Found = list[tuple[int, Window[int]]]
"""For each session the author, its bounds, and how many changes it has."""


def time_of(change: Change) -> int:
    return change.ts


def author_of(change: Change) -> int:
    return change.author


def run(n: int, *, by: str = "ordered", **options: Any) -> Result:
    changes = first_changes(n)
    want = by_plain_python(changes)[1]
    seconds, got = BY[by](changes, **options)
    return Result(len(changes), seconds, got=digest(got), want=digest(want))


def digest(found: Found) -> list[int]:
    """Sum sessions up, in any order: those that are open at the end come out by arrival or time."""
    return [len(found), hash(tuple(sorted(found)))]


# --- by graphs ------------------------------------------------------------------------------------


class Sessions:
    """The sessions of one author, as one would write it."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def receive(self, change: Change) -> Found | None:
        ended = None
        if self.changes and change.ts - self.changes[-1].ts >= PAUSE:
            ended = self.on_final()
            self.changes = []
        self.changes.append(change)
        return ended

    def on_final(self) -> Found:
        first, last = self.changes[0], self.changes[-1]
        return [(first.author, Window(first.ts, last.ts + PAUSE, len(self.changes)))]


def ordered(authors: KeyedStream[int, Change]) -> Graph[Found]:
    return authors.window(SessionWindow(PAUSE, by=time_of, ordered=True), len).collect()


def by_class(authors: KeyedStream[int, Change]) -> Graph[Found]:
    return authors.stateful(Sessions).collect()


def of(make: Callable[[Any], Graph[Found]], every: int = 0) -> Callable[..., tuple[float, Found]]:
    def play(changes: list[Change], **options: Any) -> tuple[float, Found]:
        stream = entry("changes", Change)
        if every:
            stream = stream.watermarks(time_of, every=every)
        graph = make(stream.key_by(author_of))
        return timed(graph, [("changes", changes)], **options)

    return play


def unordered(authors: KeyedStream[int, Change]) -> Graph[Found]:
    return authors.window(SessionWindow(PAUSE, by=time_of), len).collect()


# --- without --------------------------------------------------------------------------------------


class Open:
    __slots__ = ("changes", "first", "last")

    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self.changes = 0


def by_plain_python(changes: list[Change]) -> tuple[float, Found]:
    begin = perf_counter()
    found = []
    sessions: dict[int, Open] = {}
    for change in changes:
        session = sessions.get(change.author)
        if session is None or change.ts - session.last >= PAUSE:
            if session is not None:
                end = session.last + PAUSE
                found.append((change.author, Window(session.first, end, session.changes)))
            session = sessions[change.author] = Open(change.ts)
        session.last = change.ts
        session.changes += 1
    for author, session in sessions.items():
        found.append((author, Window(session.first, session.last + PAUSE, session.changes)))
    return perf_counter() - begin, found


def by_pandas(changes: list[Change]) -> tuple[float, Found]:
    """Make a data frame of the rows, and rows of its answer."""
    import pandas

    begin = perf_counter()
    frame = pandas.DataFrame({"ts": map(time_of, changes), "author": map(author_of, changes)})
    times = frame.groupby("author").ts
    session = (times.diff() >= PAUSE).groupby(frame.author).cumsum()
    each = frame.groupby(["author", session]).ts.agg(["min", "max", "size"])
    windows = map(Window, each["min"], each["max"] + PAUSE, each["size"])
    found: Found = list(zip(each.index.get_level_values(0), windows, strict=True))
    return perf_counter() - begin, found


BY: dict[str, Callable[..., tuple[float, Found]]] = {
    "ordered": of(ordered),
    "watermarks": of(unordered, every=1),
    "rare_watermarks": of(unordered, every=1_000),
    "end": of(unordered),
    "class": of(by_class),
    "plain": by_plain_python,
    "pandas": by_pandas,
}
