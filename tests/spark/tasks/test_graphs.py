"""Graphs of streams as partition functions, called directly: no JVM is needed."""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StringType, StructField, StructType

import graphs
from callboard import Actor, ActorSystem
from callboard.core.errors import DrainTimeout
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.spark import PartitionContext, map_partitions, spark_graph
from callboard.spark.errors import PartitionFailed, SchemaError
from callboard.streams import Graph, Stream, entry

Row = dict[str, Any]

SCHEMA = StructType([StructField("n", LongType()), StructField("word", StringType())])
ARROW = pa.schema([("n", pa.int64()), ("word", pa.string())])


def batches(n: int, size: int = 100) -> Iterator[pa.RecordBatch]:
    for at in range(0, n, size):
        some = range(at, min(n, at + size))
        yield pa.record_batch({"n": [*some], "word": [str(row) for row in some]}, schema=ARROW)


def rows(n: int) -> list[Row]:
    return [{"n": row, "word": str(row)} for row in range(n)]


def found(given: Iterable[pa.RecordBatch]) -> list[Row]:
    return [row for batch in given for row in batch.to_pylist()]


def sums() -> Stream[Any]:
    """Give numbers, and at the end their sum for each rest of a division."""
    numbers = entry("x", int).filter(lambda n: n % 3 != 0)
    keyed = numbers.key_by(lambda n: n % 5, partitions=4)
    return numbers.union(keyed.fold(0, lambda total, n: total + n))


def read_by(function: Callable[[Any], Iterator[Any]], given: Iterable[Any], ahead: int) -> int:
    """Count outputs, and assert that no more than `ahead` rows, or batches, are read ahead."""
    read = got = 0

    def counted() -> Iterator[Any]:
        nonlocal read
        for each in given:
            read += 1
            yield each

    for _ in function(counted()):
        got += 1
        assert read <= got + ahead
    return got


# --- rows in, outputs out -------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_partition_gives_what_the_sequential_run_gives(model: Model) -> None:
    function = spark_graph(sums(), threading=model, batch_size=16, workers=2).map_partitions
    for _ in range(2):  # the second finds nothing of the first
        given = list(function(iter(range(1000))))
        assert given == sums().collect().run_sequentially({"x": range(1000)})
    assert list(function([])) == []


def test_outputs_come_while_rows_are_read() -> None:
    numbers = entry("x", int).map(lambda n: n + 1)
    assert read_by(spark_graph(numbers, batch_size=10).map_partitions, range(5000), 10) == 5000
    same = spark_graph(entry("x")).map_in_arrow
    assert read_by(same, batches(5000), 0) == 50


def test_a_record_batch_is_a_row_unless_rows_are_wanted() -> None:
    seen: list[Any] = []

    def look(row: Any) -> Any:
        seen.append(row)
        return row

    stream = entry("x").map(look)
    assert found(spark_graph(stream).map_in_arrow(batches(250))) == rows(250)
    assert [batch.num_rows for batch in seen] == [100, 100, 50]
    for kind, first in (("dict", {"n": 0, "word": "0"}), ("tuple", (0, "0"))):
        seen.clear()
        given = spark_graph(stream, rows=kind, schema=SCHEMA).map_in_arrow(batches(2500))  # type: ignore[arg-type]
        assert found(given) == rows(2500)
        assert (len(seen), seen[0]) == (2500, first)


def test_outputs_may_be_batches_tables_and_rows_in_one_order() -> None:
    def any_of(row: Row) -> Any:
        kinds = (
            lambda: row,
            lambda: tuple(row.values()),
            lambda: pa.RecordBatch.from_pylist([row], schema=ARROW),
            lambda: pa.Table.from_pylist([row, row], schema=ARROW),
        )
        return kinds[row["n"] % 4]()

    function = spark_graph(entry("x").map(any_of), rows="dict", schema=SCHEMA).map_in_arrow
    wanted = [row for row in rows(3000) for _ in range(2 if row["n"] % 4 == 3 else 1)]
    assert found(function(batches(3000))) == wanted


