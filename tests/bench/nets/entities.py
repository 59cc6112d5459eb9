"""Nets as the thesis runs them: a task for each entity, and a channel between any two.

A record is a dict. A task has one channel in, and its own sender for each channel out. Replicas are
made when the first record comes for them. Cells in a chain end when they have fired. Tasks are not
told when nothing more can come: the collector knows how many outputs there are, and the system ends
all others. Binding tags, errors and order are not for these.
"""

from collections.abc import Callable, Iterable, Mapping
from queue import SimpleQueue
from typing import Any

from callboard import ActorSystem
from callboard.channels import Receiver, Sender, Task, channel
from callboard.nets.terms.expressions import (
    Binary,
    Conditional,
    Constant,
    Expression,
    TagValue,
    Unary,
)
from callboard.nets.terms.labels import Label, Variant, is_tag, name_of
from callboard.nets.terms.network import (
    Box,
    Choice,
    Feedback,
    NamedNet,
    Net,
    RecordFilter,
    Serial,
    Split,
    Star,
    Sync,
)
from callboard.nets.terms.patterns import Item, Pattern
from callboard.nets.types.typed import infer

Row = dict[Label, Any]
Step = Callable[[Row], Iterable[Row]]
Route = Callable[[Row], "Sender[Row]"]

ROOM = 10
SIGNS = {"&&": "and", "||": "or", "!": "not "}


class Entity(Task):
    """A box, a filter or a cell."""

    def __init__(self, step: Step, source: Receiver[Row], out: Sender[Row]) -> None:
        self.step = step
        self.source = source
        self.out = out

    async def run(self) -> None:
        step, send = self.step, self.out.send
        async for record in self.source:
            for output in step(record):
                await send(output)


class Dispatcher(Task):
    """What stands before the branches of a choice, and the replicas of a star or a split."""

    def __init__(self, route: Route, source: Receiver[Row]) -> None:
        self.route = route
        self.source = source

    async def run(self) -> None:
        route = self.route
        async for record in self.source:
            await route(record).send(record)


class ChainCell(Task):
    """A cell in a chain. Once it has fired, the dispatcher behind takes over its channel."""

    def __init__(self, cell: "Cell", source: Receiver[Any], out: Sender[Any]) -> None:
        self.cell = cell
        self.source = source
        self.out = out

    async def run(self) -> None:
        async for record in self.source:
            if isinstance(record, Receiver):
                self.source.replace(record)
                continue
            for output in self.cell.step(record):
                await self.out.send(output)
            if self.cell.fired:
                await self.out.send(self.source.release())
                return


class ChainDispatcher(Task):
    """What stands before a cell in a chain. It ends likewise once the cell has fired."""

    def __init__(self, link: "Link", source: Receiver[Any]) -> None:
        self.link = link
        self.source = source

    async def run(self) -> None:
        async for record in self.source:
            if isinstance(record, Receiver):
                self.source.replace(record)
                continue
            sender = self.link.route(record)
            await sender.send(record)
            if self.link.cell.fired and sender is self.link.inner:
                await sender.send(self.source.release())
                return


class Feeder(Task):
    def __init__(self, rows: list[Row], out: Sender[Row]) -> None:
        self.rows = rows
        self.out = out

    async def run(self) -> None:
        for row in self.rows:
            await self.out.send(dict(row))


class Collector(Task):
    """Take so many outputs."""

    def __init__(self, source: Receiver[Row], number: int, done: Callable[[Any], None]) -> None:
        self.source = source
        self.number = number
        self.done = done

    async def run(self) -> None:
        receive = self.source.receive
        self.done([await receive() for _ in range(self.number)])


