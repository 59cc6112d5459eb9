"""A sequential interpreter of nets, from the definitions. Runs of the product must equal it.

One record is carried through everything before the next: depth first, first output first. A net
becomes steps. A step takes a record and says which records go where next. Each instance of a net
has steps of its own, so that a cell's state belongs to its replica.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from callboard.nets.errors import RecordError
from callboard.nets.terms.expressions import (
    Binary,
    Conditional,
    Constant,
    Expression,
    TagValue,
    Unary,
)
from callboard.nets.terms.labels import Label, Variant, is_binding, is_tag, matches, text_of
from callboard.nets.terms.network import (
    Box,
    Choice,
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
    Ties,
)
from callboard.nets.terms.patterns import Item, Pattern
from tests.nets.inference import inputs_of, labels_of

Record: TypeAlias = dict[Label, Any]
Work: TypeAlias = "list[tuple[Step, Record]]"
Step: TypeAlias = Callable[[Record], Work]

MOST_STEPS = 1_000_000


@dataclass
class Outcome:
    """What a run gives: outputs in order, what cells still keep, and the error that ended it.

    The field `error` of an output is the exception that its box raised.
    """

    outputs: list[Record] = field(default_factory=list)
    skipped: list[Record] = field(default_factory=list)
    leftovers: list[Record] = field(default_factory=list)
    error: RecordError | None = None
    steps: int = 0


def run(net: Net, records: Iterable[Mapping[str, Any]], *, ties: Ties = "first") -> Outcome:
    """Send records through a net, one after the other. The first error ends the run."""
    outcome = Outcome()
    try:
        machine = Machine(ties, outcome)
        entrance = machine.build(net, machine.leave)
        machine.carry([])
        known = labels_of(net)
        for record in records:
            machine.carry([(entrance, as_record(record, known))])
    except RecordError as error:
        outcome.error = error
    for kept in machine.cells:
        if None in kept:
            outcome.leftovers += distinct(record for record in kept if record is not None)
    return outcome


def counted(records: Iterable[Mapping[Label, Any]]) -> Counter[str]:
    """Return records without their order."""
    return Counter(str(sorted(record.items())) for record in records)


class Machine:
    """Builds instances of nets, and carries records through them."""

    def __init__(self, ties: Ties, outcome: Outcome) -> None:
        self.ties = ties
        self.outcome = outcome
        self.cells: list[list[Record | None]] = []
        self.starting: list[Step] = []
        """Initialisers of instances that were built since the last step."""
        self.inputs: dict[int, list[list[Variant]]] = {}
        """What the branches of each choice accept."""

    def carry(self, work: Work) -> None:
        """Take what lies on top of the stack until nothing is left."""
        work = [*self.started(), *work][::-1]
        while work:
            step, record = work.pop()
            self.outcome.steps += 1
            assert self.outcome.steps < MOST_STEPS, "an endless net"
            following = step(record)
            work += [*self.started(), *following][::-1]

    def started(self) -> Work:
        starting, self.starting = self.starting, []
        return [(step, {}) for step in starting]

    def leave(self, record: Record) -> Work:
        self.outcome.outputs.append(record)
        return []

    def build(self, net: Net, out: Step) -> Step:
        """Make an instance of a net whose outputs go to `out`."""
        match net:
            case Box():
                return self.box(net, out)
            case RecordFilter():
                return lambda record: [(out, output) for output in filtered(net, record)]
            case Sync():
                return self.cell(net, out)
            case Serial(first, second):
                return self.build(first, self.build(second, out))
            case Choice():
                return self.choice(net, out)
            case Star():
                return self.star(net, out)
            case Split():
                return self.split(net, out)
            case Feedback():
                return self.feedback(net, out)
            case Ordered(body) | Placed(body) | NamedNet(_, body):
                return self.build(body, out)
        raise AssertionError(f"no such net: {net!r}")

    def box(self, box: Box, out: Step) -> Step:
        inputs = box.signature.inputs or ()

        def call(record: Record) -> Work:
            demand(inputs, record, box.name)
            try:
                outputs = boxed(box, record)
            except Exception as error:  # nothing that was produced before it is an output
                if box.options.errors == "fail":
                    raise
                if box.options.errors == "skip":
                    self.outcome.skipped.append(record)
                    return []
                outputs = [inheriting(frozenset(inputs), record, {"error": error})]
            return [(out, output) for output in outputs]

        def refuse(record: Record) -> Work:
            raise RecordError(f"{record}: the box {box.name} takes no records")

        if box.signature.inputs is not None:
            return call
        self.starting.append(call)
        return refuse

    def cell(self, net: Sync, out: Step) -> Step:
        kept: list[Record | None] = [None for _ in net.patterns]
        self.cells.append(kept)

        def step(record: Record) -> Work:
            free = [
                place
                for place, pattern in enumerate(net.patterns)
                if kept[place] is None and is_match(pattern, record)
            ]
            if not free:
                return [(out, record)]
            for place in free:
                kept[place] = record
            full = [other for other in kept if other is not None]
            return [(out, merged(net, full))] if len(full) == len(kept) else []

        return step

    def choice(self, net: Choice, out: Step) -> Step:
        steps = [self.build(branch, out) for branch in net.branches]
        if id(net) not in self.inputs:
            self.inputs[id(net)] = [inputs_of(branch) for branch in net.branches]
        # A branch that accepts nothing is an initialiser.
        branches = [pair for pair in zip(self.inputs[id(net)], steps, strict=True) if pair[0]]
        turns: dict[tuple[int, ...], int] = {}
        fair = "fair" in (self.ties, net.ties)

        def step(record: Record) -> Work:
            if len(branches) == 1:
                return [(branches[0][1], record)]
            labels = frozenset(record)
            sizes = [
                max((len(variant) for variant in accepted if matches(variant, labels)), default=-1)
                for accepted, _ in branches
            ]
            best = max(sizes, default=-1)
            if best < 0:
                raise RecordError(f"{record}: no branch of {net} takes it")
            tied = tuple(place for place, size in enumerate(sizes) if size == best)
            turn = turns.get(tied, 0)
            if fair:
                turns[tied] = (turn + 1) % len(tied)
            return [(branches[tied[turn]][1], record)]

        return step

    def star(self, net: Star, out: Step, depth: int = 0) -> Step:
        replica: list[Step] = []

        def step(record: Record) -> Work:
            if any(is_match(pattern, record) for pattern in net.exits):
                return [(out, record)]
            if depth == net.limit:
                raise RecordError(f"{record} needs more than {depth} replicas of {net.body}")
            if not replica:
                replica.append(self.build(net.body, self.star(net, out, depth + 1)))
            return [(replica[0], record)]

        return step

    def split(self, net: Split, out: Step) -> Step:
        replicas: dict[Any, Step] = {}

        def step(record: Record) -> Work:
            if net.tag not in record:
                raise RecordError(f"{record}: there is no {net.tag} to split by")
            value = record[net.tag]
            if value not in replicas:
                replicas[value] = self.build(net.body, out)
            return [(replicas[value], record)]

        return step

    def feedback(self, net: Feedback, out: Step) -> Step:
        def step(record: Record) -> Work:
            goes_back = any(is_match(pattern, record) for pattern in net.backs)
            return [(body if goes_back else out, record)]

        body = self.build(net.body, step)
        return step


def is_match(pattern: Pattern, record: Record) -> bool:
    """Tell whether a record has what a pattern asks for."""
    if not matches(pattern.variant, frozenset(record)):
        return False
    return pattern.guard is None or bool(evaluate(pattern.guard, record))


def merged(net: Sync, kept: list[Record]) -> Record:
    """Return the first record, with each further pattern's labels from the record that is there."""
    first, *others = kept
    result = dict(first)
    for pattern, other in zip(net.patterns[1:], others, strict=True):
        if other is not first:
            result |= {label: other[label] for label in pattern.variant}
    return result