def test_rows_of_odd_batches_are_not_lost() -> None:
    bare = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))
    count = entry("x").fold(0, lambda n, row: n + (row == ())).map(lambda n: (n, ""))
    assert found(spark_graph(count, rows="tuple", schema=SCHEMA).map_in_arrow([bare])) == [
        {"n": 3, "word": ""}
    ]
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    with pytest.raises(SchemaError, match="no place for two columns of one name"):
        list(spark_graph(count, rows="dict", schema=SCHEMA).map_in_arrow([twice]))


def test_rows_come_back_in_batches_of_bounded_size() -> None:
    function = spark_graph(entry("x"), rows="dict", schema=SCHEMA).map_in_arrow
    sizes = [batch.num_rows for batch in function(batches(2500, 2500))]
    assert sizes == [1024, 1024, 452]


def test_a_group_is_a_run_of_its_own_and_gives_a_table() -> None:
    count = entry("x").fold(0, lambda total, batch: total + batch.num_rows)
    function = spark_graph(count.map(lambda n: (n, "rows")), schema=SCHEMA).apply_in_arrow
    for n in (250, 10):
        table = function(pa.Table.from_batches(batches(n)))
        assert table.to_pylist() == [{"n": n, "word": "rows"}]
    nothing = spark_graph(entry("x").filter(lambda batch: False)).apply_in_arrow
    assert nothing(pa.Table.from_batches(batches(5))).num_rows == 0


def test_two_groups_go_to_two_entries() -> None:
    left, right = entry("left"), entry("right")
    pairs = left.join(right, by="n", within=0, combine=lambda one, other: (one["n"], other["word"]))
    function = spark_graph(pairs, rows="dict", schema=SCHEMA).cogroup_in_arrow
    table = function(
        pa.Table.from_batches(batches(30)), pa.Table.from_batches(batches(20)).slice(10)
    )
    assert table.to_pylist() == rows(20)[10:]


def test_a_side_without_rows_is_a_batch_that_says_its_columns() -> None:
    left, right = entry("left"), entry("right")
    names = left.union(right).map(lambda batch: ",".join(batch.schema.names))
    function = spark_graph(names.map(lambda text: (1, text)), schema=SCHEMA).cogroup_in_arrow
    some, none = pa.table({"n": [1]}), pa.table({"m": pa.array([], pa.int8())})
    for sides, words in (((some, none), "nm"), ((none, some), "mn"), ((none, none), "mm")):
        assert [row["word"] for row in function(*sides).to_pylist()] == [*words]


def test_spark_sees_functions_of_one_table_and_of_two() -> None:
    """It passes a key to those that have one more parameter, and reads annotations."""
    graph = spark_graph(entry("left").union(entry("right")), entry="left")
    for function, count in ((graph.apply_in_arrow, 1), (graph.cogroup_in_arrow, 2)):
        seen = inspect.getfullargspec(function)
        assert (len(seen.args), seen.varargs, seen.annotations) == (count, None, {})


