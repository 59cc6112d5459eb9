"""The band join by Spark's join of two streams, which read files of rows, on two cores.

Spark wants something equal: a column that is 0 everywhere. The rows are in two files a stream, of
which a micro-batch reads one; the query is timed from its start to its end, the second time.
"""

import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow
from pyarrow import parquet
from pyspark.sql.functions import expr

from callboard.spark import session
from savina.result import Result
from streams.band_join import columns
from streams.band_rows import BAND, digest, partners, rows

FILES = 2


def run(n: int, *, within: int = 500) -> Result:
    lefts, rights = rows(n // 2)
    want = digest(partners(lefts, rights, within))
    conf: dict[str, Any] = {"spark.sql.shuffle.partitions": 1}
    spark = session("local[2]", **conf)
    with tempfile.TemporaryDirectory() as folder:
        for name, side in (("r", lefts), ("s", rights)):
            Path(folder, name).mkdir()
            size = -(-len(side) // FILES)
            for number in range(FILES):
                part = columns(side[number * size : (number + 1) * size])
                table = pyarrow.table(part).append_column("k", pyarrow.array([0] * len(part["ts"])))
                parquet.write_table(table, Path(folder, name, f"{number}.parquet"))
        query(spark, folder, within, "warm")
        begin = perf_counter()
        found = query(spark, folder, within, "pairs")
        seconds = perf_counter() - begin
    return Result(2 * (n // 2), seconds, got=digest(found), want=want)


def query(spark: Any, folder: str, within: int, name: str) -> list[tuple[Any, ...]]:
    """Run the query to its end; its answer is a table of this name."""

    def side(which: str) -> Any:
        path = f"{folder}/{which}"
        files = spark.readStream.schema(spark.read.parquet(path).schema)
        read = files.option("maxFilesPerTrigger", 1).parquet(path)
        timed = read.selectExpr("*", "timestamp_seconds(ts) as time")
        return timed.withWatermark("time", "0 seconds").alias(which)

    near = expr(
        f"r.k = s.k and x between a - {BAND} and a + {BAND} and y between b - {BAND} and b + {BAND}"
        f" and r.time between s.time - interval {within} seconds"
        f" and s.time + interval {within} seconds"
    )
    both = side("r").join(side("s"), near)
    pairs = both.selectExpr("greatest(r.ts, s.ts)", "x", "y", "z", "a", "b", "c", "d")
    writer = pairs.writeStream.format("memory").queryName(name).trigger(availableNow=True)
    writer.start().awaitTermination()
    return [tuple(row) for row in spark.table(name).collect()]
