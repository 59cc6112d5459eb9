"""Frequent keys of a frame, against exact counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from callboard.spark import hot_keys

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

Failure = Callable[[Callable[[], object]], str]


def test_few_keys_are_counted_exactly(spark: SparkSession) -> None:
    frame = spark.range(10_000, numPartitions=3).selectExpr("id % 7 as number", "id")
    hot = hot_keys(frame, "number")
    assert {key: count for key, count, _ in hot} == Counter(i % 7 for i in range(10_000))
    assert hot.total == 10_000
    assert hot.top(1) == [(0, 1429, 0)]


@pytest.mark.parametrize(
    "expression",
    ["id % 10", "concat('key ', id % 10)", "cast(concat('key ', id % 10) as binary)"],
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
    assert hot.estimate(0) == (34, 0)


def test_nulls_are_left_out(spark: SparkSession) -> None:
    frame = spark.range(100).selectExpr("if(id < 30, null, id % 2) as key")
    hot = hot_keys(frame, "key")
    assert sorted(hot) == [(0, 35, 0), (1, 35, 0)]
    assert hot.total == 70


def test_an_empty_frame_has_no_keys(spark: SparkSession) -> None:
    hot = hot_keys(spark.range(0), "id")
    assert hot.total == 0
    assert list(hot) == []


@pytest.mark.parametrize("epsilon", [0, 1, float("nan"), "much"])
def test_an_epsilon_that_is_none_is_refused_at_once(spark: SparkSession, epsilon: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        hot_keys(spark.range(10), "id", epsilon=epsilon)


def test_keys_of_another_type_are_refused(spark: SparkSession, failure_of: Failure) -> None:
    frame = spark.range(10).selectExpr("cast(id as double) as key")
    assert "not of double" in failure_of(lambda: hot_keys(frame, "key"))


def test_a_column_that_is_not_there_is_sparks_error(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="missing"):
        hot_keys(spark.range(10), "missing")
