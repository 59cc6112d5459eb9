"""Snapshots at random cuts: outputs before and after are those of the run without a cut."""

from __future__ import annotations

import struct
import zlib
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.frequency import Frequent
from callboard.scheduling.flow.threading_models import MODELS
from callboard.streams import (
    Band,
    Equal,
    Graph,
    SessionWindow,
    SlidingWindow,
    Snapshot,
    SnapshotError,
    Stream,
    TumblingWindow,
    Watermark,
    entry,
)
from callboard.testing import ManualSystem
from tests.streams.cutting import run_in_parts
from tests.streams.functions import Functions, Running, number
from tests.streams.outcomes import Way, in_sequence, outcome_of
from tests.streams.random_graphs import Case, cases, fragile_chains, rows
from tests.streams.shapes import Chain

cuts = st.lists(st.integers(0, 60), min_size=1, max_size=3)
options = st.lists(
    st.fixed_dictionaries(
        {
            "threading": st.sampled_from(MODELS),
            "batch_size": st.sampled_from([1, 2, 7, 256]),
            "window": st.sampled_from([1, 2, 16]),
        }
    ),
    min_size=2,
    max_size=2,
)
seeds = st.integers(0, 10_000)
of_many = settings(max_examples=max(5, settings().max_examples // 3))  # tests that are alike


@given(cases(), cuts, options, seeds)
def test_in_any_interleaving_a_run_goes_on_where_it_was_cut(
    case: Case, cuts: list[int], options: list[dict[str, Any]], seed: int
) -> None:
    expected = case.graph.run_sequentially(case.inputs)
    got = run_in_parts(
        case.graph, case.inputs, cuts, lambda part: ManualSystem(seed + part), options
    )
    assert got == expected


@given(cases(awaits=True), cuts, options, st.integers(1, 3))
def test_on_threads_a_run_goes_on_where_it_was_cut(
    case: Case, cuts: list[int], options: list[dict[str, Any]], workers: int
) -> None:
    expected = case.graph.run_sequentially(case.inputs)
    got = run_in_parts(
        case.graph,
        case.inputs,
        cuts,
        lambda part: ActorSystem(workers=(workers + part) % 3 + 1),
        options,
    )
    assert got == expected


def in_parts(rows: list[Any], cuts: list[int], options: list[dict[str, Any]], seed: int) -> Way:
    return lambda graph: run_in_parts(
        graph, [("rows", rows)], cuts, lambda part: ManualSystem(seed + part), options
    )


@given(fragile_chains(), rows, cuts, options, seeds)
def test_a_run_that_was_cut_fails_at_the_same_input_after_the_same_outputs(
    chain: Chain, rows: list[Any], cuts: list[int], options: list[dict[str, Any]], seed: int
) -> None:
    expected = outcome_of(chain, in_sequence(rows, 256))
    assert outcome_of(chain, in_parts(rows, cuts, options, seed)) == expected


# --- operators that the random graphs have not, or seldom -----------------------------------------


def time_of(row: Any) -> Any:
    return row[0]


def value_of(row: Any) -> Any:
    return row[1]


def key_of(row: Any) -> Any:
    return row[1] % 3


def both(left: Stream[Any], right: Stream[Any]) -> list[Stream[Any]]:
    """Make streams with a state of each kind that is read of two entries."""
    return [
        left.merge(right, by=time_of, delay_threshold=5),
        left.union(right, by=time_of),
        left.zip(right),
        left.join(right, by=time_of, within=9),
        left.join(right, by=time_of, within=(2, 9), where=Equal(1), how="outer"),
        left.join(right, by=time_of, within=9, where=Band(1, 2), how="left"),
        left.join(right, by=time_of, rows=4, where=Band(1, 2), how="anti"),
        left.join(right, by=time_of, rows=4, where=Equal(key_of) & Band(1, 2), lanes=3),
        left.join(right, by=time_of, within=9, rule="three-step", where=Band(1, 2), lanes=2),
        left.join(
            right,
            by=time_of,
            within=9,
            delay_threshold=4,
            where=lambda a, b: a[1] <= b[1],
            how="semi",
        ),
        left.join_asof(right, by=time_of),
        left.join_asof(right, by=time_of, where=Equal(key_of), nearest="either", tolerance=6),
        left.join_asof(
            right, by=time_of, nearest="after", delay_threshold=3, combine=lambda a, b: (b, a)
        ),
        left.join_asof(right, by=time_of, where=Equal(key_of), nearest="after"),
    ]


timed = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 40), st.integers(0, 5)),
        st.tuples(st.integers(0, 40), st.integers(0, 5)),
        st.integers(0, 40).map(Watermark),
    ),
    max_size=25,
)
arrivals = st.lists(st.tuples(st.sampled_from(["left", "right"]), timed), max_size=6)


