"""Random nets that fit their records, and end.

Each place of a net is drawn for the label sets that can arrive there. Loops count down on a tag of
their own. Their bodies keep the labels that all arrivals share, and need no others, so that what
comes of a round fits the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from callboard.nets.errors import NetTypeError
from callboard.nets.terms.expressions import (
    Binary,
    Conditional,
    Constant,
    Expression,
    TagValue,
    Unary,
)
from callboard.nets.terms.labels import Label, Variant, is_binding, is_tag, name_of
from callboard.nets.terms.network import (
    Box,
    BoxOptions,
    Choice,
    Effect,
    Feedback,
    NamedNet,
    Net,
    Ordered,
    Placed,
    RecordFilter,
    Serial,
    Split,
    Star,
    Sync,
)
from callboard.nets.terms.patterns import BoxSignature, Item, Mapping, Pattern, Rule, Signature
from tests.nets.box_functions import faulty, on_a_loop, pure
from tests.nets.flow import Unfit, leaving
from tests.nets.inference import arrows, inputs_of
from tests.nets.making import filtering, only
from tests.nets.oracle import Record

FIELDS = ("a", "b", "c")
TAGS = ("<m>", "<n>")
UNIVERSE = (*FIELDS, *TAGS, "<#i>")
ARRIVALS = st.frozensets(
    st.frozensets(st.sampled_from(UNIVERSE), min_size=1, max_size=4), min_size=1, max_size=3
)
"""Label sets of the records that are sent."""
DEPTH = 3
"""The depth of nested combinators."""
IDENTITY = RecordFilter()
ROUNDS = 3
"""The most rounds of a loop."""
OPTIONS = (BoxOptions(), BoxOptions(threads=True), BoxOptions(threads=True, concurrency=3))
FAULTS = ("raises", "puts out no output", "raises at first")
ALWAYS = 1_000_000
"""So many retries that one succeeds."""
NUMBERS = st.sampled_from([1, 1, 2, 0])
"""The number of outputs of a filter's rule."""
WRITTEN = st.sampled_from([frozenset((*FIELDS, *TAGS))] * 5 + [frozenset(UNIVERSE)])
LEAST = st.sampled_from([1, 1, 1, 0])
"""The least number of the existing labels that are drawn."""


@dataclass(frozen=True)
class Drawn:
    """A net, and records that fit it."""

    net: Net
    records: list[Record]

    def __repr__(self) -> str:
        return f"{described(self.net)} <- {self.records}"


@st.composite
def nets_with_records(
    draw: st.DrawFn,
    *,
    cells: bool = True,
    starts: bool = True,
    threads: bool = False,
    faults: bool = False,
) -> Drawn:
    """Draw a net and records for it. Without `cells`, it has no state.

    With `threads`, calls of some boxes run on other threads. With `faults`, boxes fail at some
    records, which ends no run, and some boxes have coroutine functions.
    """
    arriving = draw(ARRIVALS)
    drawing = Drawing(draw, cells, OPTIONS if threads else OPTIONS[:1], faults=faults)
    net = drawing.net(arriving, frozenset(), DEPTH)
    if starts and draw(st.sampled_from([False] * 6 + [True])):
        net = drawing.started(net, arriving, DEPTH)
    return Drawn(net, drawing.records(arriving))


@st.composite
def nets_of_shape(draw: st.DrawFn, shape: str, *, cells: bool = True) -> Drawn:
    """Draw a net whose outermost combinator is given by the name of a method of Drawing."""
    arriving = draw(ARRIVALS)
    drawing = Drawing(draw, cells)
    net = getattr(drawing, shape)(arriving, frozenset(), DEPTH)
    assume(drawing.fits(net, arriving, frozenset()))
    return Drawn(net, drawing.records(arriving))


@st.composite
def chains_with_records(draw: st.DrawFn) -> tuple[Net, Net, Net, list[Record]]:
    """Draw nets of which each takes what comes out of the one before, and records for the first."""
    arriving = draw(ARRIVALS)
    drawing = Drawing(draw, cells=True)
    nets = []
    reached = arriving
    for _ in range(3):
        net = drawing.net(reached, frozenset(), DEPTH - 1) if reached else IDENTITY
        reached = leaving(net, reached)
        nets.append(net)
    first, second, third = nets
    return first, second, third, drawing.records(arriving)