class Maker:
    """Makes the tasks of nets, in a system or in threads of their own."""

    def __init__(self, system: ActorSystem, dedicated: bool) -> None:
        self.system = system
        self.dedicated = dedicated
        self.tasks = 0

    def spawn(self, kind: type[Task], *arguments: Any) -> None:
        self.tasks += 1
        self.system.spawn(kind, *arguments, dedicated=self.dedicated)

    def entrance(self, net: Net, out: "Sender[Row]") -> "Sender[Row]":
        """Make a net's tasks, which send to `out`, and return the sender of the channel in."""
        sender, receiver = channel(ROOM)
        self.make(net, receiver, out)
        return sender

    def make(self, net: Net, source: "Receiver[Row]", out: "Sender[Row]") -> None:
        match net:
            case NamedNet(body=body):
                self.make(body, source, out)
            case Serial(first=first, second=second):
                between, rest = channel(ROOM)
                self.make(second, rest, out)
                self.make(first, source, between)
            case RecordFilter():
                self.spawn(Entity, filtering(net), source, out)
            case Box():
                self.spawn(Entity, calling(net), source, out)
            case Sync(patterns=patterns):
                self.spawn(Entity, Cell(patterns).step, source, out)
            case Choice(branches=branches):
                senders = [self.entrance(each, out.clone()) for each in branches]
                self.spawn(Dispatcher, choosing(branches, senders), source)
            case Star(body=Sync()):
                self.spawn(ChainDispatcher, Link(self, net, out), source)
            case Star():
                self.spawn(Dispatcher, self.replicating(net, out), source)
            case Split():
                self.spawn(Dispatcher, self.splitting(net, out), source)
            case Feedback():
                back, again = channel(ROOM, on_deadlock="grow")
                inner = self.entrance(net.body, back)
                self.spawn(Dispatcher, looping(net, inner, out.clone()), again)
                self.spawn(Dispatcher, looping(net, inner.clone(), out), source)
            case _:
                raise TypeError(f"not for {net!r}")

    def replicating(self, star: Star, out: "Sender[Row]") -> Route:
        leaves = any_of(star.exits)
        inner: Sender[Row] | None = None

        def route(record: Row) -> "Sender[Row]":
            nonlocal inner
            if leaves(record):
                return out
            if inner is None:
                onward, following = channel(ROOM)
                self.spawn(Dispatcher, self.replicating(star, out.clone()), following)
                inner = self.entrance(star.body, onward)
            return inner

        return route

    def splitting(self, split: Split, out: "Sender[Row]") -> Route:
        replicas: dict[Any, Sender[Row]] = {}

        def route(record: Row) -> "Sender[Row]":
            value = record[split.tag]
            inner = replicas.get(value)
            if inner is None:
                inner = replicas[value] = self.entrance(split.body, out.clone())
            return inner

        return route


class Link:
    """A replica of a star of a cell: the way into it, and past it."""

    def __init__(self, maker: Maker, star: Star, out: "Sender[Row]") -> None:
        assert isinstance(star.body, Sync)
        self.maker = maker
        self.star = star
        self.out = out
        self.cell = Cell(star.body.patterns)
        self.leaves = any_of(star.exits)
        self.inner: Sender[Any] | None = None

    def route(self, record: Row) -> "Sender[Any]":
        if self.leaves(record):
            return self.out
        if self.inner is None:
            onward, following = channel(ROOM)
            link = Link(self.maker, self.star, self.out.clone())
            self.maker.spawn(ChainDispatcher, link, following)
            self.inner, source = channel(ROOM)
            self.maker.spawn(ChainCell, self.cell, source, onward)
        return self.inner


def looping(net: Feedback, inner: "Sender[Row]", out: "Sender[Row]") -> Route:
    goes_back = any_of(net.backs)
    return lambda record: inner if goes_back(record) else out


def choosing(branches: Iterable[Net], senders: "list[Sender[Row]]") -> Route:
    """Return what finds the branch with the largest variant that fits; the first of equal ones."""
    types = [infer(branch).inputs for branch in branches]
    known: dict[Variant, Sender[Row]] = {}

    def best(labels: Variant) -> "Sender[Row]":
        sizes = [
            max((len(variant) for variant in variants if variant <= labels), default=-1)
            for variants in types
        ]
        return senders[sizes.index(max(sizes))]

    def route(record: Row) -> "Sender[Row]":
        labels = frozenset(record)
        sender = known.get(labels)
        if sender is None:
            sender = known[labels] = best(labels)
        return sender

    return route


# --- what entities do ----------------------------------------------------------------------------


class Cell:
    """A synchrocell's state, and its step."""

    def __init__(self, patterns: tuple[Pattern, ...]) -> None:
        self.patterns = patterns
        self.tests = [test(pattern) for pattern in patterns]
        self.kept: list[Row | None] = [None] * len(patterns)
        self.fired = False

    def step(self, record: Row) -> Iterable[Row]:
        kept = self.kept
        if self.fired:
            return (record,)
        free = [n for n, fits in enumerate(self.tests) if kept[n] is None and fits(record)]
        if not free:
            return (record,)
        for number in free:
            kept[number] = record
        if None in kept:
            return ()
        self.fired = True
        merged = dict(kept[0] or {})
        for pattern, other in zip(self.patterns[1:], kept[1:], strict=True):
            merged.update((label, (other or {})[label]) for label in pattern.variant)
        return (merged,)


