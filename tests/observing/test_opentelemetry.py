"""Spans of OpenTelemetry, as its own SDK records them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import baggage, trace
from opentelemetry import context as contexts
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    ConfigError,
    PriorityMailbox,
    Supervision,
)
from callboard.observing import opentelemetry
from callboard.observing.opentelemetry import instrument, traceparent
from tests.observing.actors import Box


class Recorded:
    """A provider of tracers whose spans are kept."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self.exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        spans = self.exporter.get_finished_spans()
        return [span for span in spans if name is None or span.name == name]


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    made = Recorded()
    yield made
    made.provider.shutdown()


def ids(span: trace.Span | ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def times(span: ReadableSpan) -> tuple[int, int]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


class Relay(Actor[Any]):
    def __init__(self, to: ActorRef[Any]) -> None:
        self.to = to

    def receive(self, message: Any) -> None:
        self.to.tell(message)


class AsyncRelay(Actor[Any]):
    def __init__(self, to: ActorRef[Any]) -> None:
        self.to = to

    async def receive(self, message: Any) -> Any:
        await self.sleep(0.001)
        return await self.to.ask(message)


class LoopRelay(Actor[Any]):
    event_loop = True

    def __init__(self, to: ActorRef[Any]) -> None:
        self.to = to

    async def receive(self, message: Any) -> Any:
        await asyncio.sleep(0.001)
        return await self.to.ask(message)


def test_a_messages_span_is_a_child_of_the_span_that_sent_it(recorded: Recorded) -> None:
    with ActorSystem("net", workers=2) as system:
        instrument(system, tracer_provider=recorded.provider)
        box = system.spawn(Box, name="box")
        relay = system.spawn(Relay, box, name="relay")
        with recorded.tracer.start_as_current_span("request") as request:
            relay.tell(1)
        system.drain(60)
    (first,), (second,) = recorded.spans("Relay.receive"), recorded.spans("Box.receive")
    assert parent_of(first) == ids(request)
    assert parent_of(second) == ids(first)
    assert first.kind is trace.SpanKind.CONSUMER
    assert first.attributes == {
        "callboard.system": "net",
        "callboard.actor.class": "Relay",
        "callboard.actor.path": "/relay",
    }


@pytest.mark.parametrize("relay", [AsyncRelay, LoopRelay])
@pytest.mark.parametrize("concurrency", [1, 5])
def test_a_coroutines_span_lasts_until_its_end(
    relay: type[Actor[Any]], concurrency: int, recorded: Recorded
) -> None:
    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        box = system.spawn(Box)
        ref = system.spawn(relay, box, concurrency=concurrency)
        requests = []
        for _ in range(5):
            with recorded.tracer.start_as_current_span("request") as request:
                requests.append((ids(request), ref.ask(1)))
        for _, answer in requests:
            answer.result(30)
        system.drain(60)
    relays = {ids(span): span for span in recorded.spans(f"{relay.__name__}.receive")}
    assert {parent_of(span) for span in relays.values()} == {one for one, _ in requests}
    assert len(relays) == len(requests) == 5
    boxes = recorded.spans("Box.receive")
    assert len(boxes) == 5
    for span in boxes:
        parent = parent_of(span)
        assert parent is not None
        (outer_begin, outer_end), (begin, end) = times(relays.pop(parent)), times(span)
        assert outer_begin <= begin <= end <= outer_end


@pytest.mark.parametrize("mailbox", [None, PriorityMailbox(int), BoundedMailbox(2)])
@pytest.mark.parametrize("context", ["own", "sender"])
@pytest.mark.parametrize("how", ["tell", "tell_many", "atell", "ask"])
def test_every_send_has_a_span(how: str, context: Any, mailbox: Any, recorded: Recorded) -> None:
    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        box = system.spawn(Box, mailbox=mailbox, context=context)
        with recorded.tracer.start_as_current_span("request") as request:
            for number in range(5):
                if how == "tell_many":
                    box.tell_many([number])
                elif how == "atell":
                    box.atell(number)
                else:
                    getattr(box, how)(number)
        system.drain(60)
    assert [parent_of(span) for span in recorded.spans("Box.receive")] == [ids(request)] * 5


def test_an_actor_has_its_own_variables_all_the_same(recorded: Recorded) -> None:
    variable = contextvars.ContextVar("variable", default="none")
    seen = []

    class Looker(Actor[Any]):
        def receive(self, message: Any) -> None:
            seen.append((variable.get(), baggage.get_baggage("user")))
            variable.set("mine")

    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        looker = system.spawn(Looker)
        variable.set("the sender's")
        token = contexts_attach(baggage.set_baggage("user", "ann"))
        looker.tell(0)
        contexts_detach(token)
        looker.tell(0)
        system.drain(60)
    assert seen == [("none", "ann"), ("mine", None)]


def contexts_attach(context: Any) -> Any:
    from opentelemetry import context as contexts

    return contexts.attach(context)


def contexts_detach(token: Any) -> None:
    from opentelemetry import context as contexts

    contexts.detach(token)


def test_a_message_from_outside_of_spans_begins_a_trace(recorded: Recorded) -> None:
    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        box = system.spawn(Box)
        box.tell_many([1, 2])
        system.drain(60)
    spans = recorded.spans()
    assert [parent_of(span) for span in spans] == [None, None]
    assert len({ids(span)[0] for span in spans}) == 2


def test_a_failure_is_recorded_in_its_span(recorded: Recorded) -> None:
    class Failing(Actor[Any]):
        async def receive(self, message: Any) -> None:
            await self.sleep(0)
            raise ValueError(message)

    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        system.spawn(Box, supervision=Supervision("resume")).tell("fail")
        system.spawn(Failing, supervision=Supervision("resume")).tell("fail")
        system.drain(60)
    for name in ("Box.receive", "receive"):
        (span,) = [span for span in recorded.spans() if span.name.endswith(name)][:1]
        assert span.status.status_code is trace.StatusCode.ERROR
        assert span.status.description == "ValueError: fail"
        assert [event.name for event in span.events] == ["exception"]


def test_handlers_of_become_and_after_a_restart_have_spans(recorded: Recorded) -> None:
    class Changing(Actor[Any]):
        def receive(self, message: Any) -> None:
            self.become(self.other)

        def other(self, message: Any) -> None:
            if message == "fail":
                raise ValueError(message)
            self.unbecome()

    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        ref = system.spawn(Changing, supervision=Supervision("restart"))
        ref.tell_many([1, 2, 3, "fail", 5])
        system.drain(60)
    assert len(recorded.spans()) == 5


def test_a_stashed_message_keeps_its_senders_span(recorded: Recorded) -> None:
    class Stashing(Actor[Any]):
        is_open = False

        def receive(self, message: Any) -> None:
            if message == "open":
                self.is_open = True
                self.unstash_all()
            elif not self.is_open:
                self.stash()

    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        ref = system.spawn(Stashing)
        with recorded.tracer.start_as_current_span("request") as request:
            ref.tell("wait")
        ref.tell("open")
        system.drain(60)
    assert [parent_of(span) for span in recorded.spans() if span.name != "request"] == [
        ids(request),
        None,
        ids(request),
    ]


def test_an_actor_that_stops_in_the_middle_of_a_coroutine_ends_its_span(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    begun = threading.Event()

    class Waiter(Actor[Any]):
        async def receive(self, message: Any) -> None:
            begun.set()
            await self.sleep(3600)

    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        ref = system.spawn(Waiter)
        ref.tell(0)
        assert begun.wait(30)
        ref.stop()
        ref.ended.result(30)
    gc.collect()
    assert len(recorded.spans()) == 1
    assert "Failed to detach context" not in caplog.text


def test_the_first_spans_of_a_fan_out_are_children_and_later_ones_links(recorded: Recorded) -> None:
    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider, fan_out=3)
        box = system.spawn(Box)
        with recorded.tracer.start_as_current_span("request") as request:
            box.tell_many(range(10))
        system.drain(60)
    spans = recorded.spans("Box.receive")
    assert [parent_of(span) for span in spans] == [ids(request)] * 3 + [None] * 2
    for span in spans[3:]:
        (link,) = span.links
        assert (link.context.trace_id, link.context.span_id) == ids(request)
        assert ids(span)[0] != ids(request)[0]


def test_a_handler_without_a_span_sends_in_the_senders(recorded: Recorded) -> None:
    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider, fan_out=2)
        box = system.spawn(Box)
        relay = system.spawn(Relay, box)
        with recorded.tracer.start_as_current_span("request") as request:
            relay.tell_many(range(3))
        system.drain(60)
    assert len(recorded.spans("Relay.receive")) == 2
    below = {ids(span) for span in recorded.spans("Relay.receive")}
    parents = [parent_of(span) for span in recorded.spans("Box.receive")]
    assert below <= set(parents)
    linked = [span for span in recorded.spans("Box.receive") if span.links]
    assert [link.context.span_id for span in linked for link in span.links] == [ids(request)[1]]


