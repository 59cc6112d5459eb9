"""A client's span goes along with its messages, and the server's spans are below it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callboard import Actor, ActorSystem, BoundedMailbox, ConfigError
from callboard.observing.opentelemetry import instrument, traceparent
from callboard.remote import Server, connect, serve_entries
from callboard.remote.protocol.client_side import ClientSide
from callboard.remote.protocol.conversation import Submission
from callboard.remote.protocol.kinds import MAGIC, VERSION, MessageKind, Rejected
from callboard.remote.protocol.server_side import Delivery, ServerLimits, ServerSide
from callboard.remote.wire.codec import VERSION as ENCODING
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Frame
from tests.remote.conftest import DEADLINE

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CODEC = Codec(())


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


@pytest.mark.parametrize("is_instrumented", [True, False])
def test_the_servers_spans_are_below_the_clients(is_instrumented: bool, tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with ActorSystem(workers=1) as system:
        if is_instrumented:
            instrument(system, tracer_provider=provider)
        entries = {
            "echo": system.spawn(Echo),
            "narrow": system.spawn(Echo, mailbox=BoundedMailbox(1)),
        }
        server = Server(system, serve_entries(entries), f"unix:{tmp_path}/s")
        with connect(str(server.address), timeout=DEADLINE, traces=traceparent) as connection:
            echo, narrow = connection.ref("echo"), connection.ref("narrow")
            with tracer.start_as_current_span("request") as request:
                assert echo.ask("a").result(DEADLINE) == "a"
                echo.tell("b")
                echo.atell("b").result(DEADLINE)
                narrow.tell_many(["c", "d", "e"])
            assert echo.ask("outside of it").result(DEADLINE) == "outside of it"
            connection.flush()
        server.stop()
        system.drain(60)
    spans = [span for span in exporter.get_finished_spans() if span.name == "Echo.receive"]
    context = request.get_span_context()
    below = [span for span in spans if span.parent is not None]
    assert {(span.parent.trace_id, span.parent.span_id) for span in below if span.parent} == (
        {(context.trace_id, context.span_id)} if is_instrumented else set()
    )
    assert (len(below), len(spans)) == ((6, 7) if is_instrumented else (0, 0))


def greeted() -> ServerSide:
    side = ServerSide(CODEC, ServerLimits(), ["e"], b"".__eq__)
    side.receive(Frame(MessageKind.HELLO, MessageKind.HELLO.pack(MAGIC, VERSION, ENCODING)))
    return side


def test_a_trace_is_that_of_the_next_delivery_alone() -> None:
    side = greeted()
    assert side.receive(Frame(MessageKind.TRACE, PARENT.encode())) is None
    for trace in (PARENT, None):
        event = side.receive(Frame(MessageKind.TELL, b"\0\0\xc0"))
        assert isinstance(event, Delivery)
        assert event.trace == trace
    assert side.account.messages == 2


def test_a_trace_that_is_too_long_ends_the_connection() -> None:
    side = greeted()
    side.receive(Frame(MessageKind.TRACE, b"\xff" * 512))
    with pytest.raises(Rejected, match="a TRACE of 513 bytes is longer than 512"):
        side.receive(Frame(MessageKind.TRACE, bytes(513)))


@pytest.mark.parametrize("said", [{"traces": True}, {"traces": False}, {}])
def test_a_server_that_does_not_know_traces_gets_none(said: dict[str, Any]) -> None:
    side = ClientSide(CODEC, b"")
    welcome = {"entries": ["e"], "frame": 9999, "messages": 10, "bytes": 999, "idle": 9} | said
    side.receive(Frame(MessageKind.WELCOME, CODEC.encode(welcome)))
    submission = Submission(MessageKind.TELL, "e", (b"\xc0",), trace=PARENT)
    _, parts = submission.dispatch(side, {"e": 0})
    sent = b"".join(map(bytes, parts))
    assert (PARENT.encode() in sent) == bool(said.get("traces"))
    assert sent.endswith(b"\x10\0\0\xc0")


def test_a_wrong_trace_is_a_message_without_a_parent(tmp_path: Path) -> None:
    with ActorSystem(workers=1) as system:
        instrument(system)
        entries = serve_entries({"echo": system.spawn(Echo)})
        server = Server(system, entries, f"unix:{tmp_path}/s")
        with connect(str(server.address), timeout=DEADLINE, traces=lambda: "none") as connection:
            assert connection.ref("echo").ask(1).result(DEADLINE) == 1
        server.stop()


def test_traces_that_cannot_be_called_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`traces` expects a function, got '00-0af7"):
        connect(f"unix:{os.fspath(tmp_path)}/s", traces=PARENT)


@pytest.mark.parametrize("bad", [b"00-aa", "\ud800", "é", "0" * 513, 7])
def test_a_trace_that_cannot_travel_is_an_error_of_its_call_alone(bad: Any, tmp_path: Path) -> None:
    found = [bad]
    with ActorSystem(workers=1) as system:
        entries = {"echo": system.spawn(Echo)}
        server = Server(system, serve_entries(entries), f"unix:{tmp_path}/s")
        options: Any = {"traces": lambda: found.pop() if found else None}
        with connect(str(server.address), timeout=DEADLINE, **options) as connection:
            echo = connection.ref("echo")
            with pytest.raises(
                TypeError, match=r"traces\(\) must return None, or a traceparent .*, got"
            ):
                echo.ask(1)
            assert echo.ask(2).result(DEADLINE) == 2
        server.stop()
