"""The columns of Arrow batches that are merged and joined: of any type, size and dictionary."""

from __future__ import annotations

import random
from typing import Any

import pytest

from callboard.streams import Equal, Graph, Watermark, entry
from callboard.streams.programs.columns import layouts
from tests.streams.batch_cases import batch, rows_in

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

TEXTS = ["", "x", "ß", "long " * 5]


def nested_in(arrow: Any) -> list[Any]:
    """Types that have values of a type."""
    return [
        pa.list_(arrow),
        pa.large_list(arrow),
        pa.list_view(arrow),
        pa.large_list_view(arrow),
        pa.list_(arrow, 2),
        pa.struct({"a": arrow, "b": pa.int8()}),
        pa.map_(pa.string(), arrow),
    ]


SINGLE = [
    pa.string(),
    pa.string_view(),
    pa.binary(),
    pa.binary_view(),
    pa.large_string(),
    pa.int8(),
]
NESTED = [each for single in SINGLE for each in nested_in(single)]
DEEP = [each for nested in nested_in(pa.string_view()) for each in nested_in(nested)]


def value_of(arrow: Any, drawn: random.Random) -> Any:
    """Draw a value of a type, sometimes None."""
    if drawn.random() < 0.2:
        return None
    if pa.types.is_struct(arrow):
        return {field.name: value_of(field.type, drawn) for field in arrow}
    if pa.types.is_map(arrow):
        return [(f"{n}", value_of(arrow.item_type, drawn)) for n in range(drawn.randrange(3))]
    if pa.types.is_nested(arrow):
        size = arrow.list_size if pa.types.is_fixed_size_list(arrow) else drawn.randrange(4)
        return [value_of(arrow.value_type, drawn) for _ in range(size)]
    if pa.types.is_integer(arrow):
        return drawn.randrange(100)
    text = drawn.choice(TEXTS)
    return text if "string" in str(arrow) else text.encode()


@pytest.mark.parametrize("arrow", [*SINGLE, *NESTED, *DEEP], ids=str)
def test_values_of_any_type_come_through(arrow: Any) -> None:
    drawn = random.Random(28)
    column = pa.array([value_of(arrow, drawn) for _ in range(40)], arrow)
    whole = batch(t=range(40), c=column)
    pieces = [whole.slice(at, size) for at, size in ((0, 7), (7, 0), (7, 20), (27, 13))]
    merged = entry("a").merge_batches(entry("b"), by="t", n=9).collect()
    out = merged.run_sequentially({"a": pieces[::2], "b": pieces[1::2]})
    for each in out:
        each.validate(full=True)
    assert rows_in(out) == rows_in([whole])


def test_dictionaries_may_differ_from_batch_to_batch() -> None:
    def some(begin: int, count: int) -> Any:
        index = pa.int8() if count < 128 else pa.int16()
        words = pa.array([f"w{n}" for n in range(begin, begin + count)])
        at = pa.array(range(count), index)
        return batch(t=range(begin, begin + count), d=pa.DictionaryArray.from_arrays(at, words))

    inputs = {"a": [some(0, 100), some(100, 100), some(200, 200)], "b": [some(50, 100)]}
    merged = entry("a").merge_batches(entry("b"), by="t").collect().run_sequentially(inputs)
    rows = {name: rows_in(batches) for name, batches in inputs.items()}
    wanted = entry("a").merge(entry("b"), by="t").collect().run_sequentially(rows)
    assert rows_in(merged) == wanted
    assert merged[0].schema.field("d").type == pa.dictionary(pa.int32(), pa.string())
    graph = entry("a").join_batches(
        entry("b"), by="t", within=0, where=Equal("d"), how="outer", n=64
    )
    pairs = rows_in(graph.collect().run_sequentially(inputs))
    assert [row["d"] for row in pairs] == [f"w{n}" for n in range(400)]
    assert [row["d_right"] for row in pairs if row["d_right"]] == [f"w{n}" for n in range(50, 150)]


@pytest.mark.parametrize("dictionary", [["x", None], [{"n": 1}, {"n": 2}], [[1], [2, 3]]])
def test_dictionaries_of_any_values_come_through(dictionary: Any) -> None:
    def some(t: int, values: Any) -> Any:
        at = pa.array([0, 1, None], pa.uint8())
        return batch(t=[t] * 3, d=pa.DictionaryArray.from_arrays(at, pa.array(values)))

    batches = [some(1, dictionary), some(2, dictionary[::-1])]
    merged = entry("a").merge_batches(entry("b"), by="t").collect()
    assert rows_in(merged.run_sequentially({"a": batches})) == rows_in(batches)


