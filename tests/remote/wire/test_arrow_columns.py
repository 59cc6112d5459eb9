"""Columns that refer to few bytes many times, or hold values without bytes, are detected early."""

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from callboard.remote.errors import CodecError
from callboard.remote.wire import arrow_ipc
from callboard.remote.wire.arrow_columns import check_types
from callboard.remote.wire.arrow_ipc import ArrowReader, read_batches
from callboard.remote.wire.texts import views_cut_between_letters
from tests.remote.wire.test_unpacking import taken

pa = pytest.importorskip("pyarrow")
MOST = 2**31 - 1


def stream(batches: Sequence[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


def batch_of(*columns: Any) -> Any:
    return pa.RecordBatch.from_arrays(list(columns), [f"c{at}" for at in range(len(columns))])


def views(text: bytes, places: list[tuple[int, int]], kind: Any) -> Any:
    """Return a column of views on one text, each a place in it and a length."""
    packed = b"".join(
        struct.pack("<i4sii", length, text[at : at + 4], 0, at) for at, length in places
    )
    buffers = [None, pa.py_buffer(packed), pa.py_buffer(text)]
    return pa.Array.from_buffers(kind, len(places), buffers)


ASCII = b"abcdefgh" * 100_000
LETTERS = "aü".encode() * 300_000


@pytest.mark.parametrize("text", [ASCII, LETTERS])
def test_texts_may_share_their_letters(text: bytes) -> None:
    """As they do after a join, thousands of times; they are looked at once."""
    column = views(text, [(0, len(text))] * 5_000, pa.string_view())
    (back,) = read_batches(stream([batch_of(column)]))
    assert len(back) == 5_000
    assert back.column(0)[4_999].as_py() == text.decode()


@pytest.mark.parametrize("cut", [(2, 18), (1, 19), (2, 19)])
def test_texts_that_are_cut_within_a_letter_are_refused(cut: tuple[int, int]) -> None:
    column = views("aü".encode() * 10, [(0, 15), cut], pa.string_view())
    with pytest.raises(CodecError, match="column 'c0' of type string_view"):
        read_batches(stream([batch_of(column)]))
    many = views(LETTERS, [(0, 600_000), (2, 600_000)] * 1_000, pa.string_view())
    with pytest.raises(CodecError, match="column 'c0' of type string_view: its values refer to"):
        read_batches(stream([batch_of(many)]))


def test_short_texts_in_the_views_themselves_are_looked_at() -> None:
    good = pa.array(["ü", None, "abc", "a text that is longer"], pa.string_view())
    (back,) = read_batches(stream([batch_of(good)]))
    assert back.column(0).to_pylist() == good.to_pylist()
    packed = struct.pack("<i12s", 3, b"a\xffb")
    bad = pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(packed)])
    with pytest.raises(CodecError, match="column 'c0' of type string_view"):
        read_batches(stream([batch_of(bad)]))


def test_views_that_lead_out_of_their_buffers_are_refused() -> None:
    for kind in (pa.string_view(), pa.binary_view()):
        for place in ((len(ASCII) - 5, 20), (-1, 20), (0, -20), (0, MOST)):
            column = views(ASCII, [place], kind)
            with pytest.raises(CodecError, match=f"column 'c0' of type {kind}"):
                read_batches(stream([batch_of(column)]))


def test_views_are_counted_before_they_are_looked_at() -> None:
    with pytest.raises(ValueError, match="2 views from 0 on, in 16 bytes"):
        views_cut_between_letters(bytes(16), 0, 2, [])
    with pytest.raises(ValueError, match="views from -1 on"):
        views_cut_between_letters(bytes(16), -1, 1, [])


def test_views_within_a_list_may_not_refer_to_a_text_too_often() -> None:
    column = views(LETTERS, [(0, len(LETTERS))] * 5_000, pa.string_view())
    lists = pa.ListArray.from_arrays(pa.array([0, 5_000], pa.int32()), column)
    with pytest.raises(CodecError, match=r"column 'c0' of type list<.*its values refer to parts"):
        read_batches(stream([batch_of(lists)]))
    few = pa.ListArray.from_arrays(pa.array([0, 5], pa.int32()), column.slice(0, 5))
    assert read_batches(stream([batch_of(few)]))[0].num_rows == 1


