"""Record batches survive the wire, and other bytes are refused."""

import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.remote.errors import CodecError
from callboard.remote.wire.arrow_ipc import ArrowReader, read_batches, write_batch

pa = pytest.importorskip("pyarrow")

COLUMNS = {
    "numbers": pa.array([1, None, 3], pa.int32()),
    "texts": pa.array(["a", "ü", None]),
    "plain": pa.array(["a", "bc", ""]),
    "bytes": pa.array([b"\xff", b"", None]),
    "large": pa.array(["x", "y", "z"], pa.large_string()),
    "words": pa.array(["a", "b", "a"]).dictionary_encode(),
    "lists": pa.array([[1], [], None]),
    "nested": pa.array([{"w": "x"}] * 3).cast(
        pa.struct({"w": pa.dictionary(pa.int32(), pa.string())})
    ),
    "times": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
}


def stream(batch: Any) -> bytes:
    return b"".join(map(bytes, write_batch(batch)))


@pytest.mark.parametrize("names", [*([name] for name in COLUMNS), [*COLUMNS], []], ids=str)
def test_a_batch_comes_back_as_it_was(names: list[str]) -> None:
    batch = pa.RecordBatch.from_pydict({name: COLUMNS[name] for name in names})
    for each in (batch, batch.slice(1), batch.slice(0, 0)):
        (back,) = read_batches(memoryview(stream(each)))
        assert back.equals(each, check_metadata=True)


@given(st.lists(st.sampled_from([*COLUMNS]), max_size=6))
def test_batches_of_any_schemas_come_one_after_the_other(names: list[str]) -> None:
    reader = ArrowReader()
    for name in names:
        batch = pa.RecordBatch.from_pydict({name: COLUMNS[name]}, metadata={b"of": name.encode()})
        whole = stream(batch)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        assert whole == sink.getvalue().to_pybytes()
        (back,) = reader.read(whole)
        assert back.equals(batch, check_metadata=True)


def test_a_reader_forgets_a_schema_that_was_followed_by_another() -> None:
    reader = ArrowReader()
    first, second = (pa.RecordBatch.from_pydict({name: [1]}) for name in "ab")
    assert reader.read(stream(first)) == [first]
    with pytest.raises(CodecError):
        reader.read(stream(second)[:100])
    assert reader.read(stream(first)) == [first]
    assert reader.read(stream(second)) == [second]


def test_a_writer_that_failed_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1]})
    good = stream(batch)
    with monkeypatch.context() as broken:
        broken.setattr("callboard.remote.wire.arrow_ipc._END", None)
        with pytest.raises(TypeError):
            write_batch(batch)
    assert stream(batch) == good


def test_only_batches_are_written() -> None:
    with pytest.raises(CodecError, match="RecordBatch, got a list"):
        write_batch([1])


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("name", ["texts", "words"])
def test_compressed_batches_are_refused(codec: str, name: str) -> None:
    batch = pa.RecordBatch.from_pydict({"c": COLUMNS[name]})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    with pytest.raises(CodecError, match="compressed record batches are not taken"):
        read_batches(memoryview(sink.getvalue()))


@pytest.mark.parametrize("data", [b"", b"\xff" * 16, b"\xff\xff\xff\xff\xff\xff\xff\x7f"])
def test_bytes_that_are_no_stream_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        read_batches(data)


@pytest.mark.parametrize("offsets", [(0, 9, 2, 3), (0, 1, 2, 1 << 30), (-1, 0, 0, 0), (0, 3, 1, 3)])
@pytest.mark.parametrize("texts", [["a", "bc", ""], ["a", "ü", ""]])
def test_offsets_that_lead_astray_are_refused(offsets: tuple[int, ...], texts: list[str]) -> None:
    whole = stream(pa.RecordBatch.from_pydict({"c": texts}))
    good = struct.pack("<4i", 0, 1, 3, 3)
    assert whole.count(good) == 1
    with pytest.raises(CodecError):
        read_batches(whole.replace(good, struct.pack("<4i", *offsets)))


def test_texts_of_wrong_bytes_are_refused() -> None:
    column = pa.array([b"\xff\xfe"]).view(pa.string())
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    with pytest.raises(CodecError, match="Invalid UTF8"):
        read_batches(stream(batch))


def test_more_rows_than_there_can_be_are_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(1 << 30)], ["c"])
    with pytest.raises(CodecError, match="1073741824 rows in"):
        read_batches(stream(batch))


def test_lengths_that_lie_are_refused() -> None:
    whole = stream(pa.RecordBatch.from_pydict({"n": COLUMNS["numbers"]}))
    second = whole.index(b"\xff\xff\xff\xff", 4)
    for forged in (
        whole[:4] + b"\xff\xff\xff\x7f" + whole[8:],  # of the schema's metadata
        whole[:4] + b"\xff\xff\xff\xff" + whole[8:],
        whole[second:],  # no schema
        whole[:second] * 2,  # two of them
        whole[:-16],  # a body that is cut
    ):
        with pytest.raises(CodecError):
            read_batches(forged)


WHOLE = [stream(pa.RecordBatch.from_pydict({name: COLUMNS[name]})) for name in COLUMNS]


@given(st.sampled_from(WHOLE), st.data())
def test_a_damaged_stream_is_refused_or_can_be_read(whole: bytes, data: st.DataObject) -> None:
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 6))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        batches = read_batches(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    except CodecError:
        return
    for batch in batches:
        with suppress(ValueError, OverflowError, KeyError, pa.ArrowException, ArithmeticError):
            batch.to_pylist()  # a time beyond the calendar, a zone that is none


def test_metadata_that_lead_out_of_themselves_are_refused() -> None:
    whole = WHOLE[0]
    for place in (8, 24):  # where the message's table lies, and where that says its layout is
        forged = whole[:place] + b"\xff\xff\xff\x7f" + whole[place + 4 :]
        with pytest.raises(CodecError, match="a message's metadata at 0 lead out of their"):
            read_batches(forged)


def test_a_message_that_is_not_a_batch_behind_a_schema_is_refused() -> None:
    schema = WHOLE[0][: WHOLE[0].index(b"\xff\xff\xff\xff", 4)]
    with pytest.raises(CodecError, match=r"behind a schema, got messages of kind \[1\]"):
        read_batches(schema * 2)
