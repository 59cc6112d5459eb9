"""Frames come out as they went in, however the stream is chopped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.remote import frames
from callboard.remote.errors import ProtocolError
from callboard.remote.frames import Splitter, frame, head

LIMIT = 1 << 20

bodies = st.binary(max_size=40) | st.integers(60_000, 140_000).map(lambda n: b"%d" % n * (n // 6))
sent = st.lists(st.tuples(st.integers(0, 255), bodies), max_size=8)


@given(sent, st.data())
def test_frames_come_out_as_they_went_in(
    sent: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(frame(kind, body) for kind, body in sent)
    splitter = Splitter(LIMIT)
    got = []
    while stream:
        size = data.draw(st.integers(1, len(stream)) | st.integers(1, min(9, len(stream))))
        got += splitter.feed(stream[:size])
        stream = stream[size:]
    assert [(kind, bytes(body)) for kind, body in got] == sent
    assert splitter.is_empty


@given(sent)
def test_bodies_stay_as_they_are_when_more_is_received(sent: list[tuple[int, bytes]]) -> None:
    splitter = Splitter(LIMIT)
    got = splitter.feed(b"".join(frame(kind, body) for kind, body in sent))
    before = [bytes(each.body) for each in got]
    splitter.feed(frame(1, b"\xff" * 100_000) + frame(1, b"\xee" * 60_000))
    assert [bytes(each.body) for each in got] == before


def test_memory_is_used_again_once_nobody_looks_into_it() -> None:
    splitter = Splitter(LIMIT)
    (first,) = splitter.feed(frame(1, b"a" * 200_000))
    (second,) = splitter.feed(frame(1, b"b" * 200_000))
    kept = memoryview(first.body)[5:]
    place = memoryview(second.body).obj
    assert kept.obj is not place
    del second
    (third,) = splitter.feed(frame(1, b"c" * 100_000))
    assert memoryview(third.body).obj is place
    assert bytes(third.body) == b"c" * 100_000
    assert bytes(kept) == b"a" * 199_995


def test_a_body_may_come_in_parts() -> None:
    assert frame(7, b"ab", b"", b"c") == head(7, 3) + b"abc"


def test_a_large_frame_is_received_where_it_stays() -> None:
    splitter = Splitter(LIMIT)
    whole = frame(3, b"x" * 200_000)
    assert splitter.feed(whole[:10]) == []
    place = splitter.buffer()
    assert len(place) == len(whole) - 10
    place[:] = whole[10:]
    (got,) = splitter.received(len(place))
    assert isinstance(got.body, memoryview)
    assert got.body.obj is place.obj


@pytest.mark.parametrize("length", [LIMIT - 3, 2**31, 2**32 - 1])
def test_nothing_is_allocated_for_a_frame_above_the_limit(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    splitter = Splitter(LIMIT)
    monkeypatch.setattr(frames, "bytearray", lambda size: pytest.fail("allocated"), raising=False)
    with pytest.raises(ProtocolError, match=f"of {length + 4} bytes is longer than the limit"):
        splitter.feed(frames.LENGTH.pack(length) + b"\1")


def test_a_frame_as_long_as_the_limit_passes() -> None:
    (got,) = Splitter(LIMIT).feed(frame(1, b"x" * (LIMIT - frames.HEAD_SIZE)))
    assert len(got.body) + frames.HEAD_SIZE == LIMIT


def test_a_frame_of_no_bytes_is_refused() -> None:
    with pytest.raises(ProtocolError, match="no kind"):
        Splitter(LIMIT).feed(b"\0\0\0\0")


def test_a_body_cannot_be_written_to() -> None:
    small, large = Splitter(LIMIT).feed(frame(1, b"x") + frame(1, b"x" * 100_000))
    assert memoryview(small.body).readonly
    assert memoryview(large.body).readonly
