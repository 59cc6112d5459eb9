"""Records and nets that make no sense: errors that show the value, and nothing hangs."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import ActorSystem, DeadLetter
from callboard.nets import (
    BoxError,
    Net,
    NetEnded,
    NetError,
    RecordError,
    box,
    feedback,
    parse,
    star,
)
from callboard.nets import filter as filtering
from callboard.nets import split as split_by
from tests.nets.running.gate import TIMEOUT, send_all, within

plus = filtering("{x, <n>} -> {x, <n=n+1>}")


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        (7, "7"),
        ("text", "'text'"),
        (None, "None"),
        ([("x", 1)], r"\[\('x', 1\)\]"),
        ({1: 2}, "1"),
        ({"x": 1, "<n>": "two"}, "'two'"),
        ({"x": 1, "n": 2.5}, "2.5"),
        ({"x": 1, "<n>": None}, "None"),
        ({"x": 1, "<n>": 1, "<m>": "q"}, "'q'"),
    ],
    ids=repr,
)
def test_a_row_that_is_not_a_record_is_refused_and_the_run_goes_on(
    system: ActorSystem, letters: list[DeadLetter], row: Any, fact: str
) -> None:
    run = system.run(plus)
    good = {"x": 0, "<n>": 0}
    with pytest.raises(RecordError, match=fact) as caught:
        run.send([good, row, good], timeout=TIMEOUT)
    assert caught.value.sent == 1  # type: ignore[attr-defined]
    assert caught.value.unsent == [row, good]  # type: ignore[attr-defined]
    with pytest.raises(RecordError, match=fact):
        run.ask(row).result(TIMEOUT)
    assert not letters
    run.tell_many([good, row, good])
    assert run.finish(TIMEOUT) == [{"x": 0, "<n>": 1}] * 3
    assert [(letter.message, letter.reason) for letter in letters] == [(row, "refused")]


a_or_b = box(abs, "(a) -> (c)") | box(abs, "(b) -> (c)")


@pytest.mark.parametrize(
    ("net", "row", "fact"),
    [
        (plus, {"x": 1}, "/"),
        (box(abs, "(x) -> (y)"), {"z": 1}, "z"),
        (a_or_b, {"z": 1}, "expected what a branch takes, which is {a}; {b}, got {z}"),
        (split_by(plus, "<i>"), {"x": 1, "<n>": 1}, "<i>"),
        (split_by(box(abs, "(x) -> (y)"), "key"), {"x": 1, "key": []}, "list"),
        (filtering("{<n>} -> if <n > 0> then {<n>}"), {"n": 0}, "expected a rule of the filter"),
        (filtering("{<n>} -> {<n=1/n>}"), {"n": 0}, "division|zero|0"),
        (filtering("{<n>} -> {<n=1%n>}"), {"n": 0}, "division|zero|0"),
        (
            star(filtering("{<n>} -> {<n=n-1>}"), "{<n>} if <n == 0>", limit=50),
            {"n": -1},
            "expected at most 50 replicas in series",
        ),
    ],
)
def test_a_record_that_cannot_go_on_says_why(
    system: ActorSystem, letters: list[DeadLetter], net: Net, row: Any, fact: str
) -> None:
    run = system.run(net)
    with pytest.raises((RecordError, BoxError), match=fact):
        run.ask(row).result(TIMEOUT)
    assert not letters
    with pytest.raises((RecordError, BoxError), match=fact):
        send_all(run, row)
    assert [letter.reason for letter in letters] == ["failed"]


@pytest.mark.parametrize(
    "net",
    [
        filtering("{<n>} -> {<m=10/n>}"),
        filtering("{<n>} -> if <10 % n == 1> then {<n>} else {<n=0>}"),
        star(filtering("{<n>} -> {<n=n-1>}"), "{<n>} if <10 / n > 3>"),
    ],
    ids=["a filter's value", "its guard", "an exit of a star"],
)
def test_a_division_by_zero_is_an_error_of_the_record(system: ActorSystem, net: Net) -> None:
    with pytest.raises(RecordError, match=r"divides by zero, with {'<n>': 0}") as caught:
        system.run(net).ask({"<n>": 0}).result(TIMEOUT)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_record_that_ran_away_says_which_boxes_were_called(system: ActorSystem) -> None:
    @box("(x) -> (x, y)")
    def first(x: int) -> Any:
        return x, x

    @box("(y) -> (z)")
    def second(y: int) -> Any:
        return y

    run = system.run(star(first | second, "{z}", limit=7))
    with pytest.raises(RecordError, match=r"7 replicas in series.* 7 to /first, 0 to /second"):
        run.ask({"x": 1}).result(TIMEOUT)


def test_a_value_whose_label_nothing_says_is_refused(system: ActorSystem) -> None:
    run = system.run(box(lambda x: 1, name="one"))
    with pytest.raises(RecordError, match=r"/one: .* output that is a dict: neither its sig"):
        run.ask({"x": 1}).result(TIMEOUT)


def test_a_guard_over_a_tag_that_is_not_there_says_so(system: ActorSystem) -> None:
    run = system.run(feedback(filtering("{x} -> {x, <n=0>}"), "{x} if <n > 0>"))
    with pytest.raises(RecordError, match="<n>"):
        run.ask({"x": 1}).result(TIMEOUT)
    assert run.ask({"x": 1, "n": 1}).result(TIMEOUT) == [{"x": 1, "<n>": 0}]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
def test_a_loop_that_never_ends_can_be_cancelled(system: ActorSystem, elsewhere: bool) -> None:
    async def same(x: int) -> int:
        return x

    body: Net = filtering("{x} -> {x}") if not elsewhere else box(same, "(x) -> (x)")
    run = system.run(feedback(body, "{x}"))
    run.tell({"x": 1})
    seen = run.statistics().hops
    while run.statistics().hops <= seen:
        pass  # it goes round, and statistics come nevertheless
    finishes = within(run.finish)
    run.cancel(TIMEOUT)
    with pytest.raises(NetEnded):
        finishes.result(TIMEOUT)


def test_a_box_without_a_function_is_refused_with_its_name(system: ActorSystem) -> None:
    text = "net n ({x} -> {y}) { box work ((x) -> (y)); } connect work;"
    with pytest.raises(NetError, match="work"):
        system.run(parse(text))


def test_only_nets_are_run(system: ActorSystem) -> None:
    values: list[Any] = [7, None, len]
    for wrong in values:
        hint = "make it a box" if callable(wrong) else "run.. expected a net"
        with pytest.raises((TypeError, ValueError), match=hint):
            system.run(wrong)


def test_guards_of_several_exits_are_apart(system: ActorSystem) -> None:
    """A guard may be a choice of two in Python, too, and another one comes behind it."""
    down = filtering("{<n>} -> {<n=n-1>}")
    net = star(down, "{<n>} if <0 ? 1 : n/3>, {<n>} if <n <= 0>", limit=10)
    assert send_all(system.run(net), [{"<n>": 2}]) == [{"<n>": 0}]


def test_an_expression_that_is_too_deep_for_python_is_an_error_of_nets(system: ActorSystem) -> None:
    deep = "".join(f"(n > {at} ? " for at in range(220)) + "n" + " : 0)" * 220
    run = system.run(filtering(f"{{<n>}} -> {{<m={deep}>}}"))
    with pytest.raises(NetError, match="too deep"):
        run.ask({"<n>": 1}).result(TIMEOUT)
