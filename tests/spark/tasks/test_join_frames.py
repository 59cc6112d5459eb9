"""Frames joined by a stream, compared with plain Python."""

from __future__ import annotations

import gc
import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import rand, spark_partition_id
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from callboard.core.errors import ConfigError
from callboard.spark import join_frames
from callboard.spark.errors import CaptureError, PartitionFailed
from callboard.spark.tasks.join_frames import join_partition
from callboard.streams import Equal, Stream, entry
from jobs import Failure

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

Row = dict[str, Any]

TRADE = "ts long, symbol string, price double"
QUOTE = "ts long, symbol string, bid double, exchange string"
PAIR = "ts long, symbol string, price double, quoted long, bid double"
COLUMNS = ("ts", "symbol", "price", "quoted", "bid")
WITHIN = 20

trades, quotes = entry("left", dict), entry("right", dict)


def rows(n: int, seed: int) -> tuple[list[Row], list[Row]]:
    """Make trades and quotes: half of them of one symbol, several of one time."""
    chance = random.Random(seed)

    def some(name: str) -> list[Row]:
        symbols = "A" * 7 + "BCDEFGH"
        return [
            {"ts": chance.randrange(n // 2 + 1), "symbol": chance.choice(symbols), name: at / 2}
            for at in range(n)
        ]

    return some("price"), [{**row, "exchange": "X"} for row in some("bid")]


def frames(spark: SparkSession, n: int, seed: int = 1) -> tuple[DataFrame, DataFrame]:
    left, right = rows(n, seed)
    return spark.createDataFrame(left, TRADE), spark.createDataFrame(right, QUOTE)


def pair(trade: Row | None, quote: Row | None) -> tuple[Any, ...]:
    trade, quote = trade or {}, quote or {}
    symbol = trade.get("symbol") or quote.get("symbol")
    return trade.get("ts"), symbol, trade.get("price"), quote.get("ts"), quote.get("bid")


def joined(**options: Any) -> Stream[Any]:
    chosen: Any = {"where": Equal("symbol"), "combine": pair} | options
    result: Stream[Any] = trades.join(quotes, by="ts", within=WITHIN, **chosen)
    return result


def by_hand(left: list[Row], right: list[Row]) -> list[tuple[Any, ...]]:
    return [
        pair(trade, quote)
        for trade in left
        for quote in right
        if trade["symbol"] == quote["symbol"] and abs(trade["ts"] - quote["ts"]) <= WITHIN
    ]


def job(left: DataFrame, right: DataFrame, stream: Any = None, **options: Any) -> DataFrame:
    chosen: Any = {"key": "symbol", "order": "ts", "partitions": 4, "schema": PAIR} | options
    result: DataFrame = join_frames(left, right, stream or joined(), **chosen)
    return result


@pytest.mark.parametrize("partitions", [1, 3, 12])
def test_it_gives_the_pairs_of_a_plain_program(spark: SparkSession, partitions: int) -> None:
    found = [tuple(row) for row in job(*frames(spark, 3_000), partitions=partitions).collect()]
    assert sorted(found) == sorted(by_hand(*rows(3_000, 1)))


def test_each_partition_gives_all_rows_of_its_keys_in_order(spark: SparkSession) -> None:
    result = job(*frames(spark, 2_000), partitions=12)
    assert result.rdd.getNumPartitions() == 12  # more than there are keys, so some are empty
    homes: dict[str, set[int]] = {}
    come_to: dict[int, int] = {}
    for row in result.withColumn("home", spark_partition_id()).collect():
        homes.setdefault(row.symbol, set()).add(row.home)
        later = max(row.ts, row.quoted)
        assert come_to.get(row.home, 0) <= later
        come_to[row.home] = later
    assert {len(found) for found in homes.values()} == {1}
    assert 1 < len(come_to) < 12


def test_rows_without_a_partner_leave_too(spark: SparkSession) -> None:
    left, right = rows(400, 2)
    right = right[:40]
    result = job(
        spark.createDataFrame(left, TRADE), spark.createDataFrame(right, QUOTE), joined(how="outer")
    )
    pairs = by_hand(left, right)
    prices, bids = {found[2] for found in pairs}, {found[4] for found in pairs}
    alone = [pair(row, None) for row in left if row["price"] not in prices]
    alone += [pair(None, row) for row in right if row["bid"] not in bids]
    assert len(alone) > 10
    assert sorted(map(repr, map(tuple, result.collect()))) == sorted(map(repr, pairs + alone))


def test_an_empty_frame_has_no_partners(spark: SparkSession) -> None:
    left, right = frames(spark, 100)
    assert job(left.limit(0), right).collect() == []
    assert job(left.limit(0), right.limit(0)).collect() == []
    assert job(left, right.limit(0), joined(how="left")).count() == 100


def test_several_columns_may_be_the_key_and_names_may_be_any(spark: SparkSession) -> None:
    left = spark.createDataFrame([(1, "A", 5), (2, "B", 6)], "`a time` long, `k.1` string, k2 int")
    right = spark.createDataFrame([(1, "A", 5), (2, "B", 7)], "`a time` long, `k.1` string, k2 int")
    both = entry("left").join(
        entry("right"), by="a time", within=0, where=Equal("k.1") & Equal("k2")
    )
    stream = both.map(lambda found: {"k2": found[1]["k2"], "time": found[0]["a time"]})
    result = join_frames(
        left,
        right,
        stream,
        key=("k.1", "k2"),
        order="a time",
        partitions=2,
        schema="time long, k2 int",
    )
    assert [tuple(row) for row in result.collect()] == [(1, 5)]


def test_rows_of_one_time_have_one_order_however_they_come(spark: SparkSession) -> None:
    """With a window of rows, the order of rows of one time decides about the pairs."""
    left, right = frames(spark, 600)
    few = left.withColumn("ts", left.ts % 5), right.withColumn("ts", right.ts % 5)
    stream = trades.join(quotes, by="ts", rows=3, where=Equal("symbol"), combine=pair)
    answers = set()
    for seed in range(3):
        left, right = (frame.orderBy(rand(seed)) for frame in few)
        answers.add(tuple(job(left, right, stream).collect()))
    assert len(answers) == 1


# --- what is wrong --------------------------------------------------------------------------------


def test_a_stream_that_raises_names_the_row(spark: SparkSession, failure_of: Failure) -> None:
    def careful(trade: Row, quote: Row) -> tuple[Any, ...]:
        if trade["price"] == 50.0:
            raise ValueError("not this one")
        return pair(trade, quote)

    told = failure_of(lambda: job(*frames(spark, 400), joined(combine=careful)).collect())
    assert "operator 'join' failed at input" in told
    assert "in partition" in told
    assert "not this one" in told
    assert "'price': 50.0" in told or "'bid'" in told  # the later row of the pair


def test_null_as_the_order_is_refused(spark: SparkSession, failure_of: Failure) -> None:
    left, right = frames(spark, 100)
    some = right.selectExpr("if(bid = 30, null, ts) as ts", "symbol", "bid", "exchange")
    told = failure_of(lambda: job(left, some).collect())
    assert "'ts' is null in a row of the right frame" in told
    assert "'bid': 30.0" in told


def test_a_stream_in_another_order_has_late_rows(spark: SparkSession, failure_of: Failure) -> None:
    by_price = trades.join(
        quotes, by=("price", "bid"), within=1, where=Equal("symbol"), combine=pair
    )
    told = failure_of(lambda: job(*frames(spark, 100), by_price).collect())
    assert "rows were late: {'join': " in told
    assert "are those of 'ts'" in told


@pytest.mark.parametrize(
    ("combine", "says"),
    [
        (lambda trade, quote: (trade["ts"], quote["ts"]), "with the columns ['ts', 'symbol'"),
        (lambda trade, quote: dict.fromkeys(("ts", *COLUMNS[2:], "sym")), "with the columns"),
        (lambda trade, quote: trade["ts"], "an output must be a dictionary or a tuple"),
        (
            lambda trade, quote: (1, "A", "much", 2, 3.0),
            "does not fit column 'price', which is double",
        ),
        (lambda trade, quote: (2**63, "A", 1.0, 2, 3.0), "does not fit column 'ts'"),
    ],
)
def test_an_output_outside_the_schema_is_refused(
    spark: SparkSession, failure_of: Failure, combine: Any, says: str
) -> None:
    told = failure_of(lambda: job(*frames(spark, 100), joined(combine=combine)).collect())
    assert says in told


def test_null_in_a_not_null_column_is_refused(spark: SparkSession, failure_of: Failure) -> None:
    schema = PAIR.replace("bid double", "bid double not null")
    stream = joined(combine=lambda trade, quote: (*pair(trade, quote)[:4], None))
    told = failure_of(lambda: job(*frames(spark, 100), stream, schema=schema).collect())
    assert "a null in column 'bid'" in told


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"key": "price"}, "the right frame has no column 'price': it has ['ts', "),
        ({"key": ["symbol", "bid"]}, "the left frame has no column 'bid'"),
        ({"key": []}, "or several names, got []"),
        ({"key": [7]}, "the left frame has no column 7"),
        ({"order": "time"}, "the left frame has no column 'time'"),
        ({"partitions": 0}, "partitions"),
        ({"partitions": None}, "partitions"),
        ({"schema": "long"}, "schema expects a StructType"),
        ({"stream": joined().collect()}, "stream expects a stream without a sink"),
        (
            {"stream": entry("left")},
            "stream must have the entries 'left' and 'right', got ['left']",
        ),
        ({"stream": joined().union(entry("more"))}, "'right', 'more'"),
    ],
)
def test_wrong_arguments_are_refused(spark: SparkSession, options: Row, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        job(*frames(spark, 1), **options)
    assert says in str(refused.value)


def test_frames_of_wrong_columns_are_refused(spark: SparkSession) -> None:
    left, right = frames(spark, 1)
    refused: list[tuple[Any, str]] = [
        ([{"ts": 1, "symbol": "A"}], "right expects a frame of Spark, got "),
        (right.withColumn("ts", right.ts.cast("int")), "'ts' is bigint in the left frame and int "),
        (right.select("*", "bid"), "the right frame has 2 columns 'bid'"),
    ]
    for other, says in refused:
        with pytest.raises(ConfigError, match=says):
            job(left, other)


def test_a_stream_that_cannot_travel_is_refused(spark: SparkSession) -> None:
    lock = Lock()

    def captured(trade: Row, quote: Row) -> Any:
        with lock:
            return pair(trade, quote)

    with pytest.raises(CaptureError, match=r"stream \(Stream\) cannot be pickled"):
        job(*frames(spark, 1), joined(combine=captured))


# --- a partition alone, without Spark -------------------------------------------------------------

SIDES = pa.schema(
    [
        ("left", pa.struct([("ts", pa.int64()), ("price", pa.float64())])),
        ("right", pa.struct([("ts", pa.int64()), ("bid", pa.float64())])),
    ]
)
FOUND = StructType([StructField("ts", LongType()), StructField("bid", DoubleType())])


def partition(n: int, sides: Sequence[str] = ("left", "right")) -> Iterator[pa.RecordBatch]:
    """Give batches of rows in order, one of each side at each time."""
    for at in range(0, n, 1_000):
        rows = [
            {side: {"ts": ts, "price": 1.0, "bid": float(ts)}}
            for ts in range(at, at + 1_000)
            for side in sides
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=SIDES)


def near(**options: Any) -> Stream[Any]:
    return trades.join(quotes, by="ts", within=1, **options)


def times(found: tuple[Row, Row]) -> tuple[Any, ...]:
    return found[0]["ts"], found[1]["bid"]


def rows_given(stream: Stream[Any], batches: Iterable[pa.RecordBatch], each: int) -> int:
    """Count what comes of batches, of which each gives so many rows, while they are read."""
    read = given = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for batch in batches:
            read += 1
            yield batch

    for batch in join_partition(stream, "ts", FOUND)(counted()):
        given += batch.num_rows
        assert given >= (read - 8) * each  # what is on its way is bounded
    return given


def test_outputs_come_while_the_partition_is_read() -> None:
    assert rows_given(near().map(times), partition(50_000), 3_000) == 3 * 50_000 - 2


def test_a_side_without_rows_holds_nothing_up() -> None:
    """Watermarks say how far the partition has come."""
    alone = near(how="anti").map(lambda row: (row["ts"], None))
    assert rows_given(alone, partition(50_000, ["left"]), 1_000) == 50_000


def test_a_part_of_the_stream_may_have_a_thread_of_its_own() -> None:
    apart = near().run_on("dedicated").map(times)
    given = join_partition(apart, "ts", FOUND)(partition(20_000))
    assert sum(batch.num_rows for batch in given) == 3 * 20_000 - 2


def test_a_failure_in_a_partition_leaves_no_run_behind() -> None:
    def careful(found: tuple[Row, Row]) -> tuple[Any, ...]:
        if found[0]["ts"] == 5_000:
            raise ValueError("not this one")
        return times(found)

    with pytest.raises(PartitionFailed, match="not this one"):
        list(join_partition(near().map(careful), "ts", FOUND)(partition(20_000)))
    given = join_partition(near().map(times), "ts", FOUND)(partition(1_000))
    assert sum(batch.num_rows for batch in given) == 3 * 1_000 - 2


def test_a_partition_that_is_not_read_to_its_end_leaves_no_run_behind() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        given = join_partition(near().map(times), "ts", FOUND)(partition(20_000))
        next(given)
        del given
        gc.collect()
    assert [str(each.message) for each in told] == []
