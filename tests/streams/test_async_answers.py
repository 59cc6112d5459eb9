"""A function that returns a coroutine, as a lambda around an `async` one may, fails at its row."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.core.errors import CallboardError
from callboard.streams import (
    Band,
    Equal,
    Graph,
    RowCounts,
    Run,
    SessionWindow,
    SlidingWindow,
    Stream,
    StreamError,
    TumblingWindow,
    Watermark,
    entry,
)


async def fetch(*row: Any) -> bool:
    return False


async def pages(*row: Any) -> AsyncIterator[bool]:
    yield False


def later(*row: Any) -> Any:
    """Answer as a lambda, or a decorator, around an `async` function."""
    return fetch(*row)


def many_later(*row: Any) -> Any:
    return pages(*row)


class Receiver:
    def __init__(self, method: str, answer: Callable[..., Any]) -> None:
        self.method, self.answer = method, answer

    def receive(self, row: Any) -> Any:
        return self.answer(row) if self.method == "receive" else None

    def on_watermark(self, time: Any) -> Any:
        return self.answer(time) if self.method == "on_watermark" else None

    def on_final(self) -> Any:
        return self.answer() if self.method == "on_final" else None


class Chunks:
    def __init__(self, answer: Callable[..., Any]) -> None:
        self.answer = answer

    def receive_many(self, rows: list[Any]) -> Any:
        return self.answer(rows)


Make = Callable[[Stream[Any], Callable[..., Any]], Any]

VALUES: dict[str, Make] = {
    "map": lambda rows, f: rows.map(f),
    "map_batches": lambda rows, f: rows.map_batches(f),
    "flat_map": lambda rows, f: rows.flat_map(f),
    "stateless": lambda rows, f: rows.stateless(f),
    "stateful": lambda rows, f: rows.stateful(Receiver, "receive", f),
    "on_watermark": lambda rows, f: rows.stateful(Receiver, "on_watermark", f),
    "on_final": lambda rows, f: rows.stateful(Receiver, "on_final", f),
    "receive_many": lambda rows, f: rows.stateful(Chunks, f),
    "a key": lambda rows, f: rows.key_by(f).count(),
    "scan": lambda rows, f: rows.scan(0, f),
    "fold": lambda rows, f: rows.fold(0, f),
    "reduce": lambda rows, f: rows.reduce(f, every=2),
    "top_k": lambda rows, f: rows.top_k(2, f),
    "distinct": lambda rows, f: rows.distinct(f),
    "frequent": lambda rows, f: rows.frequent(f, epsilon=0.1),
    "a window": lambda rows, f: rows.window(TumblingWindow(2), f),
    "a window's time": lambda rows, f: rows.window(SlidingWindow(4, 2, by=f), len),
    "a window by time": lambda rows, f: rows.window(TumblingWindow(2, by=abs), f),
    "a session": lambda rows, f: rows.window(SessionWindow(2, by=abs), f),
    "a session's time": lambda rows, f: rows.window(SessionWindow(2, by=f), len),
    "watermarks": lambda rows, f: rows.watermarks(f, delay_threshold=0),
    "union": lambda rows, f: rows.union(rows.map(abs), by=f),
    "merge": lambda rows, f: rows.merge(rows.map(abs), by=f),
    "a join's time": lambda rows, f: rows.join(rows, by=f, rows=9),
    "combine": lambda rows, f: rows.join(rows, by=abs, rows=9, combine=f),
    "combine, in lanes": lambda rows, f: rows.join(rows, by=abs, rows=9, combine=f, lanes=2),
    "Equal": lambda rows, f: rows.join(rows, by=abs, rows=9, where=Equal(f)),
    "two Equal": lambda rows, f: rows.join(rows, by=abs, rows=9, where=Equal(abs) & Equal(f)),
    "Band": lambda rows, f: rows.join(rows, by=abs, within=9, where=Band(f, 1)),
}
DECISIONS: dict[str, Make] = {
    "filter": lambda rows, f: rows.filter(f),
    "branch": lambda rows, f: rows.branch(f)[0],
    "a later branch": lambda rows, f: rows.branch(lambda row: False, f)[1],
    "where": lambda rows, f: rows.join(rows, by=abs, rows=9, where=f),
    "where, in lanes": lambda rows, f: rows.join(rows, by=abs, within=9, where=f, lanes=2),
}
ROWS = [1, 2, 3, Watermark(3), 4]


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    """Check that nothing was left that Python says was never awaited."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(each.message) for each in said if each.category is RuntimeWarning] == []


