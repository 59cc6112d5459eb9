"""Graphs of streams in the tasks of a real Spark, and frames by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, create_map, lit, rand, spark_partition_id

from callboard.core.errors import ConfigError
from callboard.spark import SparkGraph, by_key, spark_graph
from callboard.streams import entry
from jobs import Failure

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

Row = dict[str, Any]

CLICK = "ts long, user string"


def clicks(n: int) -> list[tuple[int, str]]:
    return [(row * 7919 % n, f"user {row % 11}") for row in range(n)]


VISITS = "user string, rows long, last long"


class Ordered:
    """Counts the rows of a key, and refuses one that comes before its time."""

    def __init__(self) -> None:
        self.last = -1
        self.rows = 0
        self.user = ""

    def receive(self, row: Row) -> None:
        if row["ts"] < self.last:
            raise ValueError(f"{row} comes after {self.last}")
        self.user, self.last = row["user"], row["ts"]
        self.rows += 1

    def on_final(self) -> list[tuple[str, int, int]]:
        return [(self.user, self.rows, self.last)]


def visits() -> SparkGraph:
    keyed = entry("clicks").key_by(lambda row: row["user"], partitions=8)
    return spark_graph(keyed.stateful(Ordered), rows="dict", schema=VISITS)


def test_each_key_of_a_frame_by_key_comes_in_order_to_one_run(spark: SparkSession) -> None:
    frame = spark.createDataFrame(clicks(5000), CLICK).orderBy(rand(1))
    ordered = by_key(frame, "user", order="ts", partitions=5)
    assert ordered.rdd.getNumPartitions() == 5
    found = ordered.mapInArrow(visits().map_in_arrow, VISITS).collect()
    wanted: dict[str, tuple[int, int]] = {}
    for ts, user in clicks(5000):
        rows, last = wanted.get(user, (0, 0))
        wanted[user] = rows + 1, max(last, ts)
    assert {row.user: (row.rows, row.last) for row in found} == wanted
    assert len(found) == len(wanted)  # no key is in two partitions


def test_a_frame_not_by_key_is_detected(spark: SparkSession, failure_of: Failure) -> None:
    frame = spark.createDataFrame(clicks(500), CLICK).coalesce(1)
    shown = failure_of(frame.mapInArrow(visits().map_in_arrow, VISITS).collect)
    assert "operator 'Ordered' failed at input " in shown
    assert "in partition 0: ValueError: " in shown
    assert "comes after" in shown
    assert "in receive" in shown, "the operator's own traceback is missing"


def test_rows_of_one_order_are_sorted_by_the_other_columns(spark: SparkSession) -> None:
    rows = [(ts % 3, f"key {ts % 2}", ts) for ts in range(60)] + [(None, None, 1), (1, None, 2)]
    frame = spark.createDataFrame(rows, "`a time` long, `k.1` string, n long")
    answers = []
    for seed in range(2):
        ordered = by_key(frame.orderBy(rand(seed)), ["k.1"], order=("a time",), partitions=3)
        answers.append(ordered.withColumn("home", spark_partition_id()).collect())
    assert answers[0] == answers[1]
    homes: dict[Any, set[int]] = {}
    for row in answers[0]:
        homes.setdefault(row["k.1"], set()).add(row.home)
    assert {len(home) for home in homes.values()} == {1}
    for home in range(3):
        came = [tuple(row)[:3] for row in answers[0] if row.home == home]
        by_all = [((a is not None, a or 0), (k is not None, k or ""), n) for a, k, n in came]
        assert by_all == sorted(by_all)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"key": "users"}, "the frame has no column 'users': it has ['ts', 'user']"),
        ({"order": "time"}, "the frame has no column 'time'"),
        ({"key": []}, "key expects a column's name, or several names, got []"),
        ({"key": None}, "key expects a column's name, or several names, got None"),
        ({"order": 5}, "order expects a column's name, or several names, got 5"),
        ({"order": ()}, "order expects a column's name, or several names, got ()"),
        ({"partitions": 0}, "partitions"),
        ({"partitions": None}, "partitions"),
        ({"frame": [1]}, "frame expects a frame of Spark, got [1]"),
    ],
)
def test_wrong_arguments_of_by_key(spark: SparkSession, options: dict[str, Any], says: str) -> None:
    frame = spark.createDataFrame(clicks(1), CLICK)
    chosen: dict[str, Any] = {"frame": frame, "key": "user", "order": "ts", "partitions": 2}
    with pytest.raises(ConfigError) as refused:
        by_key(**(chosen | options))
    assert says in str(refused.value)


def test_a_frame_with_two_columns_of_a_name_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame(clicks(1), CLICK)
    with pytest.raises(ConfigError, match="the frame has 2 columns 'user'"):
        by_key(frame.select("*", "user"), "user", order="ts", partitions=2)


def test_spark_names_an_unsortable_column(spark: SparkSession, failure_of: Failure) -> None:
    frame = spark.range(3).select(col("id"), create_map(lit("a"), col("id")).alias("pairs"))
    shown = failure_of(lambda: by_key(frame, "id", order="id", partitions=2).collect())
    assert "pairs" in shown


def test_an_rdd_is_mapped_and_a_frame_is_fed(spark: SparkSession, tmp_path: Path) -> None:
    add = spark_graph(entry("n", int).map(lambda n: n + 1))
    rdd = spark.sparkContext.parallelize(range(1000), 2)
    assert rdd.mapPartitions(add.map_partitions).collect() == list(range(1, 1001))

    def write(row: Any) -> None:
        Path(tmp_path, str(row.id)).touch()

    fed = spark_graph(entry("n").to(write))
    spark.range(20, numPartitions=2).foreachPartition(fed.foreach_partition)
    assert sorted(int(file.name) for file in tmp_path.iterdir()) == list(range(20))


def test_groups_and_pairs_of_groups_are_runs_of_their_own(spark: SparkSession) -> None:
    schema = "user string, rows long"

    def counted(total: tuple[str, int], row: Row) -> tuple[str, int]:
        return row["user"], total[1] + 1

    frame = spark.createDataFrame(clicks(990), CLICK)
    one = spark_graph(entry("x").fold(("", 0), counted), rows="dict", schema=schema)
    found = frame.groupBy("user").applyInArrow(one.apply_in_arrow, schema).collect()
    assert sorted(map(tuple, found)) == sorted((f"user {n}", 90) for n in range(11))

    both = entry("left").union(entry("right")).fold(("", 0), counted)
    two = spark_graph(both, rows="dict", schema=schema)
    some = frame.filter("user < 'user 2'").groupBy("user")
    pairs = some.cogroup(frame.groupBy("user")).applyInArrow(two.cogroup_in_arrow, schema)
    twice = {"user 0", "user 1", "user 10"}
    wanted = sorted((f"user {n}", 180 if f"user {n}" in twice else 90) for n in range(11))
    assert sorted(map(tuple, pairs.collect())) == wanted


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_a_key_of_one_side_alone_has_the_other_sides_columns(spark: SparkSession, how: Any) -> None:
    left = spark.createDataFrame([(1, "ann"), (2, "bob"), (2, None)], "t long, user string")
    right = spark.createDataFrame(
        [(1, "ann", 0.5), (3, "cid", 1.5)], "t long, user string, x double"
    )
    both = entry("left").join_batches(entry("right"), by="t", within=0, how=how)
    schema = "t long, user string, t_right long, user_right string, x double"
    function = spark_graph(both, schema=schema).cogroup_in_arrow
    groups = left.groupBy("user").cogroup(right.groupBy("user"))
    found = {tuple(row) for row in groups.applyInArrow(function, schema).collect()}
    wanted: set[Any] = {(1, "ann", 1, "ann", 0.5)}
    if how in ("left", "outer"):
        wanted |= {(2, "bob", None, None, None), (2, None, None, None, None)}
    if how in ("right", "outer"):
        wanted |= {(None, None, 3, "cid", 1.5)}
    assert found == wanted


def test_rows_of_every_common_type_come_and_go(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr(
        "id",
        "timestamp_millis(id * 1000) as at",
        "date_from_unix_date(id) as day",
        "array(id, id) as numbers",
        "cast(id as decimal(10, 2)) as price",
        "named_struct('a', id) as pair",
    )
    same = spark_graph(entry("x"), rows="dict", schema=frame.schema)
    assert frame.mapInArrow(same.map_in_arrow, frame.schema).collect() == frame.collect()
    grouped = frame.groupBy("id").applyInArrow(same.apply_in_arrow, frame.schema)
    assert grouped.orderBy("id").collect() == frame.collect()
