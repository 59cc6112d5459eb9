"""The terms of nets: boxes, filters, synchrocells, and combinators.

A net is a description: a tree of these classes. It never changes, and may be used any number of
times. The combinators are those of Prokesch 2011, 2.2.3, and the feedback of S-Net's later reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial, singledispatch
from typing import Any, Literal, Self, get_args

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.nets.terms.labels import Label, is_tag, text_of
from callboard.nets.terms.patterns import BoxSignature, Pattern, Rule, Signature
from callboard.scheduling.policies import choose_placement

Ties = Literal["first", "fair"]
Effect = Literal["fail", "skip", "variant"]  # of an error in a box


@singledispatch
def start(net: Any, system: Any, *, placement: Any = None, window: int | None = None) -> Any:
    """Start a net in a system. Terms are data: `nets.running.run` registers this function."""
    raise NotImplementedError(net)


@singledispatch
def draw(net: Any) -> str:
    """Draw a net as HTML. `nets.drawing` registers this function."""
    raise NotImplementedError(net)


class Net:
    """The base of nets. `a >> b` is serial composition, and `a | b` a choice by best match.

    `system.run(net)` starts a net, and returns its NetRun. It has two options:

    - `placement`: the policy, or its name, that places the run's actor: see `spawn`.
    - `window`: the number of records at boxes that run elsewhere at which others wait. The default
      is 256, or 512 for each worker process if boxes run in these.

    Raises ConfigError for invalid values, and NetTypeError if the parts do not fit together.
    """

    __slots__ = ()
    __dir__ = public_names

    def __rshift__(self, other: Net) -> Net:
        return Serial(self, checked_net("the operand after >>", other))

    def __rrshift__(self, other: object) -> Net:
        checked_net("the operand before >>", other)
        raise AssertionError(other)

    def __or__(self, other: Net) -> Net:
        left = self.branches if isinstance(self, Choice) and not self.ordered else (self,)
        return Choice((*left, checked_net("the operand after |", other)))

    def __ror__(self, other: object) -> Net:
        checked_net("the operand before |", other)
        raise AssertionError(other)

    def at(self, place: Any) -> Net:
        """Return this net with a hint for where to run its boxes with threads.

        `place` is the number of a worker, from 0, a placement policy, or the name of one.
        """
        if isinstance(place, bool) or not isinstance(place, int):
            try:
                choose_placement(place)
            except ConfigError as error:
                what = "a place expects a worker's number or a policy"
                raise ConfigError(f"{what}: {error}") from None
        elif place < 0:
            raise ConfigError(f"a place expects a worker's number from 0, or a policy, got {place}")
        return Placed(self, place)

    def named(self, name: str) -> Net:
        """Return this net with a name, for its path in errors and statistics."""
        return NamedNet(name, self)

    def _repr_html_(self) -> str:
        """Draw the net, for notebooks."""
        return draw(self)

    def _run_in(self, system: Any, /, *, placement: Any = None, window: int | None = None) -> Any:
        return start(self, system, placement=placement, window=window)


@dataclass(frozen=True, slots=True)
class BoxOptions:
    """How a box runs. See `box`."""

    concurrency: int | None = None  # None: 1, or no limit for a coroutine function
    timeout: float | None = None
    retries: int = 0
    backoff: float = 0.1
    errors: Effect = "fail"
    threads: bool = False  # calls run on other threads than the executor
    dedicated: bool = False

    def __post_init__(self) -> None:
        if self.concurrency is not None:
            checks.whole("a box's concurrency", self.concurrency)
        if self.timeout is not None:
            checks.seconds("a box's timeout", self.timeout, zero=False)
        checks.whole("a box's number of retries", self.retries, 0)
        checks.seconds("a box's backoff", self.backoff)
        checks.one_of("a box's errors", self.errors, get_args(Effect))
        checks.flag("a box's threads", self.threads)
        checks.flag("a box's dedicated", self.dedicated)

    @property
    def holds_outputs(self) -> bool:
        """Whether the outputs of a generator are passed on together at its end."""
        return self.errors != "fail" or self.retries > 0

    def pause(self, tries: int) -> float:
        """Return the seconds to wait before the next try, after this number of repetitions."""
        return min(self.backoff * 2.0 ** min(tries, 1000), checks.LONGEST)


@dataclass(frozen=True)
class Box(Net):
    """A function of records. `function` is None if a text only declares the box.

    If the function is a class, or a `functools.partial` of one, each replica makes an instance and
    calls it. If `_accepts` is a class, the function gets an instance of it, made from the inputs by
    name.
    """

    name: str
    signature: BoxSignature
    function: Callable[..., Any] | None = None
    options: BoxOptions = field(default_factory=BoxOptions)
    _accepts: type | None = None

    def __post_init__(self) -> None:
        if self.function is not None:  # as functools.wraps does, for help() and pickling
            function = without_partial(self.function)
            for name in ("__doc__", "__module__", "__name__", "__qualname__"):
                if hasattr(function, name):
                    object.__setattr__(self, name, getattr(function, name))
            object.__setattr__(self, "__wrapped__", self.function)

    def __str__(self) -> str:
        return self.name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the function itself."""
        if self.function is None:
            raise TypeError(f"the box {self.name!r} has no function")
        function = self.function() if self._makes_instances else self.function
        return function(*arguments, **keywords)

    @property
    def _makes_instances(self) -> bool:
        """Whether the function is a class, so that each replica has an instance."""
        return isinstance(without_partial(self.function), type)

    def with_options(self, **options: Any) -> Self:
        """Return the box with changed options. See `box`."""
        return replace(self, options=replace(self.options, **options))


