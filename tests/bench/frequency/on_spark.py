"""The frequent keys of a frame of Spark, by a warm job over a cached frame of four partitions."""

from collections import Counter
from time import perf_counter
from typing import Any

import pyarrow

from callboard.spark import hot_keys, session
from frequency.counting_keys import EPSILON, TOP
from frequency.zipf import zipf
from savina.result import Result

TRACKED = 10_000
SLACK = 3.5 / 2**14  # of approx_top_k: its map has the next power of two that holds so many


def run(n: int, *, by: str = "hot_keys", alpha: float = 1.0) -> Result:
    numbers = zipf(n, alpha)
    spark = session("local[2]")
    frame = spark.createDataFrame(pyarrow.table({"key": numbers})).repartition(4).cache()
    if frame.count() != n:
        raise RuntimeError("the frame is not the stream")
    job = BY[by]
    job(frame)
    begin = perf_counter()
    found = job(frame)
    seconds = perf_counter() - begin
    slack = {"hot_keys": EPSILON, "approx_top_k": SLACK, "group_by": 0.0}[by] * n
    top = Counter(numbers.tolist()).most_common(TOP)
    good = sum(abs(found.get(key, 0) - times) <= slack for key, times in top)
    return Result(n, seconds, got=good, want=len(top))


def by_hot_keys(frame: Any) -> dict[int, int]:
    return {key: count for key, count, _ in hot_keys(frame, "key", epsilon=EPSILON).top(2 * TOP)}


def by_approx_top_k(frame: Any) -> dict[int, int]:
    (row,) = frame.selectExpr(f"approx_top_k(key, {2 * TOP}, {TRACKED})").collect()
    return {each["item"]: each["count"] for each in row[0]}


def by_group_by(frame: Any) -> dict[int, int]:
    rows = frame.groupBy("key").count().orderBy("count", ascending=False).limit(2 * TOP).collect()
    return {row["key"]: row["count"] for row in rows}


BY = {"hot_keys": by_hot_keys, "approx_top_k": by_approx_top_k, "group_by": by_group_by}