def in_order(inputs: list[tuple[str, list[Any]]]) -> list[tuple[str, list[Any]]]:
    """Let rows come in order of time, so that few are late."""
    found = [
        (*row, name)
        for name, arriving in inputs
        for row in arriving
        if not isinstance(row, Watermark)
    ]
    return [(name, [(time, value)]) for time, value, name in sorted(found)]


@of_many
@pytest.mark.parametrize("which", range(len(both(entry("left"), entry("right")))))
@given(inputs=arrivals, is_in_order=st.booleans(), cuts=cuts, options=options, seed=seeds)
def test_a_join_or_merge_goes_on_where_it_was_cut(
    which: int,
    inputs: list[tuple[str, list[Any]]],
    is_in_order: bool,
    cuts: list[int],
    options: list[dict[str, Any]],
    seed: int,
) -> None:
    if is_in_order:
        inputs = in_order(inputs)
    graph = both(entry("left"), entry("right"))[which].collect()
    expected = graph.run_sequentially(inputs)
    got = run_in_parts(graph, inputs, cuts, lambda part: ManualSystem(seed + part), options)
    assert got == expected


BEGIN = datetime(2026, 10, 24, 12, tzinfo=ZoneInfo("Europe/Paris"))


def moment_of(row: int) -> datetime:
    return BEGIN + timedelta(minutes=7 * (row % 400))


def in_any_order(frequent: Frequent) -> list[Any]:
    """Sort the keys: of equally frequent ones the one whose counter is older is first."""
    return [sorted(frequent.guaranteed), sorted(frequent.possible)]


def single(stream: Stream[int]) -> list[Stream[Any]]:
    """Make streams with a state, of numbers."""
    by_moment = stream.key_by(lambda row: (moment_of(row), row % 3))
    by_number = stream.key_by(lambda row: row % 7, partition=[2, 5])
    marked = stream.watermarks(moment_of, delay_threshold=timedelta(hours=1))
    return [
        by_moment.count(),
        by_number.scan([], lambda seen, row: [*seen, row][-3:]),
        by_number.scan((0, 0), lambda pair, row: (pair[0] + 1, pair[1] + row)),
        stream.scan({"all": 0}, lambda state, row: {"all": state["all"] + row}),
        stream.map(lambda row: row % 4).frequent(epsilon=0.2, every=5).map(in_any_order),
        by_number.frequent(lambda row: moment_of(row % 3), epsilon=0.3).map(
            lambda pair: sum(map(len, pair[1]))
        ),
        stream.distinct(moment_of),
        stream.top_k(3, moment_of, every=4),
        stream.sample(every=3),
        stream.sample(fraction=0.5, seed=3).batch(4),
        stream.window(SlidingWindow(5, 2), sum).top_k(2, value_of),
        marked.key_by(number).window(SessionWindow(timedelta(hours=2), by=moment_of)),
        marked.window(TumblingWindow(days=1, zone="Europe/Paris", by=moment_of), late="include"),
        marked.window(
            SlidingWindow(timedelta(hours=3), timedelta(hours=1), by=moment_of, origin=BEGIN)
        ),
        by_number.window(SessionWindow(30, by=number, ordered=True)),
        stream.stateful(Running, Functions(2)),
        by_number.stateful(Running, Functions(2)),
    ]


@of_many
@pytest.mark.parametrize("which", range(len(single(entry("rows")))))
@given(rows=st.lists(st.integers(0, 1000), max_size=60), cuts=cuts, options=options, seed=seeds)
def test_each_operator_with_a_state_goes_on_where_it_was_cut(
    which: int, rows: list[int], cuts: list[int], options: list[dict[str, Any]], seed: int
) -> None:
    graph = single(entry("rows"))[which].collect()
    expected = graph.run_sequentially({"rows": rows})
    arriving = [("rows", rows)]
    got = run_in_parts(graph, arriving, cuts, lambda part: ManualSystem(seed + part), options)
    assert got == expected