def distinct(records: Iterable[Record]) -> list[Record]:
    """Return each record once, in order. The same labels and values do not make the same record."""
    return list({id(record): record for record in records}.values())


def inheriting(variant: frozenset[Label], record: Record, output: Record) -> Record:
    """Return an output with the surplus of the record that caused it."""
    return {
        label: value
        for label, value in record.items()
        if label not in variant and not is_binding(label)
    } | output


def demand(variant: Iterable[Label], record: Record, place: object) -> None:
    """Raise if a record does not match a variant."""
    if not matches(frozenset(variant), frozenset(record)):
        raise RecordError(f"{record}: {place} takes {text_of(variant)}")


def filtered(net: RecordFilter, record: Record) -> Iterator[Record]:
    """Yield what a filter makes of a record."""
    if net.is_identity:
        yield record
        return
    demand(net.variant, record, net)
    for rule in net.rules:
        if rule.guard is None or evaluate(rule.guard, record):
            for items in rule.outputs:
                output = {item.label: value_of(item, net, record) for item in items}
                yield inheriting(net.variant, record, output)
            return
    raise RecordError(f"{record}: no guard of {net} is true")


def value_of(item: Item, net: RecordFilter, record: Record) -> Any:
    """Return what a filter's output has under a label."""
    if item.value is not None:
        return evaluate(item.value, record)
    if is_tag(item.label):
        return record[item.label] if item.label in net.variant else 0
    return record[item.source or item.label]


