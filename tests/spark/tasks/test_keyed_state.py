"""A pure `receive` for each key, with its state in Spark's own state store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from callboard.core.errors import ConfigError
from callboard.spark import KeyedState, by_key, keyed_state, spark_graph
from callboard.spark.errors import CaptureError, SchemaError
from callboard.streams import Stream, entry

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

STATE = StructType([StructField("last", LongType()), StructField("total", LongType())])
OUT = StructType([StructField("user", StringType()), StructField("total", LongType())])


class Totals:
    """Adds up, and says so at each row; a row of 0 ends the sum."""

    def __init__(self, start: int = 0) -> None:
        self.last = 0
        self.total = start

    def receive(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        self.last = row["n"]
        self.total += row["n"]
        return [{"user": row["user"], "total": self.total}]


def total(state: Any, row: dict[str, Any]) -> tuple[Any, Any]:
    if row["n"] == 0:
        return None, None
    last, so_far = state or (0, 0)
    assert last <= row["n"]
    now = so_far + row["n"]
    return {"last": row["n"], "total": now}, [(row["user"], now)]


class Store:
    """A key's state as Spark's stores show it, that of `GroupState` and of `ValueState`."""

    def __init__(self) -> None:
        self.kept: Any = None

    def update(self, value: Any) -> None:
        assert isinstance(value, tuple)
        self.kept = value

    def remove(self) -> None:
        assert self.kept is not None
        self.kept = None

    def clear(self) -> None:
        self.kept = None

    @property
    def getOption(self) -> Any:  # noqa: N802 - Spark calls it so
        return self.kept

    def get(self) -> Any:
        return self.kept


class GroupStore(Store):
    @property
    def exists(self) -> bool:
        return self.kept is not None


class ValueStore(Store):
    def exists(self) -> bool:
        return self.kept is not None

    def getValueState(self, name: str, schema: StructType) -> Store:  # noqa: N802
        assert (name, schema) == ("state", STATE)
        return self


def by_apply(keyed: KeyedState) -> tuple[Store, Callable[[list[Any]], list[Any]]]:
    store: Any = GroupStore()

    def send(numbers: list[Any]) -> list[Any]:
        frames = [pd.DataFrame({"user": ["ann"], "n": [n]}) for n in numbers]
        given = keyed.apply_in_pandas_with_state(("ann",), iter(frames), store)
        return [row for frame in given for row in frame["total"]]

    return store, send


def by_processor(in_pandas: bool, keyed: KeyedState) -> tuple[Store, Callable[[Any], list[Any]]]:
    store: Any = ValueStore()

    def send(numbers: list[Any]) -> list[Any]:
        processor = keyed.processor
        processor.init(store)
        rows: Any = [Row(user="ann", n=n) for n in numbers]
        if in_pandas:
            rows = [pd.DataFrame([row.asDict()]) for row in rows]
        given = [*processor.handleInputRows(("ann",), iter(rows), None)]  # type: ignore[arg-type]
        processor.close()
        if not in_pandas:
            return [row.total for row in given]
        return [row for frame in given for row in frame["total"]]

    return store, send


WAYS: list[Any] = [
    by_apply,
    lambda keyed: by_processor(False, keyed),
    lambda keyed: by_processor(True, keyed),
]


@pytest.mark.parametrize("way", WAYS, ids=["apply", "rows", "pandas"])
@pytest.mark.parametrize("receive", [total, Totals])
def test_the_state_of_a_key_is_what_the_store_keeps(way: Any, receive: Any) -> None:
    store, send = way(keyed_state(receive, state=STATE, schema=OUT))
    assert send([1, 2]) == [1, 3]
    assert store.kept == (2, 3)
    assert send([]) == []
    assert send([3]) == [6]
    store.kept = (10, 100)  # nothing else is remembered
    assert send([11]) == [111]


@pytest.mark.parametrize("way", WAYS, ids=["apply", "rows", "pandas"])
def test_a_state_of_none_is_removed(way: Any) -> None:
    store, send = way(keyed_state(total, state=STATE, schema=OUT))
    assert send([0]) == []
    assert store.kept is None
    assert send([5, 0, 1]) == [5, 1]
    assert store.kept == (1, 1)
    assert send([0]) == []
    assert store.kept is None


def test_a_class_has_its_arguments() -> None:
    _, send = by_apply(keyed_state(Totals, start=100, state=STATE, schema=OUT))
    assert send([1]) == [101]


@pytest.mark.parametrize(
    ("receive", "says"),
    [
        (lambda state, row: None, "receive() must return the new state and outputs, got None"),
        (lambda state, row: ((1,), []), "a state must be a dictionary or a tuple with the columns"),
        (
            lambda state, row: (None, [7]),
            "an output must be a dictionary or a tuple with the columns",
        ),
    ],
)
def test_a_wrong_state_or_output_is_refused(receive: Any, says: str) -> None:
    _, send = by_apply(keyed_state(receive, state=STATE, schema=OUT))
    with pytest.raises(SchemaError) as raised:
        send([1])
    assert says in str(raised.value)


def test_a_wrong_argument_is_refused_at_the_call() -> None:
    lock = threading.Lock()
    wrong: list[tuple[Any, Any, Any, str]] = [
        (7, (), ConfigError, "receive expects a function or a class, got 7"),
        (int, (), ConfigError, "int has no method `receive`"),
        (total, (1,), ConfigError, "arguments are for a class"),
        (lambda state, row: lock, (), CaptureError, "receive -> lock"),
    ]
    for receive, args, error, says in wrong:
        with pytest.raises(error) as refused:
            keyed_state(receive, *args, state=STATE, schema=OUT)
        assert says in str(refused.value)
    with pytest.raises(ConfigError, match="schema expects a StructType"):
        keyed_state(total, state=LongType(), schema=OUT)  # type: ignore[arg-type]


# --- in streaming queries -------------------------------------------------------------------------


class Feed:
    """A stream of files, each a micro-batch, and queries that are started again and again."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.files = 0
        (folder / "in").mkdir()

    def put(self, *rows: tuple[str, int]) -> None:
        lines = "".join(f'{{"user": "{user}", "n": {n}}}\n' for user, n in rows)
        Path(self.folder, "in", f"{self.files}.json").write_text(lines)
        self.files += 1

    def run(self, change: Callable[[DataFrame], DataFrame], mode: str = "append") -> list[Any]:
        """Start a query from where the last one ended, and return what it puts out."""
        found: list[Any] = []
        files = self.spark.readStream.schema("user string, n long").json(str(self.folder / "in"))
        query = (
            change(files)
            .writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .foreachBatch(lambda frame, batch: found.extend(map(tuple, frame.collect())))
            .outputMode(mode)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(found)


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)


