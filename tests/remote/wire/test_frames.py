"""Frames come out as they went in, however the stream is chopped."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.remote.wire import frames
from callboard.remote.wire.frames import LENGTH, Misframed, ProtocolError, Splitter, frame, head

LIMIT = 1 << 20

bodies = st.binary(max_size=40) | st.integers(60_000, 140_000).map(lambda n: b"%d" % n * (n // 6))
sent = st.lists(st.tuples(st.integers(0, 255), bodies), max_size=8)


@given(sent, st.data())
def test_frames_arrive_as_they_were(sent: list[tuple[int, bytes]], data: st.DataObject) -> None:
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


def test_memory_grows_as_bytes_come_and_not_as_announced() -> None:
    splitter = Splitter(1 << 30)
    body = b"abcdefg" * 300_000
    data = LENGTH.pack((1 << 30) - LENGTH.size) + body
    splitter.feed(data[:10])
    came = 10
    while came < len(data):
        place = splitter.buffer()
        assert came + len(place) <= max(2 * came, 256 * 1024 + LENGTH.size)
        part = data[came : came + len(place)]
        place[: len(part)] = part
        assert splitter.received(len(part)) == []
        came += len(part)


def test_a_frame_whose_memory_has_grown_is_whole() -> None:
    splitter = Splitter(1 << 30)
    for size in (3_000_000, 5_000_000, 2_999_999, 3_000_001):
        body = bytes(range(256)) * (size // 256 + 1)
        got = []
        for at in range(0, size, 70_001):
            got += splitter.feed((frame(5, body[:size]))[at : at + 70_001])
        got += splitter.feed(frame(5, body[:size])[at + 70_001 :])
        assert [(each.kind, bytes(each.body)) for each in got] == [(5, body[:size])]


def test_released_frames_keep_no_memory() -> None:
    splitter = Splitter(LIMIT)
    splitter.feed(frame(1, b"a" * 200_000) + frame(1, b"b" * 200_000)[:150_000])
    splitter.release()
    assert not [each for each in gc.get_referents(splitter) if isinstance(each, bytearray)]
    assert len(splitter.buffer()) == 0


def test_frames_before_a_wrong_length_are_not_lost() -> None:
    splitter = Splitter(LIMIT)
    data = frame(1, b"good") + LENGTH.pack(0) + frame(1, b"never")
    splitter.buffer()[: len(data)] = data
    with pytest.raises(Misframed, match="no kind") as raised:
        splitter.received(len(data))
    assert [bytes(each.body) for each in raised.value.before] == [b"good"]
    assert splitter.feed(frame(1, b"never")) == []


@pytest.mark.parametrize("length", [LIMIT - 3, 2**31, 2**32 - 1])
def test_too_long_a_frame_allocates_nothing(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
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