def calling(box: Box) -> Step:
    """Return the step of a box whose function returns a dict by labels, or nothing."""
    inputs = box.signature.inputs or ()
    function = box.function
    assert function is not None

    def step(record: Row) -> Iterable[Row]:
        output = function(*[record[label] for label in inputs])
        if output is None:
            return ()
        if isinstance(output, Mapping):
            if len(record) > len(inputs):
                output = {**{k: v for k, v in record.items() if k not in inputs}, **output}
            return (dict(output),)
        raise TypeError(f"{box} has produced {output!r}")

    return step


def filtering(net: RecordFilter) -> Step:
    """Return a filter's step, a function that is made of its text."""
    rules = []
    for rule in net.rules:
        outputs = "".join(f"{{**rest, {', '.join(map(entry, items))}}}, " for items in rule.outputs)
        rules.append((None if rule.guard is None else text(rule.guard), f"({outputs})"))
    chosen = "None"
    for guard, outputs in reversed(rules):
        chosen = outputs if guard is None else f"{outputs} if {guard} else {chosen}"
    act: Callable[[Row, Row], Iterable[Row]] = evaluated(f"lambda r, rest: {chosen}")
    variant, nothing = net.variant, Row()

    def step(record: Row) -> Iterable[Row]:
        if len(record) == len(variant):
            return act(record, nothing)
        return act(record, {k: v for k, v in record.items() if k not in variant})

    return step


def entry(item: Item) -> str:
    if not is_tag(item.label):
        return f"{item.label!r}: r[{(item.source or item.label)!r}]"
    value = f"r.get({item.label!r}, 0)" if item.value is None else text(item.value)
    return f"{item.label!r}: {value}"


def test(pattern: Pattern) -> Callable[[Row], bool]:
    """Return a function that tells whether a record matches a pattern."""
    conditions = [f"{label!r} in r" for label in sorted(pattern.variant)]
    if pattern.guard is not None:
        conditions.append(text(pattern.guard))
    found: Callable[[Row], bool] = evaluated(f"lambda r: {' and '.join(conditions) or 'True'}")
    return found


def any_of(patterns: Iterable[Pattern]) -> Callable[[Row], bool]:
    tests = [test(pattern) for pattern in patterns]
    if len(tests) == 1:
        return tests[0]
    return lambda record: any(fits(record) for fits in tests)


def evaluated(source: str) -> Any:
    return eval(source, {"quotient": quotient, "remainder": remainder})


def text(expression: Expression) -> str:
    """Write an expression in Python, on the record `r`."""
    match expression:
        case Constant(value):
            return str(value)
        case TagValue(label):
            return f"r[{label!r}]"
        case Unary("abs", operand):
            return f"abs({text(operand)})"
        case Unary(sign, operand):
            return f"({SIGNS.get(sign, sign)}{text(operand)})"
        case Binary("/", left, right):
            return f"quotient({text(left)}, {text(right)})"
        case Binary("%", left, right):
            return f"remainder({text(left)}, {text(right)})"
        case Binary(("min" | "max") as name, left, right):
            return f"{name}({text(left)}, {text(right)})"
        case Binary(sign, left, right):
            return f"({text(left)} {SIGNS.get(sign, sign)} {text(right)})"
        case Conditional(condition, then, otherwise):
            return f"({text(then)} if {text(condition)} else {text(otherwise)})"


def quotient(a: int, b: int) -> int:
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def remainder(a: int, b: int) -> int:
    return a - b * quotient(a, b)


def play(
    system: ActorSystem, net: Net, rows: list[Row], outputs: int, timeout: float, dedicated: bool
) -> list[Row]:
    """Run a net as tasks until so many outputs have come."""
    answers: SimpleQueue[list[Row]] = SimpleQueue()
    out, results = channel(ROOM)
    maker = Maker(system, dedicated)
    system.spawn(Collector, results, outputs, answers.put, dedicated=dedicated)
    first = maker.entrance(net, out)
    system.spawn(Feeder, [labelled(row) for row in rows], first, dedicated=dedicated)
    return answers.get(timeout=timeout)


def labelled(row: Mapping[str, Any]) -> Row:
    """Return a row with its whole numbers as tags, where the keys do not say."""
    return {
        f"<{name_of(key)}>" if isinstance(value, int) and not is_tag(key) else key: value
        for key, value in row.items()
    }
