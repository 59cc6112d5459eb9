"""Frequent keys of a frame, against exact counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from callboard.spark import hot_keys

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


def test_few_keys_are_counted_exactly(spark: SparkSession) -> None:
    frame = spark.range(10_000, numPartitions=3).selectExpr("id % 7 as number", "id")
    hot = hot_keys(frame, "number")
    assert {key: count for key, count, _ in hot} == Counter(i % 7 for i in range(10_000))
    assert hot.total == 10_000
    assert hot.top(1) == [(0, 1429, 0)]


@pytest.mark.parametrize(
    "expression", ["id % 10", "concat('key ', id % 10)", "cast(concat('key ', id % 10) as binary)"]
)
def test_many_keys_are_counted_within_the_bounds(spark: SparkSession, expression: str) -> None:
    # Every second row has one of ten keys, the others one of their own.
    expression = f"if(id % 2 = 0, {expression}, {expression.replace('% 10', '+ 1000')})"
    frame = spark.range(20_000, numPartitions=4).selectExpr(f"{expression} as key")
    exact = Counter(
        bytes(row.key) if isinstance(row.key, bytearray) else row.key for row in frame.collect()
    )
    hot = hot_keys(frame, col("key"), epsilon=0.01)
    assert hot.total == 20_000
    assert len(hot) <= 100
    found = {key: (count - error, count) for key, count, error in hot}
    assert {key for key, times in exact.items() if times > 200} <= found.keys()
    for key, (low, high) in found.items():
        assert low <= exact[key] <= high <= exact[key] + 200


def test_an_expression_is_a_key(spark: SparkSession) -> None:
    hot = hot_keys(spark.range(100), col("id") % 3)
    assert hot.estimate(0) == (0, 34, 0)


def test_nulls_are_left_out(spark: SparkSession) -> None:
    frame = spark.range(100).selectExpr("if(id < 30, null, id % 2) as key")
    hot = hot_keys(frame, "key")
    assert sorted(hot) == [(0, 35, 0), (1, 35, 0)]
    assert hot.total == 70


def test_an_empty_frame_has_no_keys(spark: SparkSession) -> None:
    hot = hot_keys(spark.range(0), "id")
    assert hot.total == 0
    assert list(hot) == []


@pytest.mark.parametrize("epsilon", [0, 1])
def test_a_wrong_epsilon_is_refused(spark: SparkSession, epsilon: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        hot_keys(spark.range(10), "id", epsilon=epsilon)


@pytest.mark.parametrize(
    ("expression", "sort"),
    [
        ("cast(id as float)", "float"),
        ("cast(id as double)", "double"),
        ("cast(id as decimal(9, 2))", r"decimal\(9,2\)"),
        ("date '2026-01-01'", "date"),
        ("timestamp '2026-01-01 00:00:00'", "timestamp"),
        ("array(id)", "array<bigint>"),
        ("struct(id)", "struct<id:bigint>"),
        ("id = 1", "boolean"),
    ],
)
def test_keys_of_another_type_are_refused(spark: SparkSession, expression: str, sort: str) -> None:
    frame = spark.range(10).selectExpr(f"{expression} as key")
    with pytest.raises(TypeError, match=f"the column 'key' of {sort}$"):
        hot_keys(frame, "key")


def test_a_column_that_is_not_there_is_sparks_error(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="missing"):
        hot_keys(spark.range(10), "missing")
