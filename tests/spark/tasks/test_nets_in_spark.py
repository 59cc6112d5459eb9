"""Nets as operators of graphs in Spark's tasks."""

from typing import Any

import pytest

from callboard import nets
from callboard.nets import NetOperator, box, split, star, sync
from callboard.streams import entry

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from callboard.spark import spark_graph


def test_a_net_answers_each_row_of_a_frame(spark: SparkSession) -> None:
    count = star(nets.filter("{<n>, <steps>} -> {<n=n/2>, <steps=steps+1>}"), "{<n>} if <n <= 1>")
    net = nets.filter("{<n>} -> {<n>, <steps>}") >> count
    graph = entry("rows").map(as_record).stateful(NetOperator, net).map(as_row)
    schema = "id long, steps long"
    halved = spark_graph(graph, rows="dict", schema=schema)
    frame = spark.range(1, 200, numPartitions=3).mapInArrow(halved.map_in_arrow, schema)
    found = {row.id: row.steps for row in frame.collect()}
    assert found == {number: number.bit_length() - 1 for number in range(1, 200)}


def test_pairs_of_a_partition_are_joined(spark: SparkSession) -> None:
    both = box(lambda a, b: {"sum": a + b}, "(a, b) -> (sum)", name="both")
    net = split(star(sync("{a}", "{b}"), "{a, b}"), "<id>") >> both
    graph = entry("rows").map(as_part).stateful(NetOperator, net).map(lambda record: record["sum"])
    rows = [(n, side, 10 * n + (side == "b")) for side in "ab" for n in range(20)]
    rdd = spark.sparkContext.parallelize(rows, 1)
    found = rdd.mapPartitions(spark_graph(graph).map_partitions).collect()
    assert sorted(found) == [20 * n + 1 for n in range(20)]


def as_record(row: dict[str, Any]) -> dict[str, Any]:
    return {"<n>": row["id"], "id": row["id"]}


def as_row(record: dict[str, Any]) -> dict[str, Any]:
    return {"id": record["id"], "steps": record["<steps>"]}


def as_part(row: tuple[int, str, int]) -> dict[str, Any]:
    number, side, value = row
    return {"<id>": number, side: value}
