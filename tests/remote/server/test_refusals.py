"""A client's error ends its connection with a reason; other connections continue."""

import hmac
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from callboard.remote import Connection, Server, ServerLimits, connect
from callboard.remote.errors import ConnectionLost, ConnectionRejected, RemoteCallError
from callboard.remote.protocol.kinds import GoodbyeReason, MessageKind
from callboard.remote.server import server
from callboard.remote.sockets.security import Secret
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import LENGTH, frame
from tests.remote.conftest import DEADLINE, Gate, RawClient, Start, eventually, hello, logged

SECRET = "correct horse battery staple 1234567890"
OTHER = "wrong horse battery staple 01234567890"
CODEC = Codec()
Raw = Callable[[], RawClient]


@pytest.fixture(autouse=True)
def another(server: Server) -> Iterator[Connection]:
    """A client that goes on, whatever happens beside it."""
    with connect(str(server.address), timeout=DEADLINE) as connection:
        notes = connection.ref("notes")
        assert notes.ask("before").result(DEADLINE) == "before"
        yield connection
        Gate.opened.set()
        assert notes.ask("after").result(DEADLINE) == "after"


def tell(entry: int, value: Any) -> bytes:
    return MessageKind.TELL.frame(entry, rest=CODEC.encode(value))


def welcomed(client: RawClient) -> RawClient:
    client.send(hello())
    assert client.receive() is not None
    return client


HTTP = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
WRONG_BYTES = [
    (tell(0, 1), "must begin with HELLO, got TELL"),
    (HTTP, "longer than the limit"),
    (MessageKind.HELLO.frame(rest=b"x" * 12), "not a client of callboard"),
    (MessageKind.HELLO.frame(rest=b"x"), "is shorter than"),
    (hello(version=2), "speaks version 2"),
    (hello(encoding=9), "with encoding 9"),
    (LENGTH.pack(1 << 20) + b"\1", "longer than the limit"),
    (LENGTH.pack(0), "a frame of no bytes"),
    (hello(secret=b"x" * 2_000), "longer than the limit"),
    (hello() + hello(), "may not send HELLO"),
    (hello() + MessageKind.ANSWER.frame(0, rest=b"\0"), "may not send ANSWER"),
    (hello() + MessageKind.CREDIT.frame(1, 1), "may not send CREDIT"),
    (hello() + frame(77), "version 1 has no message of kind 77"),
    (hello() + MessageKind.COMMIT.frame(), "COMMIT of 0 bytes is shorter than 8"),
    (hello() + MessageKind.READ.frame(rest=bytes(5)), "READ of 5 bytes is shorter than 10"),
    (hello() + MessageKind.RELEASE.frame(99, 0), "entry point 99"),
    (hello() + tell(99, 1), "no entry point 99: there are 6"),
    (hello() + MessageKind.TELL.frame(rest=b"\0"), "TELL of 1 bytes is shorter than 2"),
    (hello() + MessageKind.PING.frame(rest=b"\0"), "PING of 1 bytes is shorter"),
    (hello() + LENGTH.pack(0), "a frame of no bytes has no kind"),
    (hello() + LENGTH.pack(1 << 30) + b"\x10", "longer than the limit"),
    (hello() + MessageKind.GOODBYE.frame(255), "GOODBYE has an unknown reason: 255"),
    (hello() + MessageKind.TELL_MANY.frame(0, 1 << 31, rest=b"\0\x90"), "beyond the credit"),
]