@pytest.mark.parametrize(
    ("column", "plain"),
    [
        (pa.array(["x", None, "long " * 9], pa.string_view()), pa.string()),
        (pa.array([b"x", None, b"long " * 9], pa.binary_view()), pa.binary()),
        (pa.array([[1], None, []], pa.list_view(pa.int8())), pa.list_(pa.int8())),
        (pa.array([[1], None, []], pa.large_list_view(pa.int8())), pa.large_list(pa.int8())),
        (pa.array([["x"], None, [None]], pa.list_(pa.string_view())), pa.list_(pa.string())),
        (
            pa.array([{"w": "x"}, None, {"w": None}], pa.struct({"w": pa.string_view()})),
            pa.struct({"w": pa.string()}),
        ),
        (
            pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", None])),
            pa.string(),
        ),
        (
            pa.DictionaryArray.from_arrays(
                pa.array([0, 1, None], pa.uint32()), pa.array(["x", "y"], pa.string_view())
            ),
            pa.dictionary(pa.int32(), pa.string()),
        ),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_columns_of_views_and_run_ends_come_out_plain(column: Any, plain: Any) -> None:
    batches = [batch(t=[1, 2, 3], c=column), batch(t=[2, 3, 4], c=column)]
    sent = {"a": batches[:1], "b": batches[1:]}
    merged = entry("a").merge_batches(entry("b"), by="t").collect().run_sequentially(sent)
    assert merged[0].schema.field("c").type == plain
    rows = {name: rows_in(some) for name, some in sent.items()}
    wanted = entry("a").merge(entry("b"), by="t").collect().run_sequentially(rows)
    assert rows_in(merged) == wanted
    joined = entry("a").join_batches(entry("b"), by="t", within=0, how="outer")
    out = rows_in(joined.collect().run_sequentially(sent))
    values = [*column.to_pylist(), None]
    assert [row["c"] for row in out] == values
    assert [row["c_right"] for row in out] == [values[3], *values[:3]]


def test_views_and_run_ends_are_keys_and_times() -> None:
    words = pa.array(["x", "y"], pa.string_view())
    times = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([7]))
    sent = {name: [batch(t=times, k=words)] for name in "ab"}
    graph = entry("a").join_batches(entry("b"), by="t", within=0, where=Equal("k")).collect()
    [out] = graph.run_sequentially(sent)
    assert out["k"].to_pylist() == ["x", "y"]


def test_a_mask_sees_columns_as_they_came() -> None:
    seen: list[Any] = []

    def mask(row: dict[str, Any], others: Any) -> Any:
        seen.append((row, others.schema))
        return pc.equal(others["w"], row["w"])

    sent = {name: [batch(t=[1, 2], w=["x", "y"])] for name in "ab"}
    graph = entry("a").join_batches(entry("b"), by="t", within=9, where=mask).collect()
    assert len(rows_in(graph.run_sequentially(sent))) == 2
    assert [row["w"] for row, _ in seen] == ["x", "y", "y"]
    assert {schema for _, schema in seen} == {pa.schema({"t": pa.int64(), "w": pa.string()})}


def test_late_rows_are_as_they_came() -> None:
    merged = entry("a").merge_batches(entry("b"), by="t", late="side")
    graph = Graph(merged.collect(name="out"), merged.side("late").collect(name="late"))
    sent = {"a": [batch(t=[5, 1], w=["x", "y"])]}
    out = graph.run_sequentially(sent)
    assert [each.schema for each in out["late"]] == [pa.schema({"t": pa.int64(), "w": pa.string()})]


def test_columns_that_are_not_null_stay_so() -> None:
    def some(*, t: bool, x: bool) -> Any:
        fields = [pa.field("t", pa.int64(), t), pa.field("x", pa.string(), x)]
        return pa.record_batch({"t": [1, 2], "x": ["x", "y"]}, pa.schema(fields))

    def nullable(stream: Any, sent: dict[str, Any]) -> list[bool]:
        [out] = stream.collect().run_sequentially(sent)
        return [field.nullable for field in out.schema]

    sent = {"a": [some(t=False, x=False)], "b": [some(t=False, x=True)]}
    a, b = entry("a"), entry("b")
    assert nullable(a.merge_batches(b, by="t"), sent) == [False, True]
    assert nullable(a.merge_batches(b, by="t"), {"a": sent["a"]}) == [False, False]
    kinds: dict[Any, list[bool]] = {
        "inner": [False, False, False, True],
        "left": [False, False, True, True],
        "right": [True, True, False, True],
        "outer": [True, True, True, True],
        "semi": [False, False],
    }
    for how, wanted in kinds.items():
        assert nullable(a.join_batches(b, by="t", within=9, how=how), sent) == wanted


def test_a_stream_that_comes_after_the_first_output_may_bring_nulls() -> None:
    fields = [pa.field("t", pa.int64(), False), pa.field("x", pa.int64(), False)]
    told = pa.record_batch({"t": [1], "x": [1]}, pa.schema(fields))
    late = batch(t=[6], x=pa.array([None], pa.int64()))
    sent = [("b", [Watermark(5)]), ("a", [told, Watermark(9)]), ("b", [late])]
    graph = entry("a").merge_batches(entry("b"), by="t", n=1).collect()
    out = graph.run_sequentially(sent, batch_size=1)
    assert rows_in(out) == [{"t": 1, "x": 1}, {"t": 6, "x": None}]
    assert out[0].schema == out[1].schema


@pytest.mark.parametrize("column", ["text", "bytes", "many", "struct"])
def test_a_column_over_the_limit_is_split(monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    monkeypatch.setattr(layouts, "MOST_BYTES", 1_000)

    def some(begin: int) -> Any:
        values: dict[str, Any] = {"text": "x" * 90, "bytes": b"x" * 90, "many": [7] * 12}
        values["struct"] = {"text": "x" * 90}
        return batch(t=range(begin, begin + 8), c=[values[column]] * 8)

    inputs = {"a": [some(0), some(8)], "b": [some(4)]}
    merged = entry("a").merge_batches(entry("b"), by="t").collect().run_sequentially(inputs)
    assert len(merged) == 4
    assert {each.schema for each in merged} == {inputs["a"][0].schema}
    rows = {name: rows_in(batches) for name, batches in inputs.items()}
    wanted = entry("a").merge(entry("b"), by="t").collect().run_sequentially(rows)
    assert rows_in(merged) == wanted
