"""The fate of a row at which an operator raises."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest

from callboard import ActorSystem
from callboard.streams import (
    FailedRow,
    Graph,
    RowCounts,
    SessionWindow,
    Stream,
    StreamError,
    TumblingWindow,
    Watermark,
    entry,
)
from callboard.testing import ManualSystem


def half(n: int) -> float:
    if n % 5 == 4:
        raise ValueError(f"{n} is refused")
    return n / 2


def test_an_error_names_the_operator_the_input_and_its_serial_number() -> None:
    graph = entry("rows").filter(lambda n: n % 2 == 0).map(half).collect()
    for size in (1, 2, 100):
        with pytest.raises(StreamError, match=r"operator 'half' failed at input 2, 4") as caught:
            graph.run_sequentially({"rows": range(9)}, batch_size=size)
        error = caught.value
        assert (error.operator, error.serial, error.row) == ("half", 2, 4)
        assert isinstance(error.__cause__, ValueError)


def test_outputs_before_the_failure_have_come_through() -> None:
    seen: list[float] = []
    with pytest.raises(StreamError):
        entry("rows").map(half).to(seen.append).run_sequentially({"rows": range(9)})
    assert seen == [0, 0.5, 1, 1.5]


def test_the_first_of_two_failures_in_a_batch_ends_the_run_as_row_by_row() -> None:
    def refuse_two(n: float) -> float:
        return 1 / (n - 1.0)

    graph = entry("rows").map(half).map(refuse_two).collect()
    for size in (1, 100):
        with pytest.raises(StreamError, match=r"operator 'refuse_two' failed at input 2, 1\.0"):
            graph.run_sequentially({"rows": range(9)}, batch_size=size)


def test_a_failed_stream_has_no_end() -> None:
    seen: list[Any] = []
    with pytest.raises(StreamError):
        entry("rows").map(half).batch(3).to(seen.append).run_sequentially({"rows": range(9)})
    assert seen == [[0, 0.5, 1]]


def test_a_skipped_input_is_counted_and_those_after_it_go_on() -> None:
    counts = RowCounts()
    graph = entry("rows").map(half, errors="skip").collect()
    assert graph.run_sequentially({"rows": range(6)}, row_counts=counts) == [0, 0.5, 1, 1.5, 2.5]
    assert counts.skips == {"half": 1}
    (failure,) = counts.failures
    assert (failure.operator, failure.serial, failure.row) == ("half", 4, 4)


def test_a_tally_keeps_the_first_failures_and_counts_them_all() -> None:
    counts = RowCounts(kept=2)
    entry("rows").map(half, errors="skip").collect().run_sequentially(
        {"rows": range(50)}, row_counts=counts
    )
    assert [failure.row for failure in counts.failures] == [4, 9]
    assert counts.skips["half"] == 10


def test_failures_can_go_to_a_side_output_in_their_places() -> None:
    stream = entry("rows").map(half, errors="side")
    graph = stream.union(stream.failures).collect()
    outputs = graph.run_sequentially({"rows": range(6)})
    assert [type(each) for each in outputs] == [float] * 4 + [FailedRow, float]
    assert str(getattr(outputs[4], "error", None)) == "4 is refused"


def two_then_raise(n: int) -> Iterable[int]:
    yield n
    if n == 1:
        raise ValueError
    yield n


def test_an_input_that_failed_gives_nothing_though_it_had_begun_to() -> None:
    graph = entry("rows").flat_map(two_then_raise, errors="skip").collect()
    assert graph.run_sequentially({"rows": [0, 1, 2]}) == [0, 0, 2, 2]


class Picky:
    def __init__(self) -> None:
        self.seen: list[int] = []

    def receive(self, n: int) -> Sequence[int]:
        half(n)
        self.seen.append(n)
        return [n]

    def on_watermark(self, time: int) -> Sequence[int]:
        half(time)
        return [time]

    def on_final(self) -> Sequence[Any]:
        half(len(self.seen))
        return [self.seen]


def test_an_object_lives_on_after_an_input_was_skipped() -> None:
    graph = entry("rows").stateful(Picky, errors="skip").collect()
    assert graph.run_sequentially({"rows": [1, 4, 2, 9, 3]}) == [1, 2, 3, [1, 2, 3]]


def test_hooks_may_fail_as_well() -> None:
    counts = RowCounts()
    graph = entry("rows").stateful(Picky, errors="skip").collect()
    rows = [0, Watermark(14), 1, Watermark(15), 2, 3]
    assert graph.run_sequentially({"rows": rows}, row_counts=counts) == [0, 1, 15, 2, 3]
    assert [(each.serial, each.row) for each in counts.failures] == [(1, Watermark(14)), (6, None)]


def test_a_key_function_fails_as_the_operator_that_follows() -> None:
    stream = entry("rows").key_by(half).count(name="halves", errors="skip")
    counts = RowCounts()
    assert stream.collect().run_sequentially({"rows": [2, 4, 2]}, row_counts=counts) == [
        (1, 1),
        (1, 2),
    ]
    assert counts.skips == {"halves": 1}


@pytest.mark.parametrize("partitions", [None, 3])
def test_a_key_that_cannot_be_hashed_is_an_error_of_its_row(partitions: int | None) -> None:
    graph = entry("rows").key_by(lambda row: row, partitions=partitions).count().collect()
    rows = [1, (2, [3])]
    for run in (run_alone, run_by_parts):
        with pytest.raises(StreamError, match=r"'count' failed at input 1, \(2, \[3\]\)") as caught:
            run(graph, rows)
        text = r"the function of key_by\(\) must return hashable keys, .* got \(2, \[3\]\)"
        assert re.search(text, str(caught.value.__cause__))


def run_alone(graph: Graph[Any], rows: list[Any]) -> None:
    graph.run_sequentially({"rows": rows})


def run_by_parts(graph: Graph[Any], rows: list[Any]) -> None:
    with ActorSystem(workers=2) as system, system.run(graph) as run:
        run.send("rows", rows)


def test_a_function_that_meets_a_value_without_a_hash_raises_its_own_error() -> None:
    keyed: Any = entry("rows").key_by(abs)
    graph = keyed.scan({}, lambda seen, row: {[row]: seen}).collect()
    with pytest.raises(StreamError) as caught:
        graph.run_sequentially({"rows": [1]})
    assert str(caught.value.__cause__) == "unhashable type: 'list'"


@pytest.mark.parametrize("time", [None, "noon", [1], float("nan")])
@pytest.mark.parametrize(
    "window",
    [
        lambda rows, by: rows.window(TumblingWindow(10, by=by), len),
        lambda rows, by: rows.window(SessionWindow(10, by), len),
        lambda rows, by: rows.window(TumblingWindow(10, by=by, ordered=True), len),
        lambda rows, by: rows.watermarks(by, delay_threshold=1),
    ],
)
def test_a_row_with_a_wrong_time_is_named(window: Any, time: Any) -> None:
    graph = window(entry("rows"), lambda row: row[0]).collect()
    with pytest.raises(StreamError, match=r"failed at input 2, \(") as caught:
        graph.run_sequentially({"rows": [(1, 1), (1, 2), (time, 3)]})
    assert str(caught.value.__cause__) == f"the time of a row must be a point in time, got {time!r}"


class ManyPicky:
    def receive_many(self, rows: Sequence[int]) -> list[float]:
        return [half(row) for row in rows]


def test_if_many_rows_fail_together_each_is_skipped() -> None:
    counts = RowCounts()
    graph = entry("rows").stateful(ManyPicky, errors="skip").collect()
    assert graph.run_sequentially({"rows": range(6)}, batch_size=3, row_counts=counts) == [
        0,
        0.5,
        1,
    ]
    assert [failure.row for failure in counts.failures] == [3, 4, 5]


def test_a_sink_fails_as_any_operator() -> None:
    graph = entry("rows").to(half, name="out")
    with pytest.raises(StreamError, match="operator 'out' failed at input 4, 4"):
        graph.run_sequentially({"rows": range(6)})
    counts = RowCounts()
    entry("rows").to(half, errors="skip").run_sequentially({"rows": range(6)}, row_counts=counts)
    assert counts.skips == {"half": 1}


def test_an_unknown_side_output_is_an_error_of_the_row() -> None:
    from callboard.streams import SideOutput

    def astray(n: int) -> list[Any]:
        return [n, SideOutput("elsewhere", n)]

    stream: Stream[Any] = entry("rows").flat_map(astray, sides=["here"])
    graph = stream.union(stream.side("here")).collect()
    with pytest.raises(StreamError, match="operator 'astray' failed at input 0") as caught:
        graph.run_sequentially({"rows": [1]})
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_side_output_has_a_name() -> None:
    from callboard.streams import SideOutput

    for name in (None, 1, b"late"):
        with pytest.raises(TypeError, match="expected str"):
            SideOutput(cast(Any, name), 1)


def test_an_interrupt_stops_a_run_as_it_is() -> None:
    def stop(row: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        entry("rows").map(stop, errors="skip").collect().run_sequentially({"rows": [1]})


def test_an_exit_ends_a_run_by_parts_and_is_the_cause_of_its_error() -> None:
    class Stop:
        def receive(self, row: int) -> list[int]:
            raise SystemExit(row)

    graph = entry("rows").key_by(lambda row: row, partitions=4).stateful(Stop).collect()
    with ManualSystem() as system:
        run = system.run(graph)
        run.send("rows", [1, 2])
        with pytest.raises(StreamError, match="operator 'Stop' failed") as caught:
            run.finish(timeout=60)
    assert isinstance(caught.value.__cause__, SystemExit)


def refused_inside(n: int) -> float:
    (result,) = entry("inner").map(half).collect().run_sequentially({"inner": [n]})
    assert isinstance(result, float)
    return result


def test_the_failure_of_a_run_within_an_operator_is_that_operators() -> None:
    stream = entry("rows")
    with pytest.raises(StreamError, match="'refused_inside' failed at input 4, 4") as caught:
        stream.map(refused_inside).collect().run_sequentially({"rows": range(6)})
    assert str(caught.value.__cause__) == "operator 'half' failed at input 0, 4"
    counts = RowCounts()
    graph = stream.map(refused_inside, errors="skip").collect()
    assert graph.run_sequentially({"rows": range(6)}, row_counts=counts) == [0, 0.5, 1, 1.5, 2.5]
    assert counts.skips == {"refused_inside": 1}


def test_an_error_at_the_end_of_the_stream_names_no_row() -> None:
    graph = entry("rows").stateful(Picky, name="picky").collect()
    with pytest.raises(StreamError) as caught:
        graph.run_sequentially({"rows": [1, 2, 3, 0]})
    assert str(caught.value) == "operator 'picky' failed at the end of the stream, after 4 inputs"


def test_a_stateless_operator_behind_key_by_is_refused_with_a_hint() -> None:
    keyed: Any = entry("rows").key_by(abs)
    with pytest.raises(AttributeError, match=r"a keyed stream has no 'map': .* before key_by\(\)"):
        keyed.map(abs)
    assert not hasattr(keyed, "_nothing")