@given(skew=st.integers(1, 30), cuts=cuts, workers=st.integers(1, 3))
def test_a_key_with_most_rows_keeps_its_state(skew: int, cuts: list[int], workers: int) -> None:
    rows = [n if n % skew == 0 else 0 for n in range(200)]
    graph = (
        entry("rows")
        .key_by(lambda row: row, partitions=5)
        .stateful(Running, Functions(2))
        .key_by(number)
        .count()
        .collect()
    )
    expected = graph.run_sequentially({"rows": rows})
    spread = [3 * cut for cut in cuts]
    got = run_in_parts(
        graph, [("rows", rows)], spread, lambda part: ActorSystem(workers=workers), [{}]
    )
    assert got == expected


def test_outputs_that_were_taken_are_not_in_a_snapshot_and_the_others_are() -> None:
    graph = entry("rows").count().collect()
    with ManualSystem() as system:
        run = system.run(graph)
        run.send("rows", ["a", "b", "c"])
        results = run.results()
        run._work.waiting.for_all()
        assert next(results) == 1
        snapshot = run.snapshot()
        assert results.take() == [2, 3]
        run.cancel()
    with ManualSystem() as system:
        run = system.run(graph, restore=snapshot)
        run.send("rows", ["d"])
        assert run.finish() == [2, 3, 4]


def test_a_run_goes_on_behind_its_own_snapshot() -> None:
    graph = entry("rows").count().collect()
    with ActorSystem() as system:
        run = system.run(graph)
        run.send("rows", ["a", "b"])
        snapshot = run.snapshot()
        assert repr(snapshot) == "<Snapshot behind 2 rows of 'rows'>"
        run.send("rows", ["c"])
        assert run.finish() == [1, 2, 3]
        for _ in range(2):
            run = system.run(graph, restore=snapshot)
            assert run.position == {"rows": 2}
            run.send("rows", ["d"])
            assert run.finish() == [1, 2, 3]


def test_values_keep_their_types_and_zones() -> None:
    paris = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris"))
    given = [(1, "a"), frozenset({2}), paris, {"k": [1.5, None]}, 2**70, b"bytes"]
    graph: Graph[Any] = entry("rows").batch(len(given) + 1).collect()
    with ManualSystem() as system:
        run = system.run(graph)
        run.send("rows", given)
        data = run.snapshot().to_bytes()
        run.cancel()
    with ManualSystem() as system:
        run = system.run(graph, restore=Snapshot.from_bytes(data))
        ((*got,),) = run.finish()
    assert got == given
    assert [type(each) for each in got] == [type(each) for each in given]
    assert (got[2].fold, got[2].tzinfo) == (1, paris.tzinfo)


@pytest.mark.parametrize("stream", [b"\xff", b"\2"])
def test_a_wrong_row_in_a_stream_of_a_snapshot_is_an_error(stream: bytes) -> None:
    """The checksum fits. A join took -1 for an index, and ended the process."""
    rows, others = entry("rows"), entry("others")
    head = struct.Struct("!10sHIQ")
    for graph in (
        rows.join(others, by=lambda row: row, within=4).collect(),
        rows.merge(others, by=lambda row: row).collect(),
    ):
        with ManualSystem() as system:
            run = system.run(graph)
            run.send("rows", [1, 2, 3])
            run.send("others", [1, 9])
            data = run.snapshot().to_bytes()
            run.cancel()
        positions, steps, kept = msgpack.unpackb(data[head.size :])
        columns = kept[0] if kept else steps[0][6][0]
        at = 0 if kept else 1  # where its stream stands
        assert set(columns[at][2:]) <= {0, 1}
        columns[at] = columns[at][:-1] + stream
        body = msgpack.packb([positions, steps, kept])
        broken = head.pack(b"callboard\n", 3, zlib.crc32(body, 3), len(body)) + body
        with ManualSystem() as system, pytest.raises(SnapshotError, match="stream"):
            system.run(graph, restore=Snapshot.from_bytes(broken))
