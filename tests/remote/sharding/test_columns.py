"""A row in a record batch goes where it goes as a row of Python's."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.errors import ConfigError
from callboard.remote.errors import CodecError
from callboard.remote.sharding.keys import ShardKey, divide_batch

pa = pytest.importorskip("pyarrow")

SHARDS = 5
NAN = float("nan")

COLUMNS = [
    pa.array([None, True, False], pa.bool_()),
    *[pa.array([0, 1, None, 100], kind) for kind in (pa.int8(), pa.uint16(), pa.int32())],
    pa.array([-(2**63), 2**63 - 1, -1, 0, 1, 2**61 - 1, 2**61, None], pa.int64()),
    pa.array([2**64 - 1, 2**63, 0, None], pa.uint64()),
    pa.array([0.0, -0.0, 1.0, 0.1, NAN, None, float("inf"), float("-inf"), 1e300, 5e-324, -7.5]),
    pa.array([0.1, 1.0, None, NAN], pa.float32()),
    *[
        pa.array(["", "a", None, "häßlich", "a text of more than sixteen bytes"], kind)
        for kind in (pa.string(), pa.large_string())
    ],
    *[pa.array([b"", b"a", None, b"\0" * 40], kind) for kind in (pa.binary(), pa.large_binary())],
    pa.array([b"abcd", None], pa.binary(4)),
    pa.array([date(1970, 1, 1), date(1, 1, 1), None, date(9999, 12, 31)]),
    pa.array([date(2024, 2, 29), None], pa.date64()),
    *[
        pa.array([datetime(2024, 2, 29, 12), None, datetime(1900, 1, 1)], pa.timestamp(unit))
        for unit in ("s", "ms", "us")
    ],
    pa.array([datetime(2024, 6, 1, tzinfo=UTC), None], pa.timestamp("us", "Europe/Berlin")),
    pa.array(
        [datetime(2024, 10, 27, hour, 30, tzinfo=UTC) for hour in (0, 1)],  # 02:30, twice
        pa.timestamp("ms", "Europe/Berlin"),
    ),
    pa.array([timedelta(1), None, timedelta(microseconds=-1)], pa.duration("us")),
    pa.array([timedelta(1)], pa.duration("s")),
    pa.array([Decimal("1.00"), Decimal("0.50"), None, Decimal("-7.25")]),
    pa.nulls(3),
    pa.array(["x", "y", None, "x"]).dictionary_encode(),
    pa.array([], pa.string()),
    pa.array([], pa.int64()),
]


def check(batch: Any, by: Any) -> None:
    key = ShardKey(by, SHARDS)
    parts = divide_batch(batch, key)
    assert [repr(part.to_pylist()) for part in parts] == [
        repr(rows) for rows in key.divide(batch.to_pylist())
    ]
    assert all(part.schema == batch.schema for part in parts)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_a_columns_row_goes_where_pythons_row_goes(column: Any) -> None:
    batch = pa.record_batch({"k": column, "at": pa.array(range(len(column)), pa.int32())})
    check(batch, "k")
    check(batch, ["k"])
    check(batch, ["at", "k"])
    for first in range(len(column)):
        check(batch.slice(first, 2), "k")


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(),
            st.none() | st.text(),
            st.none() | st.binary(),
        )
    )
)
def test_any_rows_do(rows: list[Any]) -> None:
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.binary()]
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    batch = pa.record_batch(columns, list("abcd"))
    for by in ("a", "b", "c", "d", ["d", "b", "a", "c"]):
        check(batch, by)


def test_a_batch_of_one_shard_is_not_copied() -> None:
    batch = pa.record_batch({"k": ["same"] * 3})
    assert any(part is batch for part in divide_batch(batch, ShardKey("k", SHARDS)))


def test_a_wrong_key_column_is_refused() -> None:
    key = ShardKey("k", SHARDS)
    for column, says in [
        (pa.array([[1]]), "column 'k', of list<.*>, cannot be a key: .*got a builtins.list"),
        (
            pa.array([1], pa.timestamp("ns")),
            "column 'k', of timestamp.ns., cannot be a key: .*lose data",
        ),
    ]:
        with pytest.raises(CodecError, match=says):
            divide_batch(pa.record_batch({"k": column}), key)
    with pytest.raises(CodecError, match="a batch has 0 columns 'k'"):
        divide_batch(pa.record_batch({"j": [1]}), key)
    twice = pa.record_batch([pa.array([1]), pa.array([1])], ["k", "k"])
    with pytest.raises(CodecError, match="a batch has 2 columns 'k'"):
        divide_batch(twice, key)
    with pytest.raises(CodecError, match="got a list"):
        divide_batch([], key)
    with pytest.raises(ConfigError, match="divided by a column"):
        divide_batch(pa.record_batch({"k": [1]}), ShardKey(lambda row: row, SHARDS))


def test_payloads_of_views_and_run_ends_are_divided() -> None:
    words = [f"word {n}" for n in range(100)]
    columns = {
        "k": pa.array(words, pa.string_view()),
        "bytes": pa.array([word.encode() for word in words], pa.binary_view()),
        "runs": pa.RunEndEncodedArray.from_arrays(
            pa.array([40, 100], pa.int32()), pa.array([1, 2])
        ),
        "many": pa.array([[word] for word in words], pa.list_(pa.string_view())),
        "n": pa.array(range(100)),
    }
    batch = pa.record_batch(columns)
    key = ShardKey("k", SHARDS)
    parts = divide_batch(batch, key)
    assert len({part.schema for part in parts}) == 1
    assert parts[0].schema.field("k").type == pa.string()
    rows = [row for part in parts for row in part.to_pylist()]
    assert sorted(rows, key=lambda row: row["n"]) == batch.to_pylist()
    for shard, part in enumerate(parts):
        assert all(key.of_row(row) == shard for row in part.to_pylist())


def test_a_payload_that_arrow_cannot_divide_is_refused_by_its_name() -> None:
    views = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array(["x"], pa.string_view())])
    batch = pa.record_batch({"k": [1], "w": views})
    with pytest.raises(CodecError, match=r"column 'w': Arrow cannot take rows of sparse_union<"):
        divide_batch(batch, ShardKey("k", SHARDS))
