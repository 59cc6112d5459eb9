"""Keyed operators behind others in worker processes: rows pass from process to process."""

from __future__ import annotations

import enum
import os
import threading
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import (
    FailedRow,
    Graph,
    ProcessLost,
    RowCounts,
    StreamError,
    TumblingWindow,
    Watermark,
    entry,
)
from tests.streams.cutting import run_in_parts
from tests.streams.functions import Functions
from tests.streams.in_processes import Picky, process_of, run, tripled
from tests.streams.in_processes import options as run_options
from tests.streams.outcomes import in_sequence, outcome_of
from tests.streams.random_graphs import ROW_BY_ROW, STATEFUL, ops, rows
from tests.streams.shapes import Chain
from tests.streams.test_process_states import (
    Summing,
    add,
    count_and_name_process,
    kill_processes,
    remainder,
)
from tests.streams.test_random_runs import counted

pytestmark = pytest.mark.usefixtures("importable")

of_few = settings(
    max_examples=max(10, settings().max_examples // 2),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def system(systems: list[ActorSystem]) -> ActorSystem:
    """A system with two worker processes."""
    return systems[0]


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Point:
    x: int
    name: str


def kinds_of_keys(number: int) -> list[Any]:
    """Return equal keys for equal numbers, of many types."""
    text = f"key {number}" + "é€" * (number % 3)
    zone = timezone(timedelta(hours=number % 5))
    return [
        number,
        text,
        text.encode(),
        float(number),
        number % 2 == 0,
        None,
        (text, None, (number, b"")),
        [*Colour][number % 2],
        date(2020, 1, 1 + number % 20),
        datetime(2020, 1, 1, number % 24, tzinfo=zone),
        (text, datetime(2020, 1, 1, 5, tzinfo=zone)),
        frozenset({text}),
        Point(number, text),
        Decimal(number),
        Colour,
    ]


@dataclass(frozen=True)
class Keys(Functions):
    """The same functions, with keys of any type."""

    kind: int = 0

    def key(self, row: Any) -> Any:
        return kinds_of_keys(super().key(row))[self.kind]


@st.composite
def shuffles(draw: st.DrawFn, *, fragile: bool) -> Chain:
    """A keyed operator behind one to three stateless ones."""
    fails = [0, 0, 7, 11] if fragile else [0]
    before = [
        replace(
            op,
            errors=errors,
            functions=Functions(
                op.functions.n, draw(st.sampled_from([0, 5] if errors == "skip" else fails))
            ),
        )
        for op in draw(st.lists(ops(ROW_BY_ROW), min_size=1, max_size=3))
        for errors in [draw(st.sampled_from(["fail", "skip"]))]
    ]
    keyed = draw(ops([kind for kind in STATEFUL if kind != "count"]))
    errors = draw(st.sampled_from(["fail", "skip", "side"]))
    may_fail = st.sampled_from(fails if errors == "fail" else [0, 5, 7])
    keys = Keys(draw(st.integers(1, 12)), draw(may_fail), draw(st.integers(0, 14)))
    keyed = replace(
        keyed,
        errors=errors,
        functions=Functions(keyed.functions.n, draw(may_fail)),
        key=keys,
        partitions=draw(st.integers(1, 9)),
        partition="hash" if keys.kind else keyed.partition,
    )
    return Chain((*before, keyed))


@of_few
@given(shuffles(fragile=True), rows, run_options, st.sampled_from([0, 2, 3]))
def test_random_shuffles_end_as_a_sequential_run(
    systems: list[ActorSystem], chain: Chain, rows: list[Any], options: dict[str, Any], which: int
) -> None:
    def in_processes(graph: Graph[Any]) -> None:
        made = systems[which].run(graph, **options)
        for row in rows:  # one by one, so that some are sent after the failure
            made.send("rows", [row], timeout=60)
        made.finish(timeout=60)

    assert outcome_of(chain, in_processes) == outcome_of(chain, in_sequence(rows, 256))


@of_few
@given(shuffles(fragile=False), rows, run_options, st.booleans(), st.integers(0, 3))
def test_random_shuffles_give_and_count_what_a_sequential_run_does(
    systems: list[ActorSystem],
    chain: Chain,
    rows: list[Any],
    options: dict[str, Any],
    joined: bool,
    which: int,
) -> None:
    source: Any = entry("rows")
    stream = chain.add_to(source)
    if joined:  # with lineages
        stream = stream.union(source.map(tripled))
    graph = stream.collect()
    counts = RowCounts(kept=10_000)
    expected = graph.run_sequentially({"rows": rows}, row_counts=counts)
    made = systems[which].run(graph, **options)
    made.row_counts.kept = 10_000
    made.send("rows", rows, timeout=60)
    assert made.finish(timeout=60) == expected
    assert counted(made.row_counts) == counted(counts)


@of_few
@given(
    shuffles(fragile=False),
    rows,
    st.lists(st.integers(0, 40), min_size=1, max_size=3),
    st.lists(run_options, min_size=2, max_size=2),
    st.integers(0, 3),
)
def test_random_shuffles_go_on_from_snapshots_with_any_number_of_processes(
    systems: list[ActorSystem],
    chain: Chain,
    rows: list[Any],
    cuts: list[int],
    options: list[dict[str, Any]],
    first: int,
) -> None:
    keys = chain.links[-1].key  # type: ignore[union-attr]
    if keys.kind > 6:  # type: ignore[union-attr]
        keys = replace(keys, kind=1)  # type: ignore[type-var]  # snapshots take no others
    chain = Chain((*chain.links[:-1], replace(chain.links[-1], key=keys)))  # type: ignore[arg-type]
    graph = chain.add_to(entry("rows")).collect()
    got = run_in_parts(
        graph,
        [("rows", rows)],
        cuts,
        lambda part: nullcontext(systems[(first + part) % 4]),  # type: ignore[arg-type,return-value]
        options,
    )
    assert got == graph.run_sequentially({"rows": rows})


def test_keys_are_computed_where_the_rows_are(system: ActorSystem) -> None:
    graph = entry("rows", int).map(tripled).key_by(process_of).scan(0, add).collect()
    found = run(system, graph, range(1000), batch_size=10)
    assert len({key for key, _ in found} - {os.getpid()}) == 2


class Foreign:
    """A row that cannot be decoded in one process."""

    def __init__(self, value: int, refuses: int) -> None:
        self.value, self.refuses = value, refuses

    def __reduce__(self) -> Any:
        return make_foreign, (self.value, self.refuses)


def make_foreign(value: int, refuses: int) -> Foreign:
    if os.getpid() == refuses:
        raise AssertionError("a row was decoded here")
    return Foreign(value, refuses)


@pytest.mark.parametrize("text", [False, True])
def test_rows_pass_to_their_state_without_being_decoded_in_the_program(
    system: ActorSystem, text: bool
) -> None:
    program = os.getpid()
    graph = (
        entry("rows", int)
        .map(lambda row: Foreign(row, program))
        .key_by(lambda row: f"key {row.value % 7}" if text else row.value % 7)
        .scan(0, lambda total, row: total + row.value)
        .collect()
    )
    found = run(system, graph, range(3000))
    assert found == graph.run_sequentially({"rows": range(3000)})


@pytest.mark.parametrize("kind", range(15))
def test_equal_keys_have_one_state_whatever_their_type(system: ActorSystem, kind: int) -> None:
    graph = (
        entry("rows", int)
        .map(tripled)
        .key_by(lambda row: kinds_of_keys(row % 16)[kind])
        .scan(0, add)
        .collect()
    )
    assert run(system, graph, range(300), batch_size=7) == graph.run_sequentially(
        {"rows": range(300)}
    )


def test_equal_keys_of_several_types_have_one_state(system: ActorSystem) -> None:
    def key(row: int) -> Any:
        number: Any = [int, float, Decimal, complex][row % 4](row % 5)
        zone = timezone(timedelta(hours=row % 7))
        time = datetime(2020, 1, 1, 12, tzinfo=UTC).astimezone(zone)
        return [number, ("a", number), ("b", (number, time))][row % 3]

    graph = entry("rows", int).map(tripled).key_by(key).scan(0, lambda n, _: n + 1).collect()
    assert run(system, graph, range(500), batch_size=3) == graph.run_sequentially(
        {"rows": range(500)}
    )


def test_keys_of_one_kind_of_hash_are_divided_among_the_processes(system: ActorSystem) -> None:
    graph = (
        entry("rows", int)
        .map(tripled)
        .key_by(lambda row: f"key {row % 20}")
        .scan(None, count_and_name_process)
        .collect()
    )
    homes = {(key, process) for key, (_, process) in run(system, graph, range(200), batch_size=3)}
    assert len(homes) == 20
    assert len({process for _, process in homes} - {os.getpid()}) == 2


def test_errors_name_the_row_and_its_number(system: ActorSystem) -> None:
    def stream(**given: Any) -> Any:
        tripling = entry("rows", int).filter(lambda row: row % 2).map(tripled)
        keyed = tripling.key_by(lambda row: 1 // (row - 15))
        return keyed.scan(0, lambda total, row: total + 1 // (row - 21), name="added", **given)

    with pytest.raises(StreamError, match="'added' failed at input 2") as caught:
        run(system, stream().collect(), range(10), batch_size=3)
    assert caught.value.row == 15
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    made = system.run(stream(errors="skip").collect(), batch_size=3)
    made.send("rows", range(10))
    assert len(made.finish(timeout=60)) == 3
    assert [(one.serial, one.row) for one in made.row_counts.failures] == [(2, 15), (3, 21)]
    aside = stream(errors="side")
    graph = Graph(aside.collect(name="main"), aside.failures.collect(name="failed"))
    failed = run(system, graph, range(10), batch_size=3)["failed"]
    assert [(one.serial, one.row) for one in failed] == [(2, 15), (3, 21)]
    assert all(isinstance(one, FailedRow) for one in failed)


@pytest.mark.parametrize("policy", ["fail", "skip"])
def test_a_row_that_cannot_be_sent_is_an_error_of_the_first_operator(
    system: ActorSystem, policy: Any
) -> None:
    graph = (
        entry("rows")
        .map(lambda row: row, name="same", errors=policy)
        .key_by(lambda row: row % 2)
        .scan(0, add)
        .collect()
    )
    made = system.run(graph)
    results = made.results()
    made.send("rows", [1, 2, Picky(3), 5])
    assert [next(results) for _ in range(2)] == [(1, 1), (0, 2)]
    if policy == "fail":
        with pytest.raises(StreamError, match="'same' failed at input 2"):
            next(results)
        return
    assert next(results) == (1, 6)
    made.finish(timeout=60)
    (failure,) = made.row_counts.failures
    assert (failure.operator, failure.serial) == ("same", 2)


def test_a_row_between_operators_that_cannot_be_pickled_ends_the_run(system: ActorSystem) -> None:
    def locked(row: int) -> Any:
        return threading.Lock() if row == 3 else row

    graph = (
        entry("rows", int)
        .map(locked)
        .key_by(lambda row: 0)
        .scan(0, lambda total, row: row, name="last")
        .collect()
    )
    made = system.run(graph)
    results = made.results()
    made.send("rows", range(6))
    assert [next(results) for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
    with pytest.raises(StreamError, match="'locked' failed") as caught:
        next(results)
    assert "pickle" in str(caught.value.__cause__)


def test_a_key_that_cannot_be_pickled_is_an_error_of_its_row(system: ActorSystem) -> None:
    locks: Any = threading.Lock
    graph = (
        entry("rows", int)
        .map(tripled)
        .key_by(lambda row: locks() if row == 9 else 0)
        .scan(0, add, name="added", errors="skip")
        .collect()
    )
    made = system.run(graph)
    made.send("rows", range(5))
    assert made.finish(timeout=60) == [(0, 0), (0, 3), (0, 9), (0, 21)]
    (failure,) = made.row_counts.failures
    assert (failure.operator, failure.serial, failure.row) == ("added", 3, 9)
    assert "pickle" in str(failure.error)


def test_a_function_of_keys_that_cannot_be_pickled_runs_in_the_program(
    system: ActorSystem,
) -> None:
    lock = threading.Lock()

    def key(row: int) -> int:
        with lock:
            return os.getpid()

    graph = entry("rows", int).map(tripled).key_by(key).scan(0, add).collect()
    assert {key for key, _ in run(system, graph, range(10))} == {os.getpid()}


@pytest.mark.parametrize("place", ["map", "key", "scan"])
def test_a_function_that_exits_ends_the_run(system: ActorSystem, place: str) -> None:
    def leave(here: str, row: int) -> int:
        if here == place and row == 3:
            raise SystemExit(row)
        return row

    graph = (
        entry("rows", int)
        .map(lambda row: leave("map", row))
        .key_by(lambda row: leave("key", row))
        .scan(0, lambda _, row: leave("scan", row))
        .collect()
    )
    with pytest.raises(StreamError) as caught:
        run(system, graph, range(5))
    assert isinstance(caught.value.__cause__, SystemExit)


def test_objects_see_watermarks_and_the_end(system: ActorSystem) -> None:
    graph = entry("rows").map(lambda row: row + 1).key_by(remainder).stateful(Summing).collect()
    sent = [3, 10, 4, Watermark(5), 11, Watermark(7)]
    assert run(system, graph, sent, batch_size=2) == graph.run_sequentially({"rows": sent})


def test_rows_that_are_late_for_their_window_are_counted(system: ActorSystem) -> None:
    windows = TumblingWindow(10, by=lambda row: row)
    stream = entry("rows", int).watermarks(lambda row: row, delay_threshold=0)
    graph = stream.map(lambda row: row).key_by(remainder).window(windows, sum).collect()
    made = system.run(graph, batch_size=2)
    made.send("rows", [1, 8, 25, 3, 24, 40])
    assert made.finish(timeout=60) == graph.run_sequentially({"rows": [1, 8, 25, 3, 24, 40]})
    assert made.row_counts.lates.total() == 1


def test_statistics_count_the_rows_of_each_operator(system: ActorSystem) -> None:
    graph = (
        entry("rows", int)
        .filter(lambda row: row % 2, name="odd")
        .flat_map(lambda row: [row, row], name="twice")
        .key_by(lambda row: f"key {row % 7}")
        .fold(0, add, name="added")
        .collect()
    )
    made = system.run(graph, batch_size=16, hot_keys=1)
    made.send("rows", [*range(140), *[21] * 5])
    made.finish(timeout=60)
    found = {one.name: one for one in made.statistics().operators}
    assert (found["odd"].rows_in, found["odd"].rows_out) == (145, 75)
    assert (found["twice"].rows_in, found["twice"].rows_out) == (75, 150)
    assert (found["added"].rows_in, found["added"].rows_out) == (150, 7)
    assert found["added"].busy > 0
    assert {found[name].thread for name in ("odd", "twice", "added")} == {"worker processes"}
    assert [one.key for one in found["added"].hot_keys] == ["key 0"]


# --- ends of processes --------------------------------------------------------------------------


@pytest.mark.parametrize("snapshots", [0, 300])
@pytest.mark.parametrize("text", [False, True])
def test_killed_processes_lose_and_double_nothing(text: bool, snapshots: int) -> None:
    rows, every = 1600, 400
    counted = (
        entry("rows", int)
        .flat_map(lambda row: [row])
        .key_by(lambda row: f"key {row % 7}" if text else row % 7)
        .scan(None, count_and_name_process)
    )
    graph = counted.here().map(lambda row: (row[0], *row[1])).collect()
    came = Counter[Any]()
    expected = []
    for row in range(rows):
        key = f"key {row % 7}" if text else row % 7
        came[key] += 1
        expected.append([key, came[key]])
    with ActorSystem(processes=2) as system:
        made = system.run(graph, batch_size=16, window=4)
        seen, killed = kill_processes(made, rows, every, snapshots)
    assert seen == expected
    assert killed == rows // every


@pytest.mark.parametrize("place", ["map", "key", "scan"])
def test_a_row_that_ends_each_process_fails_the_run(place: str) -> None:
    def die(here: str, row: int) -> int:
        return os._exit(3) if here == place and row == 7 else row

    graph = (
        entry("rows", int)
        .map(lambda row: die("map", row), name="same")
        .key_by(lambda row: die("key", row) % 2)
        .scan(0, lambda total, row: total + die("scan", row), name="added")
        .collect()
    )
    with ActorSystem(processes=1) as system:
        with pytest.raises(StreamError, match="'added' failed") as caught:
            run(system, graph, range(10))
        assert isinstance(caught.value.__cause__, ProcessLost)
        assert "ended" in str(caught.value.__cause__)
        assert run(system, entry("rows", int).scan(0, add).collect(), [1, 2]) == [1, 3]
