"""Spans of OpenTelemetry around handlers, with the senders' spans as parents.

It needs `opentelemetry-api`, the extra `opentelemetry`. Spans are recorded by whatever the program
has set up: `opentelemetry-sdk`, or a vendor's distribution.

A message brings its sender's context variables along, as it does for actors with
`context="sender"`; OpenTelemetry's context is one of them. Here they are not put in place, but for
OpenTelemetry's own.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Coroutine, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple

from callboard._inside.receiving.loop_task import variables_in_work
from callboard.core import checks
from callboard.core.errors import CallboardError, ConfigError
from callboard.core.text import safe_str
from callboard.diagnosis import all_actors

try:
    from opentelemetry import context as contexts
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        "spans need opentelemetry-api: pip install 'callboard[opentelemetry]'", name=_missing.name
    ) from _missing

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard.system import ActorSystem

__all__ = ["instrument", "traceparent"]

_MOST_SENDERS = 1000  # spans whose messages are counted, the latest
_W3C = TraceContextTextMapPropagator()


def instrument(
    system: ActorSystem,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    fan_out: int | None = None,
    messaging: bool = False,
) -> None:
    """Put a span around the handling of each message of a system that has no actors yet.

    Its parent is the span in which the message was told or asked. The handler runs within it, so
    spans that the handler begins are its children, and log records have its ids where
    OpenTelemetry's integration of `logging` adds them. The span ends with the handler or its
    coroutine, and records its exception.

    Native actors, tasks, actors with `receive_many` and those of callboard itself have no spans.

    Args:
        system: The system.
        tracer_provider: Makes the spans; by default the global one.
        fan_out: Only the first `fan_out` messages of a span have spans below it. After them, every
            `fan_out`-th has a span in a new trace, with a link to the sender's, and the others have
            none.
        messaging: Add the attributes and names of OpenTelemetry's conventions for messaging, which
            may still change.

    Raises:
        CallboardError: The system has actors already, or is instrumented.
        ConfigError: An argument is invalid.
    """
    if fan_out is not None:
        checks.whole("`fan_out`", fan_out, error=ConfigError)
    checks.flag("`messaging`", messaging, error=ConfigError)
    runtime = system._runtime
    runtime.refuse_fork()
    if runtime.spans is not None:
        raise CallboardError(f"the system {runtime.name!r} is already instrumented")
    for ref in all_actors(runtime):
        raise CallboardError(
            f"the system {runtime.name!r} already has actors, such as {ref._short_path}: "
            "instrument it before it has any"
        )
    tracer = trace.get_tracer("callboard", tracer_provider=tracer_provider)
    runtime.spans = Spans(tracer, runtime.name, fan_out, messaging)


def traceparent() -> str | None:
    """Return the W3C `traceparent` of the caller's span; None outside a span.

    `callboard.remote.connect(url, traces=traceparent)` sends it to the server with each message.
    """
    headers: dict[str, str] = {}
    _W3C.inject(headers)
    return headers.get("traceparent")


class _Parentage(NamedTuple):
    """The place of a message's span."""

    has_span: bool
    parent: contexts.Context
    links: Sequence[trace.Link]