def test_conventions_for_messaging_are_there_if_they_are_asked_for(recorded: Recorded) -> None:
    with ActorSystem("net", workers=1) as system:
        instrument(system, tracer_provider=recorded.provider, messaging=True)
        system.spawn(Box, name="box").tell(0)
        system.drain(60)
    (span,) = recorded.spans()
    assert span.name == "process Box"
    assert span.attributes is not None
    assert span.attributes["messaging.system"] == "callboard"
    assert span.attributes["messaging.destination.name"] == "/box"
    assert span.attributes["callboard.actor.path"] == "/box"


def test_actors_that_take_many_messages_at_once_have_no_spans(recorded: Recorded) -> None:
    class Many(Actor[Any]):
        def receive(self, message: Any) -> None:
            pass

        def receive_many(self, messages: list[Any]) -> None:
            pass

    with ActorSystem(workers=1) as system:
        instrument(system, tracer_provider=recorded.provider)
        many = system.spawn(Many)
        many.tell_many(range(5))
        many.ask(0).result(30)
        system.drain(60)
    assert recorded.spans() == []


def test_a_traceparent_names_the_span_in_place(recorded: Recorded) -> None:
    assert traceparent() is None
    with recorded.tracer.start_as_current_span("request") as request:
        assert str(traceparent()).startswith("00-{:032x}-{:016x}-".format(*ids(request)))


