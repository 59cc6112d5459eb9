"""The oracle itself: each rule by an example that was computed by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from callboard.nets.errors import NetTypeError, RecordError
from callboard.nets.terms.network import Choice, NamedNet, Net, Ordered, RecordFilter
from callboard.nets.terms.patterns import Mapping, Signature
from tests.nets.inference import inputs_of
from tests.nets.making import (
    box,
    cell,
    choosing,
    expression,
    feedback,
    filtering,
    only,
    serial,
    split,
    star,
    variant,
)
from tests.nets.oracle import Outcome, evaluate, run

Records = list[dict[str, Any]]


def outputs(net: Net, *records: dict[str, Any]) -> Records:
    """Return what comes out of a net. Nothing stays in it."""
    outcome = run(net, records)
    assert outcome == Outcome(outcome.outputs, steps=outcome.steps)
    return outcome.outputs


def error(net: Net, *records: dict[str, Any]) -> str:
    """Return the message of the error that ends a run."""
    found = run(net, records).error
    assert isinstance(found, RecordError)
    return str(found)


def double(x: int) -> int:
    return 2 * x


def both(x: int, y: int) -> dict[str, int]:
    return {"x": x, "y": y}


doubles = box("x", "x", double)


def marks(sign: str, pattern: str = "", *more: str) -> Net:
    """Return a filter that takes a variant and adds a tag."""
    return filtering(pattern, [*pattern.split(), f"<{sign}=1>", *more])


# Boxes and what they return.


def test_a_box_takes_its_arguments_in_the_signatures_order() -> None:
    def minus(a: int, b: int) -> int:
        return a - b

    assert outputs(box("b <t>", "a", minus), {"<t>": 1, "b": 5}) == [{"a": 4}]


def test_surplus_labels_are_inherited_unless_the_output_has_them() -> None:
    def swaps(x: int) -> dict[str, int]:
        return {"y": x}

    got = outputs(box("x", "y", swaps), {"x": 1, "y": 2, "z": 3, "<t>": 4})
    assert got == [{"y": 1, "z": 3, "<t>": 4}]


def test_each_output_inherits() -> None:
    def twice(x: int) -> Iterator[int]:
        yield x
        yield x + 1

    got = outputs(box("x", "y", twice), {"x": 1, "z": 3})
    assert got == [{"y": 1, "z": 3}, {"y": 2, "z": 3}]


def test_boxes_and_filters_refuse_a_binding_tag_that_they_do_not_name() -> None:
    record = {"x": 1, "<#i>": 3}
    for net in (doubles, filtering("x", ["x"])):
        assert "takes {x}" in error(net, record)
    assert outputs(filtering("x <#i>", ["x"]), record) == [{"x": 1}]


def test_the_empty_filter_hands_on_binding_tags() -> None:
    assert outputs(RecordFilter(), {"x": 1, "<#i>": 3}) == [{"x": 1, "<#i>": 3}]


def test_a_box_that_returns_none_has_no_output() -> None:
    def nothing(x: int) -> None:
        return None

    assert outputs(box("x", "y", nothing), {"x": 1}) == []
    assert outputs(box("x", "-", nothing), {"x": 1}) == []


def test_a_mapping_is_one_record_and_its_names_are_those_of_the_signature() -> None:
    def compares(x: int) -> dict[str, object]:
        return {"x": x, "p": x > 1}

    got = outputs(box("x", "x <p>", compares), {"x": 5})
    assert got == [{"x": 5, "<p>": 1}]
    assert type(got[0]["<p>"]) is int


def test_one_variant_of_several_labels_takes_a_tuple() -> None:
    def divided(x: int) -> tuple[int, int]:
        return divmod(x, 10)

    assert outputs(box("x", "y <t>", divided), {"x": 42}) == [{"y": 4, "<t>": 2}]


def test_the_fields_of_a_dataclass_are_labels() -> None:
    @dataclass
    class Point:
        x: int
        t: int

    def point(x: int) -> Point:
        return Point(x, 7)

    assert outputs(box("x", "x <t>", point), {"x": 1}) == [{"x": 1, "<t>": 7}]


def test_coroutines_and_asynchronous_generators_are_run() -> None:
    async def later(x: int) -> int:
        return x + 1

    async def counts(x: int) -> AsyncIterator[int]:
        for y in range(x):
            yield y

    got = outputs(serial(box("x", "x", later), box("x", "y", counts)), {"x": 1})
    assert got == [{"y": 0}, {"y": 1}]


def test_an_output_that_the_signature_does_not_have_is_an_error() -> None:
    assert "promises (x) -> (x)" in error(box("x", "x", lambda x: {"y": x}), {"x": 1})
    assert run(box("x", None, lambda x: {"y": x}), [{"x": 1}]).outputs == [{"y": 1}]


def test_a_box_without_its_labels_is_an_error() -> None:
    assert "takes {x}" in error(doubles, {"y": 1})


def test_names_that_are_known_as_tags_alone_are_tags() -> None:
    net = filtering("x <n>", ["x", "<n=n + 1>"])
    assert outputs(net, {"x": 1, "n": True, "p": 3}) == [{"x": 1, "<n>": 2, "p": 3}]


def test_a_tag_is_an_integer() -> None:
    assert "no value for the tag <n>" in error(RecordFilter(), {"<n>": 1.5})


# Filters and expressions.


def test_a_filter_renames_copies_and_computes() -> None:
    net = filtering("a <n>", ["a", "b=a", "<n=n - 1>"], ["a", "<n>", "<new>"])
    assert outputs(net, {"a": "A", "<n>": 3, "s": 0, "<new>": 9}) == [
        {"a": "A", "b": "A", "<n>": 2, "s": 0, "<new>": 9},
        {"a": "A", "<n>": 3, "<new>": 0, "s": 0},
    ]


def test_the_first_rule_whose_guard_is_true_acts() -> None:
    net = choosing("<n>", ("n > 1", ["<big=n>"]), ("n > 0", ["<small=n>"]), (None,))
    assert outputs(net, {"<n>": 2}, {"<n>": 1}, {"<n>": 0}) == [{"<big>": 2}, {"<small>": 1}]


def test_no_true_guard_is_an_error() -> None:
    assert "no guard" in error(choosing("<n>", ("n > 1", ["<n>"])), {"<n>": 1})


def test_a_filter_without_outputs_swallows() -> None:
    assert outputs(filtering("x"), {"x": 1}) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n // 2", -3),
        ("n % 2", -1),
        ("7 // -2", -3),
        ("7 % -2", 1),
        ("-8 // -3", 2),
        ("abs(n) * 3 - 1", 20),
        ("min(n, 2) + max(n, 2)", -5),
        ("n == -7", 1),
        ("n != -7 or n >= 0", 0),
        ("n < 0 and n <= -7", 1),
        ("5 and n", 1),
        ("not n", 0),
        ("not 0", 1),
        ("4 if n > 0 else 5", 5),
        ("0 and 1 // 0", 0),
        ("1 or nowhere", 1),
        ("3 if 1 else 1 // 0", 3),
        ("9007199254740993 * 9007199254740993 // 9007199254740993", 9007199254740993),
    ],
)
def test_expressions(text: str, value: int) -> None:
    assert evaluate(expression(text), {"<n>": -7}) == value


def test_missing_tags_and_division_by_zero_are_errors() -> None:
    assert "there is no <m>" in error(choosing("<n>", ("m > 1", ["<n>"])), {"<n>": 1})
    assert "division by zero" in error(filtering("<n>", ["<n=1 // n>"]), {"<n>": 0})
    assert "division by zero" in error(filtering("<n>", ["<n=1 % n>"]), {"<n>": 0})


# Choices.


def test_the_branch_with_the_largest_variant_that_matches_is_taken() -> None:
    net = marks("one", "a") | marks("two", "a b") | marks("none")
    assert outputs(net, {"a": 1}, {"a": 1, "b": 2}, {"b": 2}) == [
        {"a": 1, "<one>": 1},
        {"a": 1, "b": 2, "<two>": 1},
        {"b": 2, "<none>": 1},
    ]


def test_a_tie_goes_to_the_first_branch() -> None:
    net = marks("one", "a") | marks("two", "b")
    assert outputs(net, {"a": 1, "b": 2}, {"a": 1, "b": 2}) == [{"a": 1, "b": 2, "<one>": 1}] * 2


def test_fair_ties_take_turns() -> None:
    branches = (marks("one", "a"), marks("two", "a"))
    for outcome in (
        run(Choice(branches, ties="fair"), [{"a": 1}] * 3),
        run(Choice(branches), [{"a": 1}] * 3, ties="fair"),
    ):
        assert [set(record) - {"a"} for record in outcome.outputs] == [
            {"<one>"},
            {"<two>"},
            {"<one>"},
        ]


def test_a_binding_tag_matches_only_where_it_is_named() -> None:
    net = marks("one", "a") | marks("two", "a <#i>")
    got = outputs(net, {"a": 1, "<#i>": 5}, {"a": 1})
    assert got == [{"a": 1, "<#i>": 5, "<two>": 1}, {"a": 1, "<one>": 1}]
    assert "no branch" in error(net, {"a": 1, "<#other>": 5})


def test_a_record_that_no_branch_takes_is_an_error() -> None:
    assert "no branch" in error(marks("one", "a") | marks("two", "b"), {"c": 1})


def test_a_branch_is_chosen_by_the_inputs_of_the_whole_branch() -> None:
    later = serial(filtering("a", ["a"]), filtering("b", ["b"]))
    assert inputs_of(later) == [variant("a b")]
    net = marks("one", "a") | serial(later, marks("two"))
    assert outputs(net, {"a": 1}, {"a": 1, "b": 2})[1] == {"a": 1, "b": 2, "<two>": 1}


def test_other_nets_see_a_declared_signature() -> None:
    declared = NamedNet("n", marks("one", "a"), Signature((Mapping((variant("a b"),), None),)))
    net = marks("two", "a") | declared
    assert outputs(net, {"a": 1}, {"a": 1, "b": 2}) == [
        {"a": 1, "<two>": 1},
        {"a": 1, "b": 2, "<one>": 1},
    ]


# Initialisers.


def first() -> Iterator[int]:
    yield 10
    yield 20


starts = box(None, "x", first)


def test_an_initialiser_runs_once_before_the_first_record() -> None:
    assert outputs(starts | doubles, {"x": 1}) == [{"x": 10}, {"x": 20}, {"x": 2}]
    assert outputs(serial(starts, doubles)) == [{"x": 20}, {"x": 40}]


def test_beside_an_initialiser_a_single_branch_takes_all_records() -> None:
    assert outputs(starts | cell("a", "b") | serial(starts, doubles), {"z": 1}) == [
        {"x": 10},
        {"x": 20},
        {"x": 20},
        {"x": 40},
        {"z": 1},
    ]


def test_an_initialiser_takes_no_records() -> None:
    assert "takes no records" in error(starts, {"x": 1})


def test_replicas_start_when_they_are_made() -> None:
    net = split(starts | RecordFilter(), "<i>")
    assert outputs(net, {"<i>": 1}, {"<i>": 1}, {"<i>": 2}) == [
        {"x": 10},
        {"x": 20},
        {"<i>": 1},
        {"<i>": 1},
        {"x": 10},
        {"x": 20},
        {"<i>": 2},
    ]


# Cells.


def test_a_cell_merges_once_and_lets_all_others_through() -> None:
    a, b, c, d = ({"a": 1}, {"b": 2}, {"c": 3}, {"a": 4})
    assert outputs(cell("a", "b"), c, a, d, b, a, b) == [c, d, {"a": 1, "b": 2}, a, b]


def test_the_first_patterns_record_gives_its_surplus_and_others_do_not() -> None:
    left, right = {"a": 1, "s": 2, "<t>": 3}, {"b": 4, "s": 5, "u": 6}
    whole = {"a": 1, "b": 4, "s": 2, "<t>": 3}
    assert outputs(cell("a", "b"), left, right) == [whole]
    assert outputs(cell("a", "b"), right, left) == [whole]


def test_labels_of_further_patterns_overwrite() -> None:
    left, right = {"a": 1, "s": 2}, {"b": 4, "s": 5}
    assert outputs(cell("a s", "b s"), left, right) == [{"a": 1, "b": 4, "s": 5}]


def test_a_record_fills_all_patterns_that_it_matches() -> None:
    net = cell("a", "b", "c")
    assert outputs(net, {"b": 1, "c": 2, "z": 0}, {"a": 3, "c": 4}) == [{"a": 3, "b": 1, "c": 2}]
    assert outputs(net, {"a": 1, "b": 2, "c": 3}) == [{"a": 1, "b": 2, "c": 3}]
    assert outputs(net, {"a": 1, "c": 3, "z": 0}, {"b": 2}) == [{"a": 1, "b": 2, "c": 3, "z": 0}]


def test_an_equal_record_is_another_record() -> None:
    net = cell("a", only("a", "n > 0"))
    assert run(net, [{"a": 1, "<n>": 0}] * 2).leftovers == [{"a": 1, "<n>": 0}]
    assert outputs(net, {"a": 1, "<n>": 1}) == [{"a": 1, "<n>": 1}]


def test_a_record_in_an_unfinished_cell_is_left_over_once() -> None:
    outcome = run(cell("a", "b", "c"), [{"a": 1, "b": 1}, {"a": 2}])
    assert (outcome.outputs, outcome.leftovers) == ([{"a": 2}], [{"a": 1, "b": 1}])


# Stars, splits and feedback.


def falls(a: int) -> dict[str, int]:
    return {"a": a - 1} if a else {"b": a}


def test_a_star_unfolds_as_far_as_records_go() -> None:
    net = star(box("a", "a | b", falls), "b")
    assert outputs(net, {"a": 3, "s": 1}, {"a": 0}) == [{"b": 0, "s": 1}, {"b": 0}]


def test_exits_are_tried_before_the_first_replica() -> None:
    net = star(box("a", "a | b", falls), "b")
    assert outputs(net, {"a": 3, "b": 9}) == [{"a": 3, "b": 9}]


def test_each_stage_of_a_star_has_its_own_cells() -> None:
    net = star(cell("a", "b"), "a b")
    records = [{"a": 1}, {"a": 2}, {"b": 3}, {"b": 4}, {"a": 5}]
    outcome = run(net, records)
    assert outcome.outputs == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert outcome.leftovers == [{"a": 5}]


def test_a_star_ends_at_its_limit() -> None:
    steps = filtering("<n>", ["<n=n - 1>"])
    assert outputs(star(steps, only("<n>", "n <= 0"), limit=3), {"<n>": 3}) == [{"<n>": 0}]
    assert "needs more than 3 replicas" in error(
        star(steps, only("<n>", "n <= 0"), limit=3), {"<n>": 4}
    )


def test_a_deep_star_takes_no_deep_stack() -> None:
    steps = filtering("<n>", ["<n=n - 1>"])
    assert outputs(star(steps, only("<n>", "n <= 0")), {"<n>": 5000}) == [{"<n>": 0}]


def test_each_value_has_its_own_replica_of_a_split() -> None:
    net = split(cell("a", "b"), "<i>")
    one, two = {"a": 1, "<i>": 1}, {"b": 2, "<i>": 2}
    outcome = run(net, [one, two, {"b": 3, "<i>": 1}])
    assert (outcome.outputs, outcome.leftovers) == ([{"a": 1, "b": 3, "<i>": 1}], [two])


def test_a_split_may_be_by_a_field_and_needs_it() -> None:
    assert outputs(split(doubles, "k"), {"x": 1, "k": "key"}) == [{"x": 2, "k": "key"}]
    assert "no k to split by" in error(split(doubles, "k"), {"x": 1})


def test_feedback_has_one_body_for_all_rounds() -> None:
    counts = filtering("<n>", ["<n=n - 1>"])
    net = feedback(counts, only("<n>", "n > 0"))
    assert outputs(net, {"<n>": 3, "s": 1}, {"<n>": -2}) == [{"<n>": 0, "s": 1}, {"<n>": -2}]
    once = serial(counts, cell(only("<n>", "n == 1"), "never") | marks("passed", "<n>", "<n=0>"))
    assert run(feedback(once, only("<n>", "n > 0")), [{"<n>": 2}]).leftovers == [{"<n>": 1}]


def test_depth_first_and_first_output_first() -> None:
    def halves(x: int) -> Iterable[dict[str, int]]:
        yield from ({"x": x // 2}, {"x": x - x // 2}) if x > 1 else ({"y": x},)

    body = box("x", "x | y", halves)
    tree = serial(star(body, "y"), box("y", "y <n>", lambda y: {"y": y, "n": y}))
    assert len(outputs(tree, {"x": 5})) == 5

    def deeper(path: str) -> Iterable[dict[str, str]]:
        yield from (
            [{"path": path + "0"}, {"path": path + "1"}] if len(path) < 2 else [{"end": path}]
        )

    net = star(box("path", "path | end", deeper), "end")
    assert [record["end"] for record in outputs(net, {"path": ""})] == ["00", "01", "10", "11"]
    assert outputs(Ordered(net), {"path": ""}) == outputs(net, {"path": ""})


# Runs.


def test_the_first_error_ends_the_run_and_keeps_the_outputs_before() -> None:
    outcome = run(cell("a", "b") | doubles, [{"x": 1}, {"a": 1}, {"c": 1}, {"x": 2}])
    assert outcome.outputs == [{"x": 2}]
    assert outcome.leftovers == [{"a": 1}]
    assert isinstance(outcome.error, RecordError)


# Types.


def test_a_consumed_label_cannot_be_inherited() -> None:
    renames = filtering("a", ["b=a"])
    assert inputs_of(serial(renames, filtering("b c", ["b"]))) == [variant("a c")]
    with pytest.raises(NetTypeError):
        inputs_of(serial(renames, filtering("a b", ["b"])))


def test_a_star_accepts_the_inputs_that_its_body_accepts_again() -> None:
    body = box("a", "a | b", falls)
    assert inputs_of(star(body, "b")) == [variant("b"), variant("a")]
    assert inputs_of(star(serial(body, RecordFilter()), "b c")) == [variant("b c"), variant("a c")]
    with pytest.raises(NetTypeError):
        inputs_of(star(body, only("b", "n > 0")))