def test_the_functions_travel_as_spark_sends_them() -> None:
    graph = spark_graph(entry("x").map(lambda batch: batch), schema=SCHEMA)
    map_in_arrow, apply_in_arrow = (
        cloudpickle.loads(cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
        for function in (graph.map_in_arrow, graph.apply_in_arrow)
    )
    assert found(map_in_arrow(batches(250))) == rows(250)
    assert apply_in_arrow(pa.Table.from_batches(batches(9))).to_pylist() == rows(9)


# --- sinks of one's own ---------------------------------------------------------------------------


def test_a_graph_with_sinks_of_its_own_is_fed(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    graph = entry("x", int).map(lambda n: n + 1).to(path)
    spark_graph(graph).foreach_partition(range(1000))
    assert [int(line) for line in path.read_text().split()] == list(range(1, 1001))


class Watched:
    """A row; and which of its kind there are."""

    alive: ClassVar[weakref.WeakSet[Watched]] = weakref.WeakSet()
    counts: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.alive.add(self)

    def count(self) -> None:
        self.counts.append(len(self.alive))


def test_outputs_that_nobody_collects_are_dropped() -> None:
    rows = entry("x", Watched)
    both = Graph(rows.collect(), rows.to(Watched.count))
    spark_graph(both, batch_size=10).foreach_partition(Watched() for _ in range(1000))
    assert len(Watched.counts) == 1000
    assert max(Watched.counts) <= 30


class Sum(Actor[int]):
    """Adds up, and says so when it ends."""

    said: list[int]

    def __init__(self, said: list[int]) -> None:
        self.said = said
        self.total = 0

    def receive(self, message: int) -> None:
        if message < 0:
            raise ValueError(f"{message} is too little")
        self.total += message

    def on_stop(self) -> None:
        self.said.append(self.total)


def test_a_function_makes_the_graph_in_the_task_and_actors_for_its_sinks() -> None:
    said: list[int] = []

    def build(system: ActorSystem, context: PartitionContext) -> Graph[Any]:
        assert context.partition_id == 0
        numbers = entry("x", int)
        return Graph(numbers.collect(), numbers.to(system.spawn(Sum, said, name="sum")))

    graph = spark_graph(build)
    assert list(graph.map_partitions(range(100))) == list(range(100))
    graph.foreach_partition(range(10))
    assert said == [4950, 45]


def test_an_actor_that_fails_behind_a_sink_fails_the_partition() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> Graph[Any]:
        return entry("x", int).to(system.spawn(Sum, [], name="sum"))

    with pytest.raises(PartitionFailed, match="actor '/sum' failed in partition 0: ValueError: -1"):
        spark_graph(build).foreach_partition([1, -1])


def test_an_actor_that_is_stuck_behind_a_sink_is_named() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> Graph[Any]:
        return entry("x", int).to(system.spawn(graphs.Stuck, name="stuck"))

    graphs.Stuck.reached.clear()
    graph = spark_graph(build, batch_size=1, drain_timeout=0.1)
    with pytest.raises(DrainTimeout, match="/stuck"):
        graph.foreach_partition(graphs.until_stuck(range(11)))


# --- what fails -----------------------------------------------------------------------------------


def careful(n: int) -> int:
    if n == 50:
        raise ValueError("not this one") from KeyError("the cause")
    return n


@pytest.mark.parametrize("model", ["manual", "dynamic"])
def test_a_failure_names_the_operator_and_the_row_after_what_came_before(model: Model) -> None:
    stream = entry("x", int).map(careful, name="careful")
    given = spark_graph(stream, threading=model, batch_size=8).map_partitions(range(1000))
    got: list[int] = []
    with pytest.raises(PartitionFailed) as failed:
        got.extend(given)
    assert got == list(range(50))
    says = "operator 'careful' failed at input 50, 50 in partition 0: ValueError: not this one"
    assert str(failed.value) == says
    (note,) = failed.value.__notes__
    assert note.startswith("In operator 'careful':")
    assert "in careful" in note
    assert note.count("KeyError: 'the cause'") == 1
    assert list(spark_graph(entry("x", int)).map_partitions([1])) == [1]


def test_an_error_of_the_input_is_raised_as_it_is() -> None:
    def broken() -> Iterator[int]:
        yield from range(100)
        raise OSError("upstream is broken")

    got: list[int] = []
    with pytest.raises(OSError, match="upstream is broken"):
        got.extend(spark_graph(entry("x", int), batch_size=7).map_partitions(broken()))
    assert got == list(range(100))


@pytest.mark.parametrize(
    ("output", "options", "says"),
    [
        (lambda row: row, {}, "or a row with schema=, got {'n': 0"),
        (lambda row: row["n"], {"schema": SCHEMA}, "an output must be a dictionary or a t"),
        (lambda row: (1, 2, 3), {"schema": SCHEMA}, "the columns ['n', 'word']"),
        (lambda row: ("n", "w"), {"schema": SCHEMA}, "does not fit column 'n'"),
        (
            lambda row: pa.record_batch({"m": [1]}),
            {"schema": SCHEMA},
            "expected the columns ['n', 'word'], got ['m']",
        ),
        (
            lambda row: (None, "w"),
            {"schema": StructType([StructField("n", LongType(), False), *SCHEMA.fields[1:]])},
            "a null in column 'n'",
        ),
    ],
)
def test_an_output_outside_the_schema_is_refused(output: Any, options: Any, says: str) -> None:
    function = spark_graph(entry("x").map(output), rows="dict", **options).map_in_arrow
    with pytest.raises(SchemaError) as raised:
        list(function(batches(3)))
    assert says in str(raised.value)
    (last,) = map_partitions(graphs.tally, flush=True)([1])
    (again,) = map_partitions(graphs.tally, flush=True)([1])
    assert last[4] == again[4], "a graph is open, though the error is all that is left of it"


# --- nobody reads on, and several graphs ----------------------------------------------------------


class Gate:
    """An operator that stays in one row until it is opened."""

    def __init__(self, at: int) -> None:
        self.at = at

    entered, opened = threading.Event(), threading.Event()

    def __call__(self, row: int) -> int:
        if row == self.at:
            self.entered.set()
            assert self.opened.wait(120)
        return row


def test_results_that_nobody_reads_any_more_do_not_wait_for_an_operator_that_is_stuck() -> None:
    stream = entry("x", int).map(Gate(at=3))
    given = spark_graph(
        stream, threading="dynamic", batch_size=1, drain_timeout=3600.0
    ).map_partitions(range(100))
    try:
        assert next(given) == 0
        assert Gate.entered.wait(60)
        closing = threading.Thread(target=given.close)  # type: ignore[attr-defined]
        closing.start()
        closing.join(60)
        assert not closing.is_alive()
    finally:
        Gate.opened.set()
    assert list(spark_graph(entry("x", int)).map_partitions([1, 2])) == [1, 2]


def test_a_partition_that_is_not_read_to_its_end_reads_no_further() -> None:
    numbers = iter(range(1000))
    given = spark_graph(entry("x", int), batch_size=10).map_partitions(numbers)
    assert next(given) == 0
    given.close()  # type: ignore[attr-defined]
    assert next(numbers) == 10


def test_the_outputs_of_one_graph_may_be_the_rows_of_another() -> None:
    add = spark_graph(entry("x", int).map(lambda n: n + 1), batch_size=3).map_partitions
    count = map_partitions(graphs.tally, flush=True, batch_size=4)
    assert list(add(add(range(100)))) == list(range(2, 102))
    assert next(count(add(range(100))))[3] == 100
    assert list(add(map_partitions(graphs.echo)(range(100)))) == list(range(1, 101))


def test_a_graph_does_not_wait_for_what_is_in_flight_in_another() -> None:
    def build(system: ActorSystem, context: PartitionContext) -> Graph[Any]:
        numbers = entry("x", int)
        return Graph(numbers.collect(), numbers.to(system.spawn(graphs.Stuck, name="stuck")))

    stuck = spark_graph(build, batch_size=1, drain_timeout=3600.0).map_partitions(range(5))
    add = spark_graph(entry("x", int).map(lambda n: n + 1), drain_timeout=60.0).map_partitions

    def some() -> Iterator[int]:
        yield next(stuck)
        assert graphs.Stuck.reached.wait(60)
        assert list(add([10, 20])) == [11, 21]

    assert list(add(some())) == [1]
    stuck.close()  # type: ignore[attr-defined]


def test_batches_are_worked_on_in_the_tasks_own_thread() -> None:
    seen: set[threading.Thread] = set()

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.add(threading.current_thread())
        return batch.filter(pc.greater(batch["n"], 10))

    assert len(found(spark_graph(entry("x").map_batches(look)).map_in_arrow(batches(100)))) == 89
    assert seen == {threading.current_thread()}