def test_a_system_is_instrumented_once_and_before_it_has_actors(recorded: Recorded) -> None:
    with ActorSystem("net", workers=1) as system:
        with pytest.raises(ConfigError, match="`fan_out` must be a whole number"):
            instrument(system, fan_out=0)
        with pytest.raises(ConfigError, match="`messaging`"):
            instrument(system, messaging=1)  # type: ignore[arg-type]
        instrument(system)
        with pytest.raises(CallboardError, match="the system 'net' is already instrumented"):
            instrument(system)
    with ActorSystem("net", workers=1) as system:
        system.spawn(Box, name="box")
        with pytest.raises(CallboardError, match="'net' already has actors, such as /box"):
            instrument(system)


def test_without_a_provider_messages_are_handled_as_ever() -> None:
    with ActorSystem(workers=1) as system:
        instrument(system)
        box = system.spawn(Box)
        assert box.ask(0).result(30) is None


async def answered(message: str) -> str:
    return message


def test_a_coroutine_that_never_begins_ends_its_span_and_says_nothing(
    recorded: Recorded, recwarn: pytest.WarningsRecorder
) -> None:
    """As where an ask is cancelled before the event loop comes to it."""
    span = recorded.tracer.start_span("process Answered")
    coroutine = opentelemetry._within(contexts.Context(), span, answered, ("never",))
    coroutine.close()
    del coroutine
    gc.collect()
    assert [span.name for span in recorded.spans()] == ["process Answered"]
    assert not recwarn.list
