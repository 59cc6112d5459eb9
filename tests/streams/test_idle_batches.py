"""Silent streams of Arrow batches: the same rows leave, or are late, as with rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import Graph, GraphError, Stream, Watermark, entry
from callboard.testing import ManualSystem

pa = pytest.importorskip("pyarrow")

NAMES = ("a", "b", "c")
SCHEMA = pa.schema([("time", pa.int64()), ("number", pa.int64())])

# What comes: a stream, the steps of its times from row to row, whether the last of them is a
# watermark, and the seconds until the next.
comings = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.lists(st.integers(-1, 3), max_size=4),
        st.booleans(),
        st.sampled_from([0, 1, 3, 6]),
    ),
    max_size=12,
)


def batch(rows: list[dict[str, Any]]) -> Any:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def rows_of(given: list[Any]) -> list[Any]:
    return [row for each in given for row in each.to_pylist()]


def outcome(stream: Stream[Any], come: list[Any], seed: int, as_batches: bool) -> Any:
    graph = Graph(stream.collect(name="out"), stream.side("late").collect(name="late"))
    times, number = dict.fromkeys(NAMES, 0), 0
    entries = [name for name in NAMES if name in graph.entries]
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=2)
        for name, steps, ends_in_watermark, seconds in come:
            rows, marks = [], []
            for at, step in enumerate(steps):
                times[name] = max(0, times[name] + step)
                if ends_in_watermark and at == len(steps) - 1:
                    marks = [Watermark(times[name])]
                else:
                    rows.append({"time": times[name], "number": number})
                    number += 1
            if name in entries:
                batches = [batch(rows)] if rows else []  # one without rows would be heard, too
                run.send(name, [*(batches if as_batches else rows), *marks])
            system.advance(seconds)
        out = run.finish()
    return {name: rows_of(given) for name, given in out.items()} if as_batches else out


@given(comings, st.integers(0, 1_000), st.sampled_from([0, 2]))
def test_a_merge_lets_go_what_a_merge_of_rows_does(
    come: list[Any], seed: int, delay_threshold: int
) -> None:
    first, *others = map(entry, NAMES)
    options: dict[str, Any] = {
        "by": "time",
        "delay_threshold": delay_threshold,
        "late": "side",
        "idle_timeout": 4,
    }
    expected = outcome(first.merge(*others, **options), come, seed, False)
    merged = first.merge_batches(*others, n=1, **options)
    assert outcome(merged, come, seed, True) == expected


@given(
    comings, st.integers(0, 1_000), st.sampled_from(["semi", "anti"]), st.sampled_from([1, 2])
)  # fmt: skip
def test_a_join_leaves_as_a_join_of_rows(come: list[Any], seed: int, how: Any, lanes: int) -> None:
    left, right = entry("a"), entry("b")
    options: dict[str, Any] = {"by": "time", "within": 2, "late": "side", "idle_timeout": 4}
    expected = outcome(left.join(right, how=how, **options), come, seed, False)
    joined = left.join_batches(right, how=how, n=1, lanes=lanes, **options)
    assert outcome(joined, come, seed, True) == expected


def test_rows_leave_while_the_other_stream_is_silent(manual: ManualSystem) -> None:
    seen: list[Any] = []
    stream = entry("a").join_batches(
        entry("b"), by="time", within=2, how="left", n=1, idle_timeout=4
    )
    rows = [{"time": time, "number": time} for time in (1, 2, 9)]
    run = manual.run(stream.to(lambda each: seen.extend(each.to_pylist())))
    run.send("b", [batch([])])  # tells its columns
    run.send("a", [batch(rows)])
    manual.advance(3)
    assert seen == []
    manual.advance(2)
    assert [row["time"] for row in seen] == [1, 2]
    run.send("a", [batch([{"time": 12, "number": 12}])])
    manual.run_until_idle()
    assert [row["time"] for row in seen] == [1, 2, 9]
    run.finish()


def test_a_description_says_when_a_stream_is_idle() -> None:
    stream = entry("a").merge_batches(entry("b"), by="time", idle_timeout=4)
    assert "by 'time', idle after 4 s, batches of 8,192 rows" in stream.collect().describe()


@pytest.mark.parametrize("idle_timeout", [0, -1, "4", float("nan")])
def test_a_wrong_idle_time_is_refused(idle_timeout: Any) -> None:
    with pytest.raises(GraphError, match="idle_timeout"):
        entry("a").merge_batches(entry("b"), by="time", idle_timeout=idle_timeout)
