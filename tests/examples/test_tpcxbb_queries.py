"""The five queries as graphs: their answers are those of the plain programs, in order."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.testing import ManualSystem
from sessions import Change
from tpcxbb import changes, questions, sequential
from tpcxbb.command import POLICIES
from tpcxbb.generator import Shop
from tpcxbb.queries import graph
from tpcxbb.questions import QUERIES, Question
from tpcxbb.sequential import DAY, HOUR

SHOP = Shop(scale=0.005, seed=3)
ROWS: dict[str, list[Any]] = {
    "web_clickstreams": list(SHOP.clicks()),
    "store_sales": list(SHOP.sales()),
}


def assert_graph_agrees(
    query: int, question: Question, rows: list[Any], batch_size: int = 256, partitions: int = 64
) -> None:
    made = graph(query, question, partitions)
    answer = made.run_sequentially({question.stream: rows}, batch_size=batch_size)
    assert answer == sequential.answer(query, question, rows)


@pytest.mark.parametrize("batch_size", [1, 10, 256])
@pytest.mark.parametrize("query", QUERIES)
def test_a_graph_on_the_shop_equals_the_plain_program(query: int, batch_size: int) -> None:
    question = questions.about(SHOP)[query]
    assert_graph_agrees(query, question, ROWS[question.stream], batch_size)


@pytest.mark.parametrize("query", QUERIES)
def test_a_graph_on_file_changes_equals_the_program(query: int, stream: list[Change]) -> None:
    assert_graph_agrees(query, changes.about(stream)[query], stream)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("query", QUERIES)
def test_a_run_on_several_workers_has_the_same_answer(query: int, policy: str) -> None:
    question = questions.about(SHOP)[query]
    rows = ROWS[question.stream]
    with ActorSystem(workers=3) as system:
        run = system.run(graph(query, question), policy=policy, batch_size=50, window=8)
        run.send(question.stream, rows)
        answer = run.finish(timeout=60)
    assert answer == sequential.answer(query, question, rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("query", QUERIES)
def test_a_run_in_a_seeded_order_has_the_same_answer(query: int, seed: int) -> None:
    question = questions.about(SHOP)[query]
    rows = ROWS[question.stream][:3_000]
    with ManualSystem(seed, trace=False) as system:
        run = system.run(graph(query, question, partitions=4), batch_size=20, window=4)
        run.send(question.stream, rows)
        answer = run.finish()
    assert answer == sequential.answer(query, question, rows)


SHAPES = {
    1: "SL -> PS -> PS -> SF",
    2: "SL -> PS -> SL -> PS -> SF",
    3: "SL -> PS -> PS",
    4: "SL -> PS -> SL -> SF",
    15: "SL -> SL -> PS",
}
WORKERS = {"any number of workers": "SL", "partitions of keys": "PS", "one worker at a time": "SF"}


@pytest.mark.parametrize("query", QUERIES)
def test_a_graph_has_the_shape_that_the_paper_gives_it(query: int) -> None:
    entry, *operators, sink = graph(query, questions.about(SHOP)[query]).describe().splitlines()
    assert entry.split() == [questions.about(SHOP)[query].stream, "entry"]
    assert sink.startswith("collect")
    kinds = [next(WORKERS[text] for text in WORKERS if text in line) for line in operators]
    assert " -> ".join(kinds) == SHAPES[query]


any_machine = settings(deadline=None, max_examples=60)


def as_they_are(row: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
    return (row,)


GAPS = st.sampled_from([0, 1, HOUR, HOUR + 1, DAY, 10 * DAY])
TIMES = st.lists(GAPS, max_size=60).map(lambda gaps: list(accumulate(gaps)))


def rows_at(times: list[int], *fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    of_row = st.tuples(*fields)
    drawn = st.lists(of_row, min_size=len(times), max_size=len(times))
    return drawn.map(lambda rows: [(time, *row) for time, row in zip(times, rows, strict=True)])


USERS = st.sampled_from("uvw")
ITEMS = st.sampled_from("abcdef")
SIZES = st.sampled_from([1, 3, 100])


@any_machine
@given(TIMES.flatmap(lambda times: rows_at(times, USERS, ITEMS)), SIZES, st.integers(1, 4))
def test_query_2_agrees_on_any_views(rows: list[Any], batch_size: int, largest: int) -> None:
    question = Question("", "views", as_they_are, {"top": 3, "largest": largest})
    assert_graph_agrees(2, question, rows, batch_size, partitions=2)


@any_machine
@given(TIMES.flatmap(lambda times: rows_at(times, USERS, ITEMS, st.booleans())), SIZES)
def test_query_3_agrees_on_any_events(rows: list[Any], batch_size: int) -> None:
    question = Question("", "events", as_they_are, {"top": 3, "last": 2})
    assert_graph_agrees(3, question, rows, batch_size, partitions=2)


@any_machine
@given(TIMES.flatmap(lambda times: rows_at(times, USERS, st.booleans(), st.booleans())), SIZES)
def test_query_4_agrees_on_any_visits(rows: list[Any], batch_size: int) -> None:
    assert_graph_agrees(4, Question("", "visits", as_they_are), rows, batch_size, partitions=2)


BASKETS = TIMES.flatmap(lambda times: rows_at(times, USERS, st.text("abcdef", max_size=6)))


@any_machine
@given(BASKETS, SIZES, st.integers(1, 4))
def test_query_1_agrees_on_any_baskets(baskets: list[Any], batch_size: int, largest: int) -> None:
    rows = [
        (time, user, number, item)
        for number, (time, user, items) in enumerate(baskets)
        for item in items
    ]
    question = Question("", "lines", as_they_are, {"top": 3, "largest": largest})
    assert_graph_agrees(1, question, rows, batch_size, partitions=2)


DAYS = st.lists(st.integers(0, 5), max_size=40).map(sorted)


@any_machine
@given(DAYS.flatmap(lambda days: rows_at(days, ITEMS, st.integers(-3, 3))), SIZES)
def test_query_15_agrees_on_any_amounts(rows: list[Any], batch_size: int) -> None:
    question = Question("", "amounts", as_they_are, {"group_of": lambda item: item < "c"})
    assert_graph_agrees(15, question, rows, batch_size, partitions=2)