def records_of(labels: Variant) -> st.SearchStrategy[Record]:
    """Return records with these labels."""
    return st.fixed_dictionaries({label: st.integers(-3, 6) for label in sorted(labels)})


class Drawing:
    """Draws nets for label sets."""

    def __init__(
        self,
        draw: st.DrawFn,
        cells: bool,
        options: tuple[BoxOptions, ...] = (BoxOptions(),),
        *,
        faults: bool = False,
    ) -> None:
        self.draw = draw
        self.cells = cells
        self.faults = faults
        self.options = st.sampled_from(options)
        self.boxes = self.loops = 0
        self.around = 0  # loops that what is drawn will be in

    @property
    def may_multiply(self) -> bool:
        """Whether a part may produce several records for one: loops within loops make millions."""
        return self.around < 2

    def net(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        """Draw a net for these label sets. The labels that they all have and `keep` has stay."""
        simple = [self.box, self.box, self.filter, *([self.cell, self.cell] if self.cells else [])]
        compound = [self.serial, self.serial, self.choice, self.star, self.feedback, self.split]
        wrapped = [self.named, self.placed, self.ordered]
        shapes = simple if depth == 0 else [*simple, *compound, *compound, *compound, *wrapped]
        net = self.draw(st.sampled_from(shapes))(arriving, keep, depth)
        return net if self.fits(net, arriving, keep) else IDENTITY

    def fits(self, net: Net, arriving: frozenset[Variant], keep: Variant) -> bool:
        """Tell whether a net has a type, takes these label sets, and keeps these labels."""
        try:
            arrows(net)
            return all(keep <= labels for labels in leaving(net, arriving))
        except (Unfit, NetTypeError):
            return False

    def records(self, arriving: frozenset[Variant]) -> list[Record]:
        """Draw some records with these label sets."""
        one = st.sampled_from(sorted(arriving, key=sorted)).flatmap(records_of)
        return self.draw(st.lists(one, min_size=1, max_size=8))

    def started(self, net: Net, arriving: frozenset[Variant], depth: int) -> Net:
        """Set an initialiser beside a net, and sometimes a further net behind both."""
        outputs = (tuple(dict.fromkeys(["a", *self.some(frozenset((*FIELDS, *TAGS)), 2)])),)
        name = self.new_name("many")
        function = pure(name, outputs, "many", 3, 1)
        first = Box(name, BoxSignature(None, outputs), function, self.draw(self.options))
        beside: Net = Choice((first, net))
        if self.draw(st.booleans()) and leaving(net, arriving):
            out = leaving(net, arriving) | frozenset(map(frozenset, outputs))
            both = Serial(beside, self.net(out, frozenset(), depth - 1))
            return both if self.fits(both, arriving, frozenset()) else beside
        return beside

    # Boxes, filters and cells.

    def box(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        inputs = tuple(self.read(arriving, 2))
        outputs = self.outputs(keep & frozenset(inputs))
        kinds = [
            "one",
            "one",
            "maybe",
            *(["many"] if self.may_multiply else []),
            *(["value"] if len(outputs) == 1 and outputs[0] else []),
        ]
        kind = self.draw(st.sampled_from(kinds))
        name = self.new_name(kind)
        factor, shift = self.draw(st.tuples(st.integers(1, 3), st.integers(0, 3)))
        function = pure(name, outputs, kind, factor, shift)
        options = self.draw(self.options)
        if self.faults:
            function, options = self.failing(function, options, bool(keep & frozenset(inputs)))
        return Box(name, BoxSignature(inputs, outputs), function, options)

    def failing(
        self, function: Callable[..., Any], options: BoxOptions, keeps: bool
    ) -> tuple[Callable[..., Any], BoxOptions]:
        """Have a box fail at some records, and draw what becomes of these.

        If the box `keeps` labels, no record goes on without them.
        """
        fault = self.draw(st.sampled_from(FAULTS))
        effects: tuple[Effect, ...] = ("skip",) if keeps else ("skip", "variant", "variant")
        errors = self.draw(st.sampled_from(effects))
        retries = ALWAYS if fault == "raises at first" else self.draw(st.sampled_from([0, 0, 1]))
        options = replace(options, errors=errors, retries=retries, backoff=0.0)
        function = faulty(function, fault)
        if not options.threads and self.draw(st.booleans()):
            limit = self.draw(st.sampled_from([None, 1, 3]))
            return on_a_loop(function), replace(options, concurrency=limit)
        return function, options

    def outputs(self, keep: Variant) -> tuple[tuple[Label, ...], ...]:
        variants = [
            tuple(dict.fromkeys([*sorted(keep), *self.written(2)]))
            for _ in range(self.draw(st.integers(1, 2)))
        ]
        return tuple({frozenset(variant): variant for variant in variants}.values())

    def new_name(self, kind: str) -> str:
        self.boxes += 1
        return f"{kind}{self.boxes}"

    def new_counter(self) -> str:
        self.loops += 1
        return f"c{self.loops}"

    def read(self, arriving: frozenset[Variant], most: int) -> list[Label]:
        """Draw what a box or filter takes: all binding tags, and some of the other labels."""
        shared = common(arriving)
        return [*filter(is_binding, shared), *self.some(shared - {"<#i>"}, most)]

    def written(self, most: int) -> list[Label]:
        """Draw what is produced beside what is kept."""
        return self.some(self.draw(WRITTEN), most)

    def some(self, labels: Variant, most: int) -> list[Label]:
        if not labels:
            return []
        drawn: list[Label] = self.draw(lists_of(labels, self.draw(LEAST), most))
        return drawn

    def filter(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        pattern = frozenset(self.read(arriving, 3))
        guards = self.draw(st.lists(expressions(pattern), max_size=2))
        rules = [
            Rule(tuple(self.items(pattern, keep) for _ in range(self.number())), guard)
            for guard in (*guards, None)
        ]
        return RecordFilter(pattern, tuple(rules))

    def number(self) -> int:
        drawn = self.draw(NUMBERS)
        return drawn if self.may_multiply else min(drawn, 1)

    def items(self, pattern: Variant, keep: Variant) -> tuple[Item, ...]:
        fields = sorted(label for label in pattern if not is_tag(label))
        labels = [*(pattern & keep), *self.written(3)]
        found = {}
        for label in labels:
            if is_tag(label):
                value = self.draw(st.none() | expressions(pattern))
                found[label] = Item(label, value=value and Binary("%", value, Constant(7)))
            elif fields:
                source = self.draw(st.sampled_from(fields))
                found[label] = Item(label, source=source)
        return tuple(found.values())

    def cell(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        return Sync(tuple(self.pattern(arriving) for _ in range(self.draw(st.integers(2, 3)))))

    def pattern(self, arriving: frozenset[Variant]) -> Pattern:
        labels = self.draw(st.sampled_from(sorted(arriving, key=sorted))) - {"error"}
        labels = labels or frozenset("a")
        variant = frozenset(self.draw(lists_of(labels, 1, 2)))
        return Pattern(variant, self.draw(st.none() | st.none() | expressions(variant)))

    # What combinators make of nets.

    def serial(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        first = self.net(arriving, keep, depth - 1)
        between = leaving(first, arriving)
        return Serial(first, self.net(between, keep, depth - 1)) if between else first

    def choice(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        number = self.draw(st.integers(2, 3))
        parts: list[set[Variant]] = [set() for _ in range(number)]
        bound = {labels for labels in arriving if "<#i>" in labels}
        parts[0] = bound
        for labels in sorted(arriving - bound, key=sorted):
            parts[self.draw(st.integers(0, number - 1))].add(labels)
        branches = [self.net(frozenset(part) or arriving, keep, depth - 1) for part in parts]
        return Choice(tuple(branches), ordered=self.draw(st.booleans()))

    def star(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        counter = self.new_counter()
        exits = counted(counter, f"{counter} <= 0")
        if self.draw(st.booleans()):
            exits.insert(self.draw(st.integers(0, 1)), self.pattern(arriving))
        body = self.round(arriving, keep, depth, counter)
        star = Star(body, tuple(exits), ordered=self.draw(st.booleans()))
        return Serial(self.counting(arriving, counter), star)

    def feedback(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        counter = self.new_counter()
        backs = tuple(counted(counter, f"{counter} > 0"))
        body = self.round(arriving, keep, depth, counter)
        return Serial(self.counting(arriving, counter), Feedback(body, backs))

    def counting(self, arriving: frozenset[Variant], counter: str) -> Net:
        """Draw a filter that sets how many rounds there are: a number, or as a tag says."""
        bound = " ".join(filter(is_binding, common(arriving)))
        tags = [name_of(label) for label in sorted(common(arriving)) if label in TAGS]
        if self.draw(st.booleans()) and tags:
            tag = self.draw(st.sampled_from(tags))
            kept = f"<{tag}> {bound}"
            return filtering(kept, [*kept.split(), f"<{counter}=abs({tag}) % {ROUNDS + 1}>"])
        number = self.draw(st.integers(0, ROUNDS))
        return filtering(bound, [*bound.split(), f"<{counter}={number}>"])

    def round(self, arriving: frozenset[Variant], keep: Variant, depth: int, counter: str) -> Net:
        """Draw the body of a loop. It counts down before or after what it does."""
        shared = common(arriving)
        bound = " ".join(filter(is_binding, shared))
        self.around += 1
        work = self.net(frozenset((shared,)), shared | keep, depth - 1)
        self.around -= 1
        count = filtering(f"<{counter}> {bound}", [f"<{counter}={counter} - 1>", *bound.split()])
        return Serial(work, count) if self.draw(st.booleans()) else Serial(count, work)

    def split(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        tags = sorted(label for label in common(arriving) if not is_binding(label))
        if not tags:
            return IDENTITY
        body = self.net(arriving, keep, depth - 1)
        return Split(body, self.draw(st.sampled_from(tags)), ordered=self.draw(st.booleans()))

    def named(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        body = self.net(arriving, keep, depth - 1)
        if self.draw(st.booleans()) or any(isinstance(part, Sync) for part in parts_of(body)):
            return body.named("inner")
        if len(set(inputs_of(body))) < len(inputs_of(body)):  # a signature has each once
            return body.named("inner")
        mappings = [Mapping((one,), tuple(outputs or ())) for one, outputs in arrows(body)]
        return NamedNet("inner", body, Signature(tuple(mappings)))

    def placed(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        return self.net(arriving, keep, depth - 1).at(self.draw(st.integers(0, 1)))

    def ordered(self, arriving: frozenset[Variant], keep: Variant, depth: int) -> Net:
        return Ordered(self.net(arriving, keep, depth - 1))


def counted(counter: str, guard: str) -> list[Pattern]:
    """Return patterns for records with a counter: one without a binding tag, one with it."""
    return [only(f"<{counter}>", guard), only(f"<{counter}> <#i>", guard)]


@cache
def lists_of(labels: Variant, least: int, most: int) -> st.SearchStrategy[list[Label]]:
    return st.lists(st.sampled_from(sorted(labels)), min_size=least, max_size=most, unique=True)


def common(arriving: frozenset[Variant]) -> Variant:
    """Return the labels that all have, but for `error`: no box knows what to do with it."""
    return frozenset.intersection(*arriving) - {"error"}


@cache
def expressions(pattern: Variant) -> st.SearchStrategy[Expression]:
    """Return expressions on the tags of a pattern. None divides by zero."""
    tags = sorted(label for label in pattern if is_tag(label))
    leaves: st.SearchStrategy[Expression] = st.integers(-3, 5).map(Constant)
    if tags:
        leaves |= st.sampled_from(tags).map(TagValue)
    divisors = st.sampled_from([-3, -2, 2, 3]).map(Constant)
    signs = ["*", "+", "-", "min", "max", "==", "!=", "<", "<=", ">", ">=", "&&", "||"]

    def larger(part: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.builds(Unary, st.sampled_from(["!", "-", "abs"]), part),
            st.builds(Binary, st.sampled_from(signs), part, part),
            st.builds(Binary, st.sampled_from(["/", "%"]), part, divisors),
            st.builds(Conditional, part, part, part),
        )

    return st.recursive(leaves, larger, max_leaves=4)


def described(net: Net) -> str:
    """Return a net as text, with its inner nets and its boxes' signatures."""
    inner = [str(part.body) for part in parts_of(net) if isinstance(part, NamedNet)]
    return "; ".join([str(net), *inner, *(f"{box.name} {box.signature}" for box in boxes_of(net))])


def boxes_of(net: Net) -> list[Box]:
    """Return the boxes of a net."""
    return [part for part in parts_of(net) if isinstance(part, Box)]


def parts_of(net: Net) -> Iterator[Net]:
    """Yield a net and all that it is made of."""
    yield net
    match net:
        case Serial(first, second):
            yield from parts_of(first)
            yield from parts_of(second)
        case Choice(branches):
            for branch in branches:
                yield from parts_of(branch)
        case Star(body) | Split(body) | Feedback(body) | Ordered(body) | Placed(body):
            yield from parts_of(body)
        case NamedNet(_, body):
            yield from parts_of(body)
