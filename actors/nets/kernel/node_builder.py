"""Builds the nodes of a run from the terms of a net."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from callboard.nets.errors import NetError
from callboard.nets.kernel.combinators import (
    ChoiceNode,
    Enter,
    FeedbackNode,
    Leave,
    OrderedFeedback,
    SplitNode,
    StarNode,
    Unstarted,
)
from callboard.nets.kernel.executor import Identity, NetNode, Series
from callboard.nets.kernel.leaves import BoxNode, CalledBoxNode, FilterNode, SyncNode
from callboard.nets.kernel.process_boxes import ProcessBoxNode
from callboard.nets.kernel.specializer import Specializer
from callboard.nets.terms.labels import name_of
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
    without_partial,
)
from callboard.nets.terms.patterns import BoxSignature
from callboard.nets.types.hints import called_function
from callboard.nets.types.places import parts_of, text_in_short
from callboard.nets.types.typed import Typed

_LEAVES = BoxNode, CalledBoxNode, ProcessBoxNode, FilterNode, SyncNode


class NodeBuilder:
    """Makes the nodes of one run.

    If no box runs elsewhere, depth first keeps the order, and nodes need no lineages.
    `moves` tells which boxes may be called elsewhere, for batches; `moving` has these, with nodes.
    """

    def __init__(
        self, specializer: Specializer, *, is_alone: bool, moves: Callable[[Box], bool]
    ) -> None:
        self.specializer = specializer
        self.is_alone = is_alone
        self.moves = moves
        self.moving: list[tuple[Box, ProcessBoxNode]] = []
        self.nodes: list[NetNode] = []
        self.keeps_order = False  # a part keeps the order of records by their lineages
        self.unstarted = Unstarted()

    def _known(self, node: NetNode, options: Any = None) -> NetNode:
        node.options = options
        node.is_leaf = isinstance(node, _LEAVES)
        self.nodes.append(node)
        return node

    def node(self, typed: Typed, *, ordered: bool = False, place: Any = None) -> NetNode:
        """Return the node of a net. `place` is the hint of the nearest `@` around it."""
        net, path = typed.net, typed.path
        match net:
            case NamedNet():
                return self.node(typed.children[0], ordered=ordered, place=place)
            case Ordered():
                return self.node(typed.children[0], ordered=True, place=place)
            case Placed(_, hint):
                return self.node(typed.children[0], ordered=ordered, place=hint)
            case Serial():
                parts = [self.node(part, ordered=ordered, place=place) for part in typed.children]
                return Series(path, [each for each in parts if type(each) is not Identity])
            case Box():
                return self.box(net, path, ordered, place)
            case RecordFilter():
                if net.is_identity:
                    return Identity(path, None)
                return self._known(FilterNode(path, self.specializer.filter(path, net)))
            case Sync(patterns):
                specialize, merge = self.specializer.sync(path, net), self.specializer.merge(net)
                return self._known(SyncNode(path, specialize, len(patterns), merge), net.timeout)
        return self.combined(typed, ordered, place)

    def box(self, box: Box, path: str, ordered: bool, place: Any) -> NetNode:
        """Return the node of a box."""
        if box.function is None:
            raise NetError(f"the box {path} has no function, so the net cannot run")
        specialize = self.specializer.box(path, box)
        node: NetNode
        function: Callable[..., Any] | None = None
        factory: Callable[[], Callable[..., Any]] | None = None
        if box._makes_instances:
            factory = partial(new_instance, box)
        else:
            function = accepting(box, box.function)
        if runs_elsewhere(box):
            # An object of a class has a state, so it gets one call at a time.
            max_calls = box.options.concurrency or (0 if is_async(box) and factory is None else 1)
            node = CalledBoxNode(path, specialize, function, factory, max_calls, ordered, place)
        else:
            kind = ProcessBoxNode if self.moves(box) else BoxNode
            collects = box.options.holds_outputs
            node = kind(path, specialize, function, factory, generates(box), collects)
            if isinstance(node, ProcessBoxNode):
                self.moving.append((box, node))
        node.consumed = frozenset(box.signature.inputs or ())
        return self._known(node, box.options)

    def combined(self, typed: Typed, ordered: bool, place: Any) -> NetNode:
        """Return the node of a choice, a replication or a feedback."""
        specializer, net, path = self.specializer, typed.net, typed.path
        ordered = ordered or bool(getattr(net, "ordered", False))
        in_order = ordered and not self.is_alone and not is_at_once(net, self.moves)
        self.keeps_order = self.keeps_order or in_order
        if isinstance(net, Split) and net.placed:
            place = net.tag
        before = len(self.nodes)
        inner = [self.node(each, ordered=ordered, place=place) for each in typed.children]
        named = f"{path} ({text_in_short(net)})"
        match net:
            case Choice():
                routes = [each.inputs for each in typed.children]
                specialize = specializer.choice(named, routes, net.ties == "fair")
                initialisers = [number for number, inputs in enumerate(routes) if not inputs]
                node: NetNode = ChoiceNode(
                    path, specialize, inner, initialisers, self.unstarted, in_order
                )
            case Star(_, exits):
                within = [each for each in self.nodes[before:] if each.is_leaf]
                star = StarNode(path, specializer.test(named, exits), inner[0], net.limit, within)
                if in_order:
                    star.again = Enter(path, star, Leave(path, None))
                    self._known(star).place = named
                    return star.again
                node = star
            case Split():
                node = SplitNode(path, specializer.split(named, net), inner[0], may_end(net.body))
            case Feedback(_, backs):
                kind = OrderedFeedback if in_order else FeedbackNode
                return self._known(kind(path, specializer.test(path, backs), inner[0]))
            case _:
                raise AssertionError(net)
        self._known(node).place = named
        return Enter(path, node, Leave(path, None)) if in_order else node


def new_instance(box: Box) -> Callable[..., Any]:
    """Return the function of a new replica of a box."""
    assert box.function is not None
    return accepting(box, box.function())


def accepting(box: Box, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the labels' values, one by one."""
    return function if box._accepts is None else _WithRecord(function, box._accepts, box.signature)