WORDS = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["a" * 1_000_000]))


def test_a_dictionary_is_not_looked_through_for_thousands_of_batches() -> None:
    with pytest.raises(CodecError, match=r"column 'c0' of type dictionary<.*refer to parts"):
        read_batches(stream([batch_of(WORDS)] * 1_000))
    assert len(read_batches(stream([batch_of(WORDS)] * 10))) == 10


def test_columns_that_share_one_text_are_not_all_looked_through() -> None:
    """The places of their buffers are whatever the metadata say."""
    batch = batch_of(pa.array(["a" * 1_000_000]), *[pa.array(["b" * 100])] * 100)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    whole = bytearray(sink.getvalue().to_pybytes())
    # A Buffer of the metadata is two numbers of 64 bits: where it lies in the body, how long it is.
    first = struct.pack("<qq", 64, 1_000_000)
    if first not in whole:  # as it is padded
        first = next(
            bytes(whole[at : at + 16])
            for at in range(0, 20_000, 8)
            if struct.unpack_from("<q", whole, at + 8)[0] == 1_000_000
        )
    changed = 0
    for at in range(0, 20_000, 8):
        if struct.unpack_from("<q", whole, at + 8)[0] == 100:
            whole[at : at + 16] = first
            changed += 1
    assert changed == 100
    with pytest.raises(CodecError, match="refer to parts"):
        read_batches(bytes(whole))


def lists_of(items: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)


WEIGHTLESS = {
    "nulls in a list": lists_of(pa.nulls(MOST)),
    "nulls in a list of lists": lists_of(lists_of(pa.nulls(MOST))),
    "nulls in a list of a size": pa.FixedSizeListArray.from_arrays(pa.nulls(1 << 20), 1 << 20),
    "nulls in a struct in a list": lists_of(pa.StructArray.from_arrays([pa.nulls(1 << 25)], ["n"])),
    "bytes of no length": lists_of(
        pa.Array.from_buffers(pa.binary(0), MOST, [None, pa.py_buffer(b"")])
    ),
    "structs of nothing": lists_of(pa.Array.from_buffers(pa.struct([]), MOST, [None], 0)),
    "a run": lists_of(
        pa.RunEndEncodedArray.from_arrays(pa.array([MOST], pa.int32()), pa.array([1]))
    ),
    "nulls in a dictionary": pa.DictionaryArray.from_arrays(
        pa.array([0], pa.int8()), pa.nulls(1 << 25)
    ),
    "nulls": pa.nulls(MOST),
}


@pytest.mark.parametrize("column", WEIGHTLESS.values(), ids=WEIGHTLESS)
def test_values_without_bytes_cannot_be_any_number(column: Any) -> None:
    whole = stream([batch_of(column)])
    assert len(whole) < 2_000
    with pytest.raises(CodecError, match=r"(values|rows) in"):
        read_batches(whole)


def test_columns_of_nulls_beside_others_are_taken() -> None:
    numbers = pa.array(range(10_000))
    batch = batch_of(numbers, *[pa.nulls(10_000)] * 40, lists_of(pa.nulls(10)).take([0] * 10_000))
    (back,) = read_batches(stream([batch]))
    assert back.equals(batch)


def test_a_batch_without_columns_keeps_its_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, 3, 4, 5]}).select([])
    (back,) = read_batches(stream([batch]))
    assert back.num_rows == 5


def test_a_stream_is_looked_through_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_ipc, "_SLICE", 1_000_000)
    whole = stream([batch_of(pa.array([at]), pa.array(["x"])) for at in range(100)])
    slices, batches = taken(ArrowReader().reading(whole))
    assert slices > 10
    assert len(batches) == 100


UNION = pa.Array.from_buffers(
    pa.sparse_union([pa.field("a", pa.int32())]),
    0,
    [None, pa.py_buffer(b"")],
    children=[pa.array([], pa.int32())],
)
NOT_READ = {
    "an empty union": UNION,
    "a dense union": pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
    ),
    "an extension": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16))),
    "runs of list views": pa.RunEndEncodedArray.from_arrays(
        pa.array([1], pa.int16()), pa.array([[1]], pa.list_view(pa.int8()))
    ),
    "months": pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    "a union in a struct in a list": lists_of(pa.StructArray.from_arrays([UNION], ["u"])),
    "an extension in a list": lists_of(
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))
    ),
}


