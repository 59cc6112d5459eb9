"""Streams of Arrow batches, and their joins, which must equal the joins of their rows."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from callboard.streams import Band, Equal, Graph, Stream, Watermark, entry
from tests.streams.join_cases import HOWS
from tests.streams.join_model import Row
from tests.streams.test_merge import streams

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

NAMES = ("a", "b", "c")
DAY = datetime.timedelta(days=1)
NOON = datetime.datetime(2026, 1, 1, 12)


class Clock(NamedTuple):
    """A type of times, what a number is as one, and as a length."""

    type: Any
    time: Callable[[int], Any]
    length: Callable[[int], Any]


CLOCKS = [
    Clock(pa.int64(), int, int),
    Clock(pa.uint8(), lambda n: n + 3, float),
    Clock(pa.float32(), lambda n: n / 4, lambda n: n / 4),
    Clock(pa.timestamp("us"), lambda n: NOON + n * DAY, lambda n: n * DAY),
    Clock(
        pa.timestamp("ms", "Europe/Berlin"),
        lambda n: NOON.replace(tzinfo=datetime.UTC) + n * DAY,
        lambda n: n * DAY,
    ),
    Clock(pa.date32(), lambda n: NOON.date() + n * DAY, lambda n: n * DAY),
    Clock(pa.duration("s"), lambda n: n * DAY, lambda n: n * DAY),
]

WORDS = ["", "x", None, "ß", "long " * 9]


def schema_of(clock: Clock, key: Any = None) -> Any:
    columns = {"stream": pa.int64(), "number": pa.int32(), "time": clock.type}
    columns |= {"value": pa.int16(), "real": pa.float64(), "word": key or pa.string()}
    return pa.schema([*columns.items(), ("maybe", pa.int64())])


def row_of(row: Row, clock: Clock) -> dict[str, Any]:
    """Make a dictionary of a model's row."""
    return {
        "stream": row.stream,
        "number": row.number,
        "time": clock.time(row.time),
        "value": row.value,
        "real": [0.0, -0.0, 0.1, math.inf][row.value],
        "word": WORDS[(row.value + row.number) % 5],
        "maybe": None if row.number % 3 == 0 else row.value,
    }


class Case(NamedTuple):
    """Streams as rows of the model, as dictionaries, and cut into batches, as they arrive."""

    model: list[list[Any]]
    rows: list[tuple[str, list[Any]]]
    batches: list[tuple[str, list[Any]]]
    schemas: tuple[Any, Any] | None
    """None: each stream has had a batch."""


@st.composite
def cases(draw: st.DrawFn, clock: Clock, count: int = 2, key: Any = None) -> Case:
    """Draw streams, how they are cut, and how the pieces arrive among each other."""
    schema = schema_of(clock, key)
    model: list[list[Any]] = draw(streams(count))
    left = [list(stream) for stream in model]
    cut: list[tuple[str, list[Any], list[Any]]] = []
    while any(left):
        at = draw(st.sampled_from([n for n, stream in enumerate(left) if stream]))
        size = draw(st.integers(1, 9))
        if isinstance(left[at][0], Watermark):
            mark = Watermark(clock.time(left[at].pop(0).time))
            cut.append((NAMES[at], [mark], [mark]))
            continue
        rows: list[Any] = []
        while left[at] and isinstance(left[at][0], Row) and len(rows) < size:
            rows.append(row_of(left[at].pop(0), clock))
        cut.append((NAMES[at], rows, [pa.RecordBatch.from_pylist(rows, schema)]))
    if draw(st.booleans()):  # a batch without rows
        cut.insert(0, ("a", [], [pa.RecordBatch.from_pylist([], schema)]))
    batches = [(e, some) for e, _, some in cut]
    had = {e for e, some in batches if isinstance(some[0], pa.RecordBatch)}
    told = [name not in had or draw(st.booleans()) for name in NAMES[:2]]
    schemas = (schema if told[0] else None, schema if told[1] else None)
    return Case(model, [(e, rows) for e, rows, _ in cut], batches, schemas if any(told) else None)