@dataclass(frozen=True, slots=True)
class RecordFilter(Net):
    """Housekeeping on a record's labels. The empty filter, `[]`, lets all records through."""

    variant: frozenset[Label] = frozenset()
    rules: tuple[Rule, ...] = (Rule(((),)),)

    @property
    def is_identity(self) -> bool:
        """Whether it passes all records on unchanged."""
        return not self.variant and self.rules == (Rule(((),)),)

    def __str__(self) -> str:
        if self.is_identity:
            return "[]"
        return f"[{text_of(self.variant)} -> {' else '.join(map(str, self.rules))}]"


@dataclass(frozen=True, slots=True)
class Sync(Net):
    """A synchrocell: keeps a record for each pattern, then merges them into one, once.

    Records that it keeps longer than `timeout` seconds become dead letters.
    """

    patterns: tuple[Pattern, ...]
    timeout: float | None = None

    def __str__(self) -> str:
        return f"[| {', '.join(map(str, self.patterns))} |]"


@dataclass(frozen=True, slots=True)
class Serial(Net):
    """The outputs of `first` go into `second`."""

    first: Net
    second: Net

    def __str__(self) -> str:
        operands = [self.second]
        first = self.first
        while isinstance(first, Serial):  # no recursion: a net may have many stages
            operands.append(first.second)
            first = first.first
        return " .. ".join((_factor(first), *map(_operand, reversed(operands))))


@dataclass(frozen=True, slots=True)
class Choice(Net):
    """Each record goes to the branch whose type matches it best."""

    branches: tuple[Net, ...]
    ordered: bool = False
    ties: Ties = "first"

    def __str__(self) -> str:
        return (" || " if self.ordered else " | ").join(map(_term, self.branches))


@dataclass(frozen=True, slots=True)
class Star(Net):
    """Replicas of `body` in series, made on demand. A record that matches an exit leaves.

    The exits are tried before the first replica, too. `limit` is the most replicas in series.
    """

    body: Net
    exits: tuple[Pattern, ...]
    ordered: bool = False
    limit: int = 1_000_000

    def __str__(self) -> str:
        sign = "**" if self.ordered else "*"
        return f"{_operand(self.body)}{sign}{', '.join(map(str, self.exits))}"


@dataclass(frozen=True, slots=True)
class Split(Net):
    """A replica of `body` for each value of a tag, or of a field whose values can be hashed."""

    body: Net
    tag: Label
    ordered: bool = False
    placed: bool = False  # the value is a placement hint, too (`!@`)

    def __str__(self) -> str:
        sign = ("!!" if self.ordered else "!") + ("@" if self.placed else "")
        body = _operand(self.body)
        if not is_tag(self.tag) and body.endswith(">"):
            body = f"({body})"  # `!a` would continue the guard
        return f"{body}{sign}{self.tag}"


@dataclass(frozen=True, slots=True)
class Feedback(Net):
    """Records that match one of `backs` go into `body`, again and again; others leave."""

    body: Net
    backs: tuple[Pattern, ...]

    def __str__(self) -> str:
        return f"{_operand(self.body)} \\ {', '.join(map(str, self.backs))}"


@dataclass(frozen=True, slots=True)
class Ordered(Net):
    """A net with outputs ordered as if one worker had taken one record after the other."""

    body: Net

    def __str__(self) -> str:
        return f"ordered({self.body})"


@dataclass(frozen=True, slots=True)
class Placed(Net):
    """A net with a hint where it is to run (`@`)."""

    body: Net
    place: Any

    def __str__(self) -> str:
        return f"{_operand(self.body)}@{self.place}"


@dataclass(frozen=True, slots=True)
class NamedNet(Net):
    """A net with a name, and perhaps with a signature."""

    name: str
    body: Net
    signature: Signature | None = None

    def __str__(self) -> str:
        return self.name


def checked_net(what: str, value: Any) -> Net:
    """Return the value if it is a net. Raises TypeError."""
    if not isinstance(value, Net):
        hint = ": make it a box, with @box" if callable(value) else ""
        raise TypeError(f"{what}: expected a net, got {safe_repr(value)}{hint}")
    return value


def without_partial(function: Any) -> Any:
    """Return the function that a `functools.partial` calls, or the function itself."""
    while isinstance(function, partial):
        function = function.func
    return function


def _operand(net: Net) -> str:
    return f"({net})" if isinstance(net, (Serial, Choice)) else str(net)


def _factor(net: Net) -> str:
    return f"({net})" if isinstance(net, Choice) else str(net)


def _term(net: Net) -> str:
    return f"({net})" if isinstance(net, Choice) else str(net)
