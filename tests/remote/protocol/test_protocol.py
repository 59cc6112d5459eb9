"""Arbitrary bytes are taken or rejected with a reason by both sides of the protocol."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callboard import ConfigError
from callboard.remote.protocol.client_side import ClientSide, Welcome
from callboard.remote.protocol.kinds import (
    Goodbye,
    GoodbyeReason,
    MessageKind,
    Rejected,
    goodbye_frame,
)
from callboard.remote.protocol.requests import Layout
from callboard.remote.protocol.server_side import (
    ClientRequest,
    Delivery,
    Greeting,
    ServerLimits,
    ServerSide,
)
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Frame, ProtocolError
from tests.remote.conftest import hello

CODEC = Codec()
SECRET = b"x" * 32
WELCOME = {"entries": ["e"], "frame": 9999, "messages": 10, "bytes": 999, "idle": 9}

kinds = st.sampled_from([int(kind) for kind in MessageKind]) | st.integers(0, 255)
bodies = st.binary(max_size=40) | st.builds(
    lambda number, data: MessageKind.ANSWER.pack(number) + data,
    st.integers(0, 3),
    st.sampled_from([b"\xc0", b"\x92\xa1a\xa1b", b"\x80", b""]),
)
frames = st.lists(st.builds(Frame, kinds, bodies), max_size=8)


def cut(data: bytes) -> Frame:
    return Frame(data[4], data[5:])


TOLD = cut(MessageKind.TELL.frame(0, rest=CODEC.encode(1)))


def greeted(messages: int = 10) -> ServerSide:
    side = ServerSide(CODEC, ServerLimits(messages=messages), ["e"], SECRET.__eq__)
    assert isinstance(side.receive(cut(hello(SECRET))), Greeting)
    return side


def welcomed() -> ClientSide:
    side = ClientSide(CODEC, SECRET)
    event = side.receive(cut(MessageKind.WELCOME.frame(rest=CODEC.encode(WELCOME))))
    assert isinstance(event, Welcome)
    return side


@given(frames, st.booleans())
@example([Frame(MessageKind.PUBLISHED, bytes(2))], True)
@example([Frame(MessageKind.READ, bytes(10)), Frame(MessageKind.RELEASE, bytes(10))], True)
@example([Frame(MessageKind.PUBLISHED, b"\0\1")], True)
def test_a_server_takes_any_frames_or_rejects_them(sent: list[Frame], known: bool) -> None:
    side = greeted() if known else ServerSide(CODEC, ServerLimits(), ["e"], SECRET.__eq__)
    taken = 0
    try:
        for each in sent:
            event = side.receive(each)
            if isinstance(event, Delivery | ClientRequest):
                taken += event.messages
            if isinstance(event, Delivery):
                assert event.entry == 0
    except Rejected:
        pass
    assert side.account.messages == taken <= (10 if known else 0)


@given(frames, st.booleans())
@example([Frame(MessageKind.WELCOME, CODEC.encode({"entries": 3}))], False)
@example([Frame(MessageKind.WELCOME, CODEC.encode([1]))], False)
@example([Frame(MessageKind.WELCOME, CODEC.encode({}))], False)
def test_a_client_takes_any_frames_or_rejects_them(sent: list[Frame], known: bool) -> None:
    side = welcomed() if known else ClientSide(CODEC, SECRET)
    if known:
        side.deliver(MessageKind.ASK, 0, (b"\xc0",), 1)
        side.deliver(MessageKind.TELL_MANY, 0, (b"\x00\x90",), 2, 5)
    try:
        for each in sent:
            side.receive(each)
    except ProtocolError:
        pass
    assert 0 <= side.account.messages <= 6
    assert side.account.messages == len(side.asked) + side.unacknowledged


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (MessageKind.CREDIT.frame(6, 1), "credit for 6 messages"),
        (MessageKind.CREDIT.frame(1, 1 << 40), "credit for 1 messages"),
        (MessageKind.ANSWER.frame(2, rest=b"\xc0"), "delivery 2, which is not an open ask"),
        (MessageKind.ANSWER.frame(9, rest=b"\xc0"), "delivery 9, which is not an open ask"),
        (MessageKind.FAILED.frame(9, rest=b"\x92\xa0\xa0"), "delivery 9; there were 2"),
        (MessageKind.FAILED.frame(1, rest=b"\xc1"), "a FAILED cannot be read"),
        (MessageKind.PONG.frame(rest=b"\0" * 8 + b"\x01"), "a PONG cannot be read"),
        (MessageKind.WELCOME.frame(rest=b"\x80"), "a server may not send WELCOME"),
    ],
)
def test_a_server_that_says_what_cannot_be_is_found_out(data: bytes, said: str) -> None:
    side = welcomed()
    side.deliver(MessageKind.ASK, 0, (b"\xc0",), 1)
    side.deliver(MessageKind.TELL_MANY, 0, (b"\x00\x90",), 2, 5)
    with pytest.raises(Rejected, match=said):
        side.receive(cut(data))


def test_credit_that_goes_back_is_found_out() -> None:
    side = welcomed()
    side.deliver(MessageKind.TELL_MANY, 0, (b"\x00\x90",), 2, 5)
    side.receive(cut(MessageKind.CREDIT.frame(3, 10)))
    assert side.unacknowledged == 2
    with pytest.raises(Rejected, match="credit for -1 messages"):
        side.receive(cut(MessageKind.CREDIT.frame(2, 10)))


def test_an_answer_that_cannot_be_decoded_fails_its_ask_alone() -> None:
    side = welcomed()
    side.deliver(MessageKind.ASK, 0, (b"\xc0",), 1)
    event: Any = side.receive(cut(MessageKind.ANSWER.frame(1, rest=b"\xc1")))
    assert "cannot be decoded" in str(event.value)
    assert not side.asked


def test_credit_for_staged_rows_waits_for_those_behind_them() -> None:
    side = greeted()
    data = cut(MessageKind.DATA.frame(0, 0, Layout.ROWS, 1, rest=CODEC.encode_rows([1])))
    first, last = side.receive(data), side.receive(data)
    assert isinstance(first, ClientRequest)
    assert isinstance(last, ClientRequest)
    assert side.handled(first) == b""
    size = first.size + last.size
    assert side.handled(last) == MessageKind.CREDIT.frame(0, size)


def test_credit_waits_for_what_is_coming_but_not_for_ever() -> None:
    side = greeted(messages=100)
    first, last = side.receive(TOLD), side.receive(TOLD)
    assert isinstance(first, Delivery)
    assert isinstance(last, Delivery)
    assert side.handled(first, lambda: True) == b""
    assert side.deferred_credit() == b"", "another is on its way"
    assert side.handled(last, lambda: True) == b""
    credit = MessageKind.CREDIT.frame(2, first.size + last.size)
    assert side.deferred_credit() == credit
    assert side.deferred_credit() == b""


def test_a_side_that_has_said_goodbye_waits_for_nothing() -> None:
    side = greeted()
    told = side.receive(TOLD)
    assert isinstance(told, Delivery)
    side.goodbye(GoodbyeReason.DRAINING, "enough")
    assert side.handled(told, lambda: True) != b""


def test_a_quarter_of_the_credit_waits_for_nothing() -> None:
    side = greeted()
    said = []
    for _ in range(10 // 4):
        delivery = side.receive(TOLD)
        assert isinstance(delivery, Delivery)
        said.append(side.handled(delivery, lambda: True))
    assert said[-1] != b""
    assert not any(said[:-1])


def test_nothing_is_delivered_beyond_credit() -> None:
    side = welcomed()
    assert side.has_room(10, 2)
    assert not side.has_room(11, 2)
    assert not side.has_room(1, 999)
    with pytest.raises(Rejected, match="beyond the credit"):
        side.deliver(MessageKind.TELL_MANY, 0, (b"\x00\x90",), 2, 11)


def test_a_goodbye_keeps_its_reason_and_text() -> None:
    event = welcomed().receive(cut(goodbye_frame(GoodbyeReason.BUSY, "so many ünïcode")))
    assert event == Goodbye(GoodbyeReason.BUSY, "so many ünïcode")


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"frame": 100}, "frame must be a whole number from 4096"),
        ({"messages": 0}, "messages must be a whole number of at least 1"),
        ({"bytes": 0}, "bytes must be a whole number of at least 1"),
        ({"bytes": 1 << 20}, "the limit of bytes, 1048576, is less than that of a frame, 16777216"),
        ({"output": 1}, "the limit of output, 1, is less than that of a frame, 16777216"),
        ({"connections": 1.5}, "connections must be a whole number"),
        ({"idle_time": 0}, "idle_time must be a number of seconds above 0"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ServerLimits(**limits)