@pytest.mark.parametrize("column", NOT_READ.values(), ids=NOT_READ)
def test_types_without_a_reader_are_refused_on_both_sides(column: Any) -> None:
    """Pyarrow's full validation passes an empty union, and `nbytes` of it ended the process."""
    batch = batch_of(pa.array([1] * len(column)), column)
    with pytest.raises(CodecError, match=r"column 'c1' has the type .* are not taken"):
        read_batches(stream([batch]))
    with pytest.raises(CodecError, match=r"column 'c1' has the type .* are not taken"):
        arrow_ipc.write_batch(batch)


EVERY = {
    "lists": pa.array([[], []], pa.list_(pa.list_(pa.string()))),
    "maps": pa.array([[("a", [("b", 1)])]], pa.map_(pa.string(), pa.map_(pa.string(), pa.int8()))),
    "large": pa.array([[]], pa.large_list(pa.map_(pa.string(), pa.large_string()))),
    "views": pa.array([[["a"]], None], pa.list_view(pa.large_list_view(pa.string_view()))),
    "sizes": pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int16()), pa.array(["a", "b"])),
    "numbers": pa.array([1, None], pa.decimal256(40, 2)),
    "words": pa.array([["x"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
}


@pytest.mark.parametrize("column", EVERY.values(), ids=EVERY)
def test_all_other_types_are_taken_with_values_and_without(column: Any) -> None:
    for part in (column, column.slice(1), column.slice(0, 0)):
        (back,) = read_batches(stream([batch_of(part)]))
        assert back.column(0).to_pylist() == part.to_pylist()
        assert back.nbytes >= 0


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())], ids=str)
@pytest.mark.parametrize("offset", [7, -1, MOST])
def test_an_empty_list_that_begins_beyond_its_values_is_refused(kind: Any, offset: int) -> None:
    """No validation looks at it, and `flatten()` ended the process."""
    width = 8 if pa.types.is_large_list(kind) else 4
    buffers = [None, pa.py_buffer(offset.to_bytes(width, "little", signed=True))]
    column = pa.Array.from_buffers(kind, 0, buffers, children=[pa.array([], pa.int64())])
    with pytest.raises(CodecError, match=f"an empty list begins at {offset} of 0 values"):
        read_batches(stream([batch_of(column)]))
    within = pa.StructArray.from_arrays([column], ["l"])
    with pytest.raises(CodecError, match=f"an empty list begins at {offset} of 0 values"):
        read_batches(stream([batch_of(within)]))


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_a_view_of_a_null_that_leads_out_of_its_bytes_is_refused(kind: Any) -> None:
    """No validation looks at it, and a cast reads it."""
    packed = struct.pack("<i4sii", 20, ASCII[:4], 0, len(ASCII) - 5)
    buffers = [pa.py_buffer(b"\0"), pa.py_buffer(packed), pa.py_buffer(ASCII)]
    column = pa.Array.from_buffers(kind, 1, buffers)
    column.validate(full=True)
    for one in (column, lists_of(column)):
        with pytest.raises(CodecError, match="a view refers to bytes beyond its buffer"):
            read_batches(stream([batch_of(one)]))


def test_a_map_whose_keys_have_the_type_null_is_refused() -> None:
    """Pyarrow makes no such type but reads one, and `view()` of its arrays ended the process."""
    good = pa.schema([("m", pa.map_(pa.int8(), pa.bool_()))]).serialize().to_pybytes()
    assert good.count(b"\2") < 20
    for at in range(len(good)):
        if good[at] != 2:  # Int, of the types in Arrow's Schema.fbs
            continue
        with suppress(pa.ArrowInvalid, OSError):
            schema = pa.ipc.read_schema(pa.py_buffer(good[:at] + b"\1" + good[at + 1 :]))
            if pa.types.is_map(schema.types[0]) and pa.types.is_null(schema.types[0].key_type):
                break
    else:
        pytest.fail("this version of pyarrow reads none")
    with pytest.raises(CodecError, match="column 'm' has the type map<null"):
        check_types(schema)