def evaluate(expression: Expression, record: Record) -> int:
    """Return the value of an expression on a record's tags. Truth values are 0 and 1."""

    def value(part: Expression) -> int:
        return evaluate(part, record)

    match expression:
        case Constant(number):
            return int(number)
        case TagValue(label):
            if label not in record:
                raise RecordError(f"{record}: there is no {label}")
            return int(record[label])
        case Conditional(condition, then, otherwise):
            return value(then if value(condition) else otherwise)
        case Binary("&&", left, right):
            return int(bool(value(left)) and bool(value(right)))
        case Binary("||", left, right):
            return int(bool(value(left)) or bool(value(right)))
        case Unary(sign, operand):
            return int(UNARY[sign](value(operand)))
        case Binary(sign, left, right):
            try:
                return int(BINARY[sign](value(left), value(right)))
            except ZeroDivisionError:
                raise RecordError(f"{record}: division by zero in {expression}") from None
    raise AssertionError(f"no such expression: {expression!r}")


def quotient(dividend: int, divisor: int) -> int:
    """Divide, and cut off towards zero."""
    size = abs(dividend) // abs(divisor)
    return size if (dividend < 0) == (divisor < 0) else -size


UNARY: dict[str, Callable[[int], int]] = {"!": operator.not_, "-": operator.neg, "abs": abs}
BINARY: dict[str, Callable[[int, int], int]] = {
    "*": operator.mul,
    "/": quotient,
    "%": lambda dividend, divisor: dividend - divisor * quotient(dividend, divisor),
    "+": operator.add,
    "-": operator.sub,
    "min": min,
    "max": max,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def boxed(box: Box, record: Record) -> list[Record]:
    """Return what a box makes of a record."""
    inputs = box.signature.inputs or ()
    made = [as_output(box, result) for result in tried(box, [record[label] for label in inputs])]
    return [inheriting(frozenset(inputs), record, output) for output in made if output is not None]


def tried(box: Box, arguments: list[Any]) -> list[Any]:
    """Call a box's function, again if it fails, as its option `retries` says."""
    for _ in range(box.options.retries):
        with suppress(Exception):
            return results(box, arguments)
    return results(box, arguments)


def results(box: Box, arguments: list[Any]) -> list[Any]:
    """Call a box's function: several results come from generators alone."""
    assert box.function is not None
    if inspect.isgeneratorfunction(box.function):
        return list(box.function(*arguments))
    if inspect.isasyncgenfunction(box.function):
        return asyncio.run(collected(box.function(*arguments)))
    result = box.function(*arguments)
    return [asyncio.run(result) if inspect.iscoroutine(result) else result]


async def collected(generator: Any) -> list[Any]:
    return [result async for result in generator]


def as_output(box: Box, result: Any) -> Record | None:
    """Make a record of what a box's function returned or yielded."""
    variants = box.signature.outputs
    known = frozenset(label for variant in variants or () for label in variant)
    if result is None:
        return None
    if isinstance(result, Mapping):
        output = as_record(result, known)
    elif variants is not None and len(variants) == 1 and len(variants[0]) == 1:
        output = as_record({variants[0][0]: result}, known)
    elif dataclasses.is_dataclass(result):
        names = [part.name for part in dataclasses.fields(result)]
        output = as_record({name: getattr(result, name) for name in names}, known)
    elif variants is not None and len(variants) == 1 and len(variants[0]) == len(result):
        output = as_record(dict(zip(variants[0], result, strict=True)), known)
    else:
        raise RecordError(f"{result!r}: the box {box.name} promises {box.signature}")
    if variants is not None and set(output) not in [set(variant) for variant in variants]:
        raise RecordError(f"{output}: the box {box.name} promises {box.signature}")
    return output


def as_record(labelled: Mapping[str, Any], known: frozenset[Label]) -> Record:
    """Make a record of a user's dict. A name that is known as a tag alone is that tag."""
    record = {}
    for key, value in labelled.items():
        tags = [label for label in (f"<{key}>", f"<#{key}>") if label in known]
        label = key if key in known or not tags else tags[0]
        record[label] = as_tag(label, value) if is_tag(label) else value
    return record


def as_tag(label: Label, value: Any) -> int:
    try:
        return int(operator.index(value))
    except TypeError:
        raise RecordError(f"{value!r} is no value for the tag {label}") from None