@pytest.mark.parametrize(("data", "text"), WRONG_BYTES, ids=[text for _, text in WRONG_BYTES])
def test_a_client_that_breaks_the_protocol_is_refused(
    data: bytes, text: str, server: Server, raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    client = raw()
    client.send(data)
    said = client.goodbye()
    is_of_another_version = data in (hello(version=2), hello(encoding=9))
    assert said.reason.name == ("VERSION" if is_of_another_version else "PROTOCOL")
    assert text in said.text
    eventually(logged(caplog, "client refused", text), "it is in the log")
    assert server.health()["refused"] == 1


@pytest.mark.parametrize("length", [0, 1 << 30])
def test_messages_before_a_wrong_length_are_handled(length: int, raw: Raw) -> None:
    client = welcomed(raw())
    asked = MessageKind.ASK.frame(2, rest=CODEC.encode("seen"))  # of the gate
    client.send(asked + LENGTH.pack(length) + b"\x10" * 100)
    assert client.goodbye().reason is GoodbyeReason.PROTOCOL
    eventually(lambda: Gate.seen == ["seen"], "it is handled")


def test_a_message_that_cannot_be_decoded_fails_alone(raw: Raw) -> None:
    client = welcomed(raw())
    client.send(MessageKind.TELL.frame(0, rest=b"\xc1") + tell(0, "good"))
    client.send(MessageKind.TELL_MANY.frame(0, 2, rest=CODEC.encode_rows([1])))
    client.send(MessageKind.BATCH.frame(0, rest=b"\xff" * 100))
    client.send(MessageKind.ASK.frame(0, rest=CODEC.encode("all")))
    kinds, credited = [], 0
    while credited < 5 or MessageKind.ANSWER not in kinds:
        received = client.receive()
        assert received is not None
        if received.kind == MessageKind.CREDIT:
            credited = MessageKind.CREDIT.layout.unpack(received.body)[0]
        else:
            kinds.append(received.kind)
        if received.kind == MessageKind.ANSWER:
            assert "good" in CODEC.decode(received.body[8:])
    assert kinds.count(MessageKind.FAILED) == 3


def test_values_that_would_be_too_much_work_fail_alone(start: Start, tmp_path: Path) -> None:
    small = start(f"unix:{tmp_path}/small", limits=ServerLimits(values=1_000))
    with connect(str(small.address)) as connection:
        notes = connection.ref("notes")
        with pytest.raises(RemoteCallError, match="more than 1000 values, with a container as 4"):
            notes.ask([{}] * 300).result(DEADLINE)
        with pytest.raises(RemoteCallError, match="keys of a dict or set collide"):
            notes.ask({number * (2**61 - 1) for number in range(200)}).result(DEADLINE)
        assert notes.ask([{}] * 200).result(DEADLINE) == [{}] * 200
        assert notes.ask("all").result(DEADLINE) == [[{}] * 200]


def test_a_wrong_secret_is_refused_and_not_tried_again(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guarded = start(f"unix:{tmp_path}/guarded", secret=Secret(SECRET, "the test"))
    why = "secret: the secret is not the server's", "secret: the server needs a secret"
    for options, said in zip(({"secret": OTHER}, {}), why, strict=True):
        with pytest.raises(ConnectionRejected, match=said):
            connect(str(guarded.address), timeout=DEADLINE, **options)
    assert guarded.health()["accepted"] == guarded.health()["refused"] == 2
    assert SECRET not in caplog.text
    assert OTHER not in caplog.text
    connect(str(guarded.address), secret=SECRET).close()


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    monkeypatch.setattr(hmac, "compare_digest", lambda *both: compared.append(both))
    assert not Secret(SECRET, "the test").fits(OTHER.encode())
    assert compared == [(SECRET.encode(), OTHER.encode())]


def test_a_silent_stranger_is_let_go(start: Start, tmp_path: Path) -> None:
    hasty = start(f"unix:{tmp_path}/hasty", limits=ServerLimits(handshake_time=0.05))
    client = RawClient(f"{tmp_path}/hasty")
    assert client.goodbye().reason is GoodbyeReason.IDLE
    eventually(lambda: hasty.health()["connections"] == 0, "the connection is gone")
    client.socket.close()


def test_a_silent_client_is_let_go_and_one_that_pings_is_not(start: Start, tmp_path: Path) -> None:
    patient = start(f"unix:{tmp_path}/patient", limits=ServerLimits(idle_time=60.0))

    def pass_a_minute() -> None:
        for peer in patient._peers:
            peer._last_received -= 61.0

    def look() -> None:
        for peer in [*patient._peers]:
            peer._check_idleness()

    with connect(str(patient.address)) as connection:
        client = welcomed(RawClient(f"{tmp_path}/patient"))  # it will never say anything again
        patient._io.call(pass_a_minute)
        assert connection.health().result(DEADLINE)  # as its pings do
        came = [peer._link.received for peer in patient._peers]
        client.socket.sendall(b"\x10")  # a part of a frame
        eventually(lambda: [peer._link.received for peer in patient._peers] != came, "it came")
        patient._io.call(look)
        assert patient.health()["connections"] == 2
        patient._io.call(pass_a_minute)
        assert connection.health().result(DEADLINE)
        patient._io.call(look)
        said = client.goodbye()
        assert said == (GoodbyeReason.IDLE, "silent for 60 s")
        assert connection.ref("notes").ask(1).result(DEADLINE) == 1
        assert patient.health()["accepted"] == 2
        client.socket.close()


def test_a_server_that_falls_silent_is_left(tmp_path: Path) -> None:
    answers = [MessageKind.WELCOME.frame(rest=CODEC.encode(
        {"entries": ["e"], "frame": 4096, "messages": 9, "bytes": 4096, "idle": 0.06}
    ))]  # fmt: skip
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/mute")
        listener.listen()
        connected = []

        def welcome() -> None:
            for _ in range(2):
                connected.append(listener.accept()[0])
                connected[-1].sendall(answers[0])

        thread = threading.Thread(target=welcome)
        connection = Connection(f"unix:{tmp_path}/mute")
        asked = connection.ref("e").ask(1)  # goes by the first
        thread.start()
        with pytest.raises(ConnectionLost, match="no answer to a ping"):
            asked.result(DEADLINE)
        thread.join(DEADLINE)  # it connects again
        assert len(connected) == 2
        connection.close()
        for each in connected:
            each.close()


def test_a_client_that_does_not_read_is_let_go_at_a_limit(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = ServerLimits(frame=1 << 20, output=1 << 20, bytes=1 << 20)
    small = start(f"unix:{tmp_path}/small", limits=limits)
    client = welcomed(RawClient(f"{tmp_path}/small"))
    client.send(tell(0, "x" * 200_000))
    # Asks are small, answers are large; all of them are sent before the first is looked at.
    client.send(MessageKind.ASK.frame(0, rest=CODEC.encode("all")) * 1_000)
    eventually(logged(caplog, "client left", "does not read"), "it is let go")
    eventually(lambda: small.health()["connections"] == 0, "it is forgotten")
    client.socket.close()


def test_a_client_that_does_not_read_is_not_read_either(start: Start, tmp_path: Path) -> None:
    limits = ServerLimits(frame=1 << 16, output=1 << 22)
    small = start(f"unix:{tmp_path}/small", limits=limits)
    client = welcomed(RawClient(f"{tmp_path}/small"))
    client.socket.settimeout(120)  # of all that is sent together
    pings = 100_000  # their answers are many times as long as the limit
    sending = threading.Thread(target=client.send, args=(MessageKind.PING.frame(1) * pings,))
    sending.start()
    (peer,) = small._peers
    eventually(lambda: not peer._link._is_reading, "nothing more is read")
    for _ in range(pings):
        assert client.receive() is not None
    sending.join(120)
    assert small.health()["connections"] == 1
    client.socket.close()


def test_too_many_connections_are_turned_away(start: Start, tmp_path: Path) -> None:
    small = start(f"unix:{tmp_path}/small", limits=ServerLimits(connections=2))
    first, second = connect(str(small.address)), connect(str(small.address))
    third = RawClient(f"{tmp_path}/small")
    said = third.goodbye()
    assert said == (GoodbyeReason.BUSY, "2 clients are connected, which is the limit")
    third.socket.close()
    second.close()
    eventually(lambda: small.health()["connections"] == 1, "there is a place again")
    connect(str(small.address)).close()
    assert first.ref("notes").ask(1).result(DEADLINE) == 1
    first.close()


def test_a_client_turned_away_tries_again(start: Start, tmp_path: Path) -> None:
    small = start(f"unix:{tmp_path}/small", limits=ServerLimits(connections=1))
    first = connect(str(small.address))

    def make_room() -> None:
        eventually(lambda: small.health()["refused"], "one is refused")
        first.close()

    thread = threading.Thread(target=make_room)
    thread.start()
    connect(str(small.address), timeout=DEADLINE).close()
    thread.join(DEADLINE)


def test_unfinished_handshakes_do_not_take_all_places(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_HANDSHAKE_GRACE", DEADLINE)
    small = start(f"unix:{tmp_path}/small", limits=ServerLimits(handshakes=2))
    clients = [RawClient(f"{tmp_path}/small") for _ in range(3)]
    assert "2 clients are in their handshake" in clients[2].goodbye().text
    welcomed(clients[0])
    connect(str(small.address)).close()
    for client in clients:
        client.socket.close()


def test_strangers_that_come_again_do_not_keep_others_out(start: Start, tmp_path: Path) -> None:
    limits = ServerLimits(handshakes=2, handshake_time=3600.0)
    small = start(f"unix:{tmp_path}/small", limits=limits)
    done = threading.Event()

    def come_again() -> None:
        while not done.is_set():
            with closing(RawClient(f"{tmp_path}/small").socket) as connected:
                while not done.is_set() and is_open(connected):
                    pass

    def is_open(connected: socket.socket) -> bool:
        connected.settimeout(0.1)
        try:
            return connected.recv(1 << 16) != b""
        except TimeoutError:
            return True
        except OSError:
            return False

    strangers = [threading.Thread(target=come_again) for _ in range(2)]
    for each in strangers:
        each.start()
    try:
        eventually(lambda: small.health()["connections"] == 2, "they have both places")
        for _ in range(3):
            connect(str(small.address), timeout=DEADLINE).close()
    finally:
        done.set()
        for each in strangers:
            each.join(DEADLINE)


def test_a_client_that_was_refused_has_no_place_any_more(start: Start, tmp_path: Path) -> None:
    small = start(
        f"unix:{tmp_path}/small", secret=Secret(SECRET, "here"), limits=ServerLimits(handshakes=1)
    )
    clients = []
    for _ in range(3):
        clients.append(RawClient(f"{tmp_path}/small"))
        clients[-1].send(hello(OTHER.encode()))
        assert clients[-1].goodbye().reason is GoodbyeReason.SECRET
    connect(str(small.address), secret=SECRET).close()
    for client in clients:
        client.socket.close()


def test_other_users_are_refused(
    raw: Raw, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "untrusted_peer", lambda connected: "user 4711, process 1")
    assert "user 4711" in raw().goodbye().text
    assert logged(caplog, "client refused", "user 4711")()