class Spans:
    """The spans of one system's messages."""

    def __init__(
        self, tracer: trace.Tracer, system: str, fan_out: int | None, messaging: bool
    ) -> None:
        self._tracer = tracer
        self._system = system
        self._fan_out = fan_out
        self._messaging = messaging
        self._lock = threading.Lock()
        self._sent: dict[tuple[int, int], int] = {}  # messages of the latest spans

    def around(self, ref: ActorRef[Any], handler: Callable[..., Any]) -> Callable[..., Any]:
        """Return a handler that calls this one within a span."""
        cls = ref.actor_class
        is_ours = cls.__module__.partition(".")[0] == "callboard"
        name, attributes = self._described(cls.__qualname__, ref.path)

        def handle(*args: Any) -> Any:
            variables = variables_in_work()
            parent = contexts.Context() if variables is None else variables.run(_current)
            links: Sequence[trace.Link] = ()
            has_span = not is_ours
            if has_span and self._fan_out is not None:
                has_span, parent, links = self._parentage(parent, self._fan_out)
            if not has_span:
                return _within(parent, None, handler, args)
            span = self._tracer.start_span(name, parent, trace.SpanKind.CONSUMER, attributes, links)
            return _within(trace.set_span_in_context(span, parent), span, handler, args)

        return handle

    def continued(self, traceparent: str) -> contextvars.Context:
        """Return context variables for a sender in another process, by its `traceparent`."""
        variables = contextvars.Context()
        variables.run(contexts.attach, _W3C.extract({"traceparent": traceparent}))
        return variables

    def _described(self, cls: str, path: str) -> tuple[str, dict[str, str]]:
        """Return the name and the attributes of an actor's spans."""
        attributes = {
            "callboard.system": self._system,
            "callboard.actor.class": cls,
            "callboard.actor.path": path,
        }
        if not self._messaging:
            return f"{cls}.receive", attributes
        return f"process {cls}", attributes | {
            "messaging.system": "callboard",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": path,
            "messaging.destination.template": cls,
        }

    def _parentage(self, parent: contexts.Context, most: int) -> _Parentage:
        """Decide by the number of messages of the sender's span."""
        sender = trace.get_current_span(parent).get_span_context()
        if not sender.is_valid:
            return _Parentage(True, parent, ())
        key = (sender.trace_id, sender.span_id)
        with self._lock:
            sent = self._sent.pop(key, 0) + 1
            self._sent[key] = sent
            if len(self._sent) > _MOST_SENDERS:
                del self._sent[next(iter(self._sent))]
        if sent <= most:
            return _Parentage(True, parent, ())
        if sent % most:
            return _Parentage(False, parent, ())
        apart = trace.set_span_in_context(trace.INVALID_SPAN, parent)
        return _Parentage(True, apart, (trace.Link(sender),))


def _current() -> contexts.Context:
    return contexts.get_current()


def _within(
    context: contexts.Context,
    span: trace.Span | None,
    handler: Callable[..., Any],
    args: tuple[Any, ...],
) -> Any:
    """Call a handler within a context, and end the span with it, or with its coroutine."""
    token = contexts.attach(context)
    try:
        answer = handler(*args)
    except BaseException as error:
        _end(span, error)
        raise
    finally:
        contexts.detach(token)
    if type(answer) is CoroutineType:
        return _go_on(_Begun(context, span, answer))
    _end(span, None)
    return answer


class _Begun:
    """A handler's coroutine and its span. If it never runs, both end with this object."""

    def __init__(
        self,
        context: contexts.Context,
        span: trace.Span | None,
        coroutine: Coroutine[Any, Any, Any],
    ) -> None:
        self._parts = context, span, coroutine
        self._is_taken = False

    def take(self) -> tuple[contexts.Context, trace.Span | None, Coroutine[Any, Any, Any]]:
        """Return the parts, which the caller has to end."""
        self._is_taken = True
        return self._parts

    def __del__(self) -> None:
        if not self._is_taken:
            _, span, coroutine = self._parts
            coroutine.close()
            _end(span, None)


async def _go_on(begun: _Begun) -> Any:
    context, span, coroutine = begun.take()
    token = contexts.attach(context)
    try:
        answer = await coroutine
        while type(answer) is CoroutineType:  # it is to be awaited, too
            answer = await answer
    except GeneratorExit:  # the actor has ended: whoever closes this is in another context
        _end(span, None)
        raise
    except BaseException as error:
        _end(span, error)
        contexts.detach(token)
        raise
    _end(span, None)
    contexts.detach(token)
    return answer


def _end(span: trace.Span | None, error: BaseException | None) -> None:
    if span is None:
        return
    if error is not None:
        span.record_exception(error)
        text = f"{type(error).__name__}: {safe_str(error)}"
        span.set_status(trace.Status(trace.StatusCode.ERROR, text))
    span.end()
