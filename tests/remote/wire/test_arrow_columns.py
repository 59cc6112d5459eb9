"""Columns that refer to few bytes many times, or hold values without bytes, are found out early."""

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from callboard.remote.errors import CodecError
from callboard.remote.wire import arrow_ipc
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