class _WithRecord:
    """A function of an instance of a class, which is called with the values of its labels."""

    def __init__(
        self, function: Callable[..., Any], accepts: type, signature: BoxSignature
    ) -> None:
        self.__wrapped__ = function  # tells whether it is to be awaited
        self._accepts = accepts
        self._names = [name_of(label) for label in signature.inputs or ()]

    def __call__(self, *values: Any) -> Any:
        record = self._accepts(**dict(zip(self._names, values, strict=True)))
        return self.__wrapped__(record)


def is_async(box: Box) -> bool:
    """Tell whether a box's function is a coroutine function, or an asynchronous generator."""
    return box.function is not None and is_async_function(box.function)


def is_async_function(function: Any) -> bool:
    """Tell whether calls of a function, or of an object, are to be awaited."""
    called = called_function(function)
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def generates(box: Box) -> bool:
    """Tell whether a box gives its outputs one by one."""
    if box.function is None:
        return False
    called = called_function(box.function)
    return inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called)


def runs_elsewhere(box: Box) -> bool:
    """Tell whether the box is called by other threads than the executor's."""
    options = box.options
    return (
        is_async(box)
        or options.threads
        or options.dedicated
        or options.timeout is not None
        or options.retries > 0
        or options.concurrency not in (None, 1)
    )


def is_portable(box: Box) -> bool:
    """Tell whether a process can call the box: no other thread does, and no replicas share it."""
    return (box._makes_instances and not runs_elsewhere(box)) or is_stateless(box)


def is_stateless(box: Box) -> bool:
    """Tell whether any process can call the box: a plain function, which has no state."""
    function = without_partial(box.function)
    is_plain = inspect.isfunction(function) or (
        inspect.isbuiltin(function) and inspect.ismodule(function.__self__)
    )
    return is_plain and not runs_elsewhere(box)


def never(_: Box) -> bool:
    """Return False: the box stays where the executor is."""
    return False


def may_end(body: Net) -> bool:
    """Tell whether a net may return to its first state, as a star of a synchrocell does."""
    plain = _without_names(body)
    return isinstance(plain, Star) and isinstance(_without_names(plain.body), Sync)


def _without_names(net: Net) -> Net:
    while isinstance(net, (NamedNet, Placed, Ordered)):
        net = net.body
    return net


def is_at_once(net: Net, moves: Callable[[Box], bool] = never) -> bool:
    """Tell whether all outputs of a record come before anything else can happen."""
    return all(
        not runs_elsewhere(part) and not generates(part) and not moves(part)
        for part in parts_within(net)
        if isinstance(part, Box)
    )


def parts_within(net: Net) -> list[Net]:
    """Return a net and all nets in it."""
    found: list[Net] = []
    left = [net]
    while left:
        part = left.pop()
        found.append(part)
        left += parts_of(part)
    return found