def check_refused(graph: Graph[Any], match: str) -> None:
    with pytest.raises(StreamError) as raised:
        graph.run_sequentially({"rows": ROWS})
    assert isinstance(raised.value.__cause__, TypeError)
    assert match in str(raised.value.__cause__)
    with ActorSystem() as system, pytest.raises(StreamError):
        feed(system.run(graph))
    raised.value.__cause__ = None


def feed(run: Run[Any]) -> None:
    run.send("rows", ROWS)
    run.finish(timeout=60)


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        *((kind, later) for kind in VALUES | DECISIONS),
        *(("map", answer) for answer in (many_later, partial(later), lambda *row: fetch(*row))),
    ],
)
def test_an_unawaited_answer_is_an_error_of_its_row(kind: str, answer: Callable[..., Any]) -> None:
    made = (VALUES | DECISIONS)[kind](entry("rows"), answer)
    check_refused(made.collect(), "(), which is never awaited")


@pytest.mark.parametrize("kind", ["filter", "map", "a window", "where"])
def test_such_a_row_is_skipped_where_errors_are(kind: str) -> None:
    rows = entry("rows", int)
    ways: dict[str, Stream[Any]] = {
        "filter": rows.filter(later, errors="skip"),
        "map": rows.map(later, errors="skip"),
        "a window": rows.window(TumblingWindow(1), later, errors="skip"),
        "where": rows.join(rows, by=abs, rows=1, where=later, errors="skip"),
    }
    counts = RowCounts()
    assert ways[kind].collect().run_sequentially({"rows": [1, 2]}, row_counts=counts) == []
    assert counts.skips.total() >= 2


def test_a_sink_that_answers_so_has_not_had_the_row() -> None:
    check_refused(entry("rows").to(later), "is never awaited")


def test_a_decision_that_is_a_future_or_generator_is_refused() -> None:
    def numbers() -> Iterator[int]:
        yield 0

    loop = asyncio.new_event_loop()
    future = loop.create_future()
    for answer in (numbers, lambda: future):
        for make in DECISIONS.values():
            check_refused(
                make(entry("rows"), lambda *row: answer()).collect(),  # noqa: B023
                "which is true whatever comes of it",
            )
    loop.close()


def test_an_awaitable_may_be_a_value() -> None:
    class Answer:
        def __await__(self) -> Any:
            yield

    class Counted(Answer):
        def __bool__(self) -> bool:
            return False

    answers = entry("rows").map(lambda row: Answer()).map(lambda answer: type(answer).__name__)
    assert answers.collect().run_sequentially({"rows": [1]}) == ["Answer"]
    chosen = entry("rows").filter(lambda row: Counted()).collect()
    assert chosen.run_sequentially({"rows": [1]}) == []


def test_answers_that_are_true_or_false_in_their_own_way_decide() -> None:
    answers = [True, False, None, 0, 1, "", "a", [], [0], {}, {1: 1}, object(), 0.0, frozenset()]
    chosen = entry("rows").filter(lambda row: row).collect()
    assert chosen.run_sequentially({"rows": answers}) == [each for each in answers if each]


def test_an_async_function_itself_is_refused_where_the_graph_is_made() -> None:
    for make in DECISIONS.values():
        with pytest.raises(CallboardError, match="is never awaited"):
            make(entry("rows"), fetch)


def test_map_awaits_what_the_function_s_coroutine_returns() -> None:
    async def doubled(number: int) -> int:
        return 2 * number

    async def later(number: int) -> Any:
        return doubled(number)

    def plain(number: int) -> Any:
        return later(number)

    graph = entry("rows").map(plain, in_flight=2).collect()
    assert graph.run_sequentially({"rows": range(5)}) == list(range(0, 10, 2))
