"""Input types are the labels that a net needs; output types include surplus labels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from callboard.nets import Net, NetTypeError, Typed, accepts, infer
from callboard.nets.language.parsing import parse_filter as f
from callboard.nets.language.parsing import parse_patterns, parse_signature
from callboard.nets.terms.labels import Variant
from callboard.nets.terms.network import (
    BoxOptions,
    Choice,
    Feedback,
    NamedNet,
    Ordered,
    Placed,
    RecordFilter,
    Split,
    Star,
    Sync,
)
from tests.nets.types.nets import declared as b

# Some branches here get no records.


def type_of(net: Net) -> str:
    return str(infer(net).signature)


def star(body: Net, exits: str) -> Star:
    return Star(body, parse_patterns(exits))


def cell(patterns: str) -> Sync:
    return Sync(parse_patterns(patterns))


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (b("(a, <t>) -> (b) | (c)"), "{a, <t>} -> {b} | {c}"),
        (b("(a) ->"), "{a} ->"),
        (b("(a) -> ..."), "{a} -> ..."),
        (b("-> (a)"), "-> {a}"),
        (RecordFilter(), "{} -> {}"),
        (f("{a, <t>} -> {b=a}; {<t>, <s>}"), "{a, <t>} -> {b} | {<s>, <t>}"),
        (f("{<t>} -> if <t > 0> then {<s>} else if <t < 0> then {} else"), "{<t>} -> {<s>} | {}"),
        (cell("{a}, {b, c}"), "{a} -> {a} | {a, b, c}, {b, c} -> {b, c} | {a, b, c}"),
    ],
    ids=str,
)
def test_a_leaf_has_the_type_that_it_says(net: Net, expected: str) -> None:
    assert type_of(net) == expected


def test_rules_of_a_filter_behind_one_without_a_guard_never_act() -> None:
    rules = f("{a} -> {a}").rules + f("{a} -> {}").rules
    assert type_of(RecordFilter(frozenset("a"), rules)) == "{a} -> {a}"


def test_a_box_that_puts_its_errors_out_may_put_out_one() -> None:
    box = b("(a) -> (b)")
    with_errors = type(box)(box.name, box.signature, None, BoxOptions(errors="variant"))
    assert type_of(with_errors) == "{a} -> {b} | {error}"


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (b("(a) -> (b)") >> b("(b) -> (c)"), "{a} -> {c}"),
        # A label that the first does not take flows around it.
        (b("(a) -> (b)") >> b("(b, c) -> (d)"), "{a, c} -> {d}"),
        (b("(a) -> (b) | (c)") >> (b("(b, x) ->") | b("(c, x) ->")), "{a, x} ->"),
        # It has its new value where the first puts it out.
        (b("(a) -> (a, b)") >> b("(b) -> (c)"), "{a} -> {a, c}"),
        # Nothing in between mentions it.
        (b("(a) -> (b)") >> b("(b) -> (c)") >> b("(c, z) -> (d)"), "{a, z} -> {d}"),
        (b("(a) ->") >> b("(b) -> (c)"), "{a} ->"),
        (b("(a) -> ...") >> b("(b) -> (c)"), "{a} -> ..."),
        (RecordFilter() >> b("(a) -> (b)"), "{a} -> {b}"),
        # Each of two additions would do.
        (b("(a) -> (b)") >> (b("(b, x) -> (c)") | b("(y) -> (b)")), "{a, x} -> {c}, {a, y} -> {b}"),
    ],
    ids=str,
)
def test_a_serial_composition_needs_the_labels_that_its_parts_lack(net: Net, expected: str) -> None:
    assert type_of(net) == expected


def test_compositions_are_typed_alike_however_they_are_nested() -> None:
    one, two, three = b("(a) -> (b)"), b("(b, x) -> (c)"), b("(c, y) -> (d)")
    assert type_of((one >> two) >> three) == type_of(one >> (two >> three)) == "{a, x, y} -> {d}"
    assert [child.net for child in infer(one >> (two >> three)).children] == [one, two, three]


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (b("(a) -> (x)") | b("(b) -> (y)"), "{a} -> {x}, {b} -> {y}"),
        (b("(a) -> (x)") | b("(a, b) -> (y)"), "{a} -> {x}, {a, b} -> {y}"),
        (b("(a) -> (x)") | b("(a) -> (y)"), "{a} -> {x}"),
        (Choice((b("(a) -> (x)"), b("(a) -> (y)")), ties="fair"), "{a} -> {x} | {y}"),
        (b("-> (x)") | RecordFilter(), "-> {x}, {} -> {}"),
        ((b("-> (x)") | RecordFilter()) >> b("(x) -> (y)"), "-> {y}, {x} -> {y}"),
    ],
    ids=str,
)
def test_a_choice_takes_the_inputs_of_its_branches(net: Net, expected: str) -> None:
    assert type_of(net) == expected


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (star(b("(a) -> (a) | (x)"), "{x}"), "{x} -> {x}, {a} -> {x}"),
        # The exit's label may have been there from the start.
        (star(b("(a) -> (b)"), "{b, c}"), "{b, c} -> {b, c}, {a, c} -> {b, c}"),
        (star(cell("{a}, {b}"), "{a, b}"), "{a, b} -> {a, b}, {a} -> {a, b}, {b} -> {a, b}"),
        # A record may match an exit whose guard is false, so the body must take it.
        (star(f("{<n>} -> {<n=n-1>}"), "{<n>} if <n == 0>"), "{<n>} -> {<n>}"),
        (Split(b("(a) -> (b)"), "<t>"), "{a, <t>} -> {b, <t>}"),
        (Split(b("(a, <t>) -> (b)"), "<t>"), "{a, <t>} -> {b}"),
        (Split(b("(a) -> (b)"), "key"), "{a, key} -> {b, key}"),
        (Feedback(b("(a) -> (a) | (x)"), parse_patterns("{a}")), "{a} -> {x}"),
        (Feedback(f("{<n>} -> {<n=n-1>}"), parse_patterns("{<n>} if <n > 0>")), "{<n>} -> {<n>}"),
        (Ordered(b("(a) -> (b)")), "{a} -> {b}"),
        (Placed(b("(a) -> (b)"), 1), "{a} -> {b}"),
        (NamedNet("n", b("(a) -> (b)")), "{a} -> {b}"),
    ],
    ids=str,
)
def test_replication_needs_the_inputs_of_each_replica(net: Net, expected: str) -> None:
    assert type_of(net) == expected


def test_a_merged_record_has_all_labels_of_the_first_patterns_record_alone() -> None:
    net = b("(s) -> (a, <i>) | (b)") >> star(cell("{a}, {b}"), "{a, b}") >> b("(a, b, <i>) -> (x)")
    assert type_of(net) == "{s} -> {x}"


def test_a_record_that_no_pattern_of_a_cell_matches_passes_on() -> None:
    net = cell("{a}, {b}") >> cell("{c}, {d}")
    assert type_of(net).startswith("{a} -> {a} | {a, b}, {b} -> ")


def test_others_see_the_declared_type() -> None:
    inner = NamedNet("inner", b("(a) -> (b) | (c)"), parse_signature("{a, <t>} -> {b}"))
    assert type_of(inner) == "{a, <t>} -> {b}"
    assert type_of(inner >> b("(b) -> (x)")) == "{a, <t>} -> {x, <t>}"
    closed = NamedNet("closed", b("(a) -> ..."), parse_signature("{a} -> {b}"))
    assert type_of(closed >> b("(b) -> (x)")) == "{a} -> {x}"
    opened = NamedNet("opened", b("(a) -> (b)"), parse_signature("{a} -> ..."))
    assert type_of(opened >> b("(z) -> (x)")) == "{a} -> ..."


def test_a_choice_is_by_the_inputs_of_its_branches_as_inferred() -> None:
    long = b("(a) -> (b)") >> b("(b, c) -> (d)")
    typed = infer(b("(a) -> (z)") | long | b("-> (a)"))
    assert [child.inputs for child in typed.children] == [(frozenset("a"),), (frozenset("ac"),), ()]


def test_the_largest_variant_decides_about_surplus_labels() -> None:
    net = b("(a) -> (b)") >> (b("(b) -> (x)") | b("(b, c) -> (y)")) >> b("(x) -> (z)")
    typed = infer(net)
    assert str(typed.signature) == "{a} -> {z}"
    assert accepts(typed, {"a"})
    assert accepts(typed, {"a", "q"})
    assert not accepts(typed, {"a", "c"})  # it goes to the other branch, and lacks an x
    assert accepts(typed, {"a", "c", "x"})
    assert not accepts(typed, {"b"})


def test_the_outputs_for_a_record_have_its_surplus_labels() -> None:
    typed = infer(b("(a) -> (b)") | b("(a, c) -> (d)"))
    assert typed.outputs({"a", "q"}) == (frozenset(("b", "q")),)
    assert typed.outputs({"a", "c", "<#i>"}) is None  # no branch has the binding tag
    assert infer(b("(a) -> ...")).outputs({"a"}) is None


def test_binding_tags_keep_records_out_of_branches_and_are_not_inherited() -> None:
    assert infer(b("(a) -> (b)")).outputs({"a", "<#i>", "c"}) is None
    assert infer(b("(a, <#i>) -> (b)")).outputs({"a", "<#i>", "c"}) == (frozenset("bc"),)
    message = "produces {b, <#i>}, and .* takes {b}. <#i> is a binding tag: only a variant that has"
    with pytest.raises(NetTypeError, match=message):
        infer(b("(a) -> (b, <#i>)") >> b("(b) -> (c)"))
    typed = infer(b("(a, <#i>) -> (b)") | b("(c) -> (d)"))
    assert accepts(typed, {"a", "<#i>", "c"})
    assert not accepts(typed, {"a", "<#i>", "<#j>"})
    assert not accepts(typed, {"c", "<#j>"})
    assert typed.outputs({"a", "<#i>"}) == (frozenset("b"),)


def test_paths_have_the_names_of_nets_and_boxes() -> None:
    one, two = b("(a) -> (a)", "one"), f("{a} -> {a}")
    typed = infer(NamedNet("outer", Split(one >> NamedNet("inner", two | one) >> one, "<t>")))

    def paths(part: Typed) -> Iterator[str]:
        yield part.path
        for child in part.children:
            yield from paths(child)

    inner = "/outer/inner"
    assert list(paths(typed)) == [
        *("/outer", "/outer", "/outer", "/outer/one"),
        *(inner, inner, f"{inner}/[{{a}} -> {{a}}]", f"{inner}/one"),
        "/outer/one:2",
    ]


def chain(length: int, each: Callable[[int], str]) -> Net:
    net: Net = RecordFilter()
    for index in range(length):
        net = net >> b(each(index))
    return net


def pipeline_of_gathered_labels(index: int) -> str:
    return f"(x, n{index}) -> (x, m{index})"


def test_a_net_of_a_thousand_boxes_is_typed_without_recursion() -> None:
    typed = infer(chain(1000, pipeline_of_gathered_labels))
    (inputs,) = typed.inputs
    assert len(inputs) == 1001


def test_typing_takes_time_in_proportion_to_the_length() -> None:
    def steps(length: int) -> float:
        net = chain(length, lambda index: f"(x) -> (x, <n{index % 7}>)")
        before = time.thread_time()
        infer(net)
        return time.thread_time() - before

    assert steps(1000) < 2  # 0.05 seconds on the machine that this was written on


def test_a_net_with_too_many_outputs_counts_as_open() -> None:
    net: Net = RecordFilter()
    for index in range(12):
        net = net >> b(f"(x) -> (x, a{index}) | (x, b{index})")
    net = net >> b("(nowhere) -> (y)")
    assert type_of(net) == "{x} -> ..."


def test_a_net_with_too_many_ways_to_fit_takes_the_inputs_of_its_first_part() -> None:
    net: Net = b("(x) -> (x)")
    for index in range(12):
        net = net >> (b(f"(x, a{index}) -> (x)") | b(f"(x, b{index}) -> (x)"))
    typed = infer(net)
    assert typed.inputs == (frozenset("x"),)
    assert typed.outputs({"x"}) is None
    every: Variant = frozenset(("x", *(f"a{index}" for index in range(12))))
    assert typed.outputs(every) == (frozenset("x"),)