def rows_in(batches: list[Any]) -> list[Any]:
    return [row for batch in batches for row in batch.to_pylist()]


def check_sizes(batches: list[Any], n: int) -> None:
    assert all(len(batch) == n for batch in batches[:-1])
    assert all(0 < len(batch) <= n for batch in batches[-1:])


def beside(left: Any, right: Any) -> dict[str, Any]:
    """Put a row of each stream side by side; one of them may be None."""
    lacking = dict.fromkeys(schema_of(CLOCKS[0]).names)
    mine, other = left or lacking, right or lacking
    return {**mine, **{f"{name}_right": value for name, value in other.items()}}


def shown(rows: list[Any]) -> list[Any]:
    """Make rows comparable, with 0.0 and -0.0 apart."""
    return [{n: str(x) if isinstance(x, float) else x for n, x in row.items()} for row in rows]


class Choice(NamedTuple):
    """A predicate for batches, for rows, and for those of the model."""

    where: Any
    of_rows: Any
    of_model: Callable[[Row, Row], object] | None = None


def same(*terms: Any) -> Choice:
    where = terms[0]
    for term in terms[1:]:
        where = where & term
    return Choice(where, where)


def closer(row: dict[str, Any], batch: Any) -> Any:
    return np.abs(batch["value"].to_numpy() - row["value"]) <= 1


CHOICES = [
    Choice(None, None, lambda a, b: True),
    Choice(Equal("value"), Equal("value"), lambda a, b: a.value == b.value),
    Choice(Band("value", 1), Band("value", 1), lambda a, b: abs(a.value - b.value) <= 1),
    same(Band("number", 2.5) & Equal("value")),
    same(Equal("word")),
    same(Equal("word"), Band("value", 2), Equal("maybe"), Band("number", 7)),
    same(Equal("maybe", "value")),
    same(Equal("maybe"), Equal("value", "maybe")),
    same(Band("maybe", 1)),
    same(Band("maybe", 1, "value") & Equal("word") & Band("number", 3)),
    same(Equal("real")),
    same(Band("real", 0.1)),
    Choice(closer, lambda a, b: abs(a["value"] - b["value"]) <= 1),
    Choice(
        (
            lambda row, batch: pc.less(row["maybe"], batch["value"]),
            lambda row, batch: pc.less(batch["maybe"], row["value"]),
        ),
        lambda a, b: a["maybe"] is not None and a["maybe"] < b["value"],
    ),
]

options = st.fixed_dictionaries(
    {
        "how": st.sampled_from(HOWS),
        "rule": st.sampled_from(["strict", "three-step"]),
        "lanes": st.sampled_from([1, 1, 2, 5]),
    }
)
windows = st.one_of(
    st.builds(lambda n: {"within": n}, st.sampled_from([0, 1, 4, 100, (0, 4), (3, 0), (1, 100)])),
    st.builds(lambda n: {"rows": n}, st.sampled_from([1, 2, 50, 10**9])),
)
sizes = st.sampled_from([1, 2, 1_000])


def joins(
    choice: Choice, clock: Clock, n: int, delay_threshold: int, schemas: Any, **options: Any
) -> tuple[Any, Any]:
    """Make the two joins that are to give the same."""
    a, b = entry("a"), entry("b")
    if "within" in options:
        options["within"] = length_on(clock, options["within"])
    if delay_threshold:
        options["delay_threshold"] = clock.length(delay_threshold)
    batches = a.join_batches(
        b, by="time", where=choice.where, n=n, late="side", schemas=schemas, **options
    )
    combine = None if options["how"] in ("semi", "anti") else beside
    rows = a.join(b, by="time", where=choice.of_rows, combine=combine, late="side", **options)
    return batches, rows


def length_on(clock: Clock, within: Any) -> Any:
    """Return a length, or a pair, as the clock has them."""
    if isinstance(within, tuple):
        return tuple(map(clock.length, within))
    return clock.length(within)


def both(stream: Stream[Any]) -> Graph[Any]:
    return Graph(stream.collect(name="all"), stream.side("late").collect(name="late"))


def batch(**columns: Any) -> Any:
    return pa.record_batch(columns)