def test_sparks_store_keeps_the_state_over_restarts_of_a_query(feed: Feed) -> None:
    keyed = keyed_state(total, state=STATE, schema=OUT)

    def totals(files: DataFrame) -> DataFrame:
        return files.groupBy("user").applyInPandasWithState(
            keyed.apply_in_pandas_with_state, keyed.schema, keyed.state, "append", "NoTimeout"
        )

    feed.put(("ann", 1), ("bob", 5), ("ann", 2))
    assert feed.run(totals) == [("ann", 1), ("ann", 3), ("bob", 5)]
    feed.put(("ann", 3), ("bob", 0))
    assert feed.run(totals) == [("ann", 6)]
    feed.put(("bob", 1))
    assert feed.run(totals) == [("bob", 1)]


def test_the_same_in_a_processor_of_transform_with_state(feed: Feed, spark: SparkSession) -> None:
    pytest.importorskip("google.protobuf", reason="Spark's stateful processors need it")
    if not hasattr(spark.range(1).groupBy(), "transformWithState"):
        pytest.skip("before PySpark 4.1 processors take pandas only")
    keyed = keyed_state(Totals, state=STATE, schema=OUT)
    store = "spark.sql.streaming.stateStore.providerClass"
    rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set(store, rocks)
    try:

        def totals(files: DataFrame) -> DataFrame:
            return files.groupBy("user").transformWithState(
                keyed.processor, keyed.schema, "Append", "None"
            )

        feed.put(("ann", 1), ("bob", 5))
        assert feed.run(totals) == [("ann", 1), ("bob", 5)]
        feed.put(("ann", 3))
        assert feed.run(totals) == [("ann", 4)]
    finally:
        spark.conf.unset(store)


def test_a_streaming_query_runs_a_graph_for_each_partition(feed: Feed) -> None:
    counted = entry("x").fold(0, lambda rows, batch: rows + batch.num_rows).map(lambda n: ("", n))
    graph = spark_graph(counted, schema=OUT)

    def counts(files: DataFrame) -> DataFrame:
        return files.coalesce(1).mapInArrow(graph.map_in_arrow, OUT)

    feed.put(("ann", 1), ("bob", 5), ("ann", 2))
    assert feed.run(counts) == [("", 3)]
    feed.put(("ann", 1))
    assert feed.run(counts) == [("", 1)]


def test_a_micro_batch_is_a_frame_by_key(feed: Feed) -> None:
    class Sums:
        def __init__(self) -> None:
            self.row = ("", 0)

        def receive(self, row: dict[str, Any]) -> None:
            assert row["n"] >= 0
            self.row = row["user"], self.row[1] + row["n"]

        def on_final(self) -> list[tuple[str, int]]:
            return [self.row]

    keyed: Stream[Any] = entry("x").key_by(lambda row: row["user"], partitions=4).stateful(Sums)
    graph = spark_graph(keyed, rows="dict", schema=OUT)
    found: list[Any] = []

    def each(frame: DataFrame, batch: int) -> None:
        ordered = by_key(frame, "user", order="n", partitions=2)
        found.append(sorted(map(tuple, ordered.mapInArrow(graph.map_in_arrow, OUT).collect())))

    files = feed.spark.readStream.schema("user string, n long").json(str(feed.folder / "in"))
    feed.put(("ann", 1), ("bob", 5), ("ann", 2))
    query = files.writeStream.foreachBatch(each).trigger(availableNow=True).start()
    query.awaitTermination()
    assert found == [[("ann", 3), ("bob", 5)]]
