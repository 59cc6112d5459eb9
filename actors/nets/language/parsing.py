"""Parses texts to nets, patterns, filters and signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from callboard.core.log import log
from callboard.core.text import safe_repr, safe_str
from callboard.nets.errors import NetSyntaxError, NetTypeError
from callboard.nets.language.reading import Reading
from callboard.nets.language.syntax import tree_of
from callboard.nets.terms.expressions import Expression
from callboard.nets.terms.labels import Label, Variant
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
)
from callboard.nets.terms.patterns import BoxSignature, Pattern, Signature
from callboard.nets.terms.patterns import Mapping as TypeMapping

if TYPE_CHECKING:
    from lark import Token


Boxes = Mapping[str, Callable[..., Any] | Net]

MOST_PARTS = 20_000  # of a net, those of nets within it counted wherever these are named
MOST_NESTED = 100  # nets within nets


@dataclass(slots=True)
class _Scope:
    """The names that the definitions within one pair of braces have given."""

    nets: dict[str, Net] = field(default_factory=dict)
    types: dict[str, tuple[Variant, ...]] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)


class Definitions(Reading):
    """The nets of a text. A name is known from its definition to the end of the net around it."""

    def __init__(self, text: str, boxes: Boxes | None) -> None:
        super().__init__(text)
        if not isinstance(boxes, (Mapping, type(None))):
            raise TypeError(
                "`boxes` must be a dict from names to functions, such as {'read': read}, got "
                f"{safe_repr(boxes)}"
            )
        self.boxes = boxes
        self.used: set[str] = set()  # names among `boxes` that the text has
        self.scopes = [_Scope()]
        self.missing: list[str] = []
        self.sizes: dict[int, tuple[int, int]] = {}  # of defined nets, by their identity

    def program(self, *_: object) -> Mapping[str, Net]:
        unused = ", ".join(safe_str(name) for name in self.boxes or () if name not in self.used)
        if self.missing:
            names = ", ".join(dict.fromkeys(self.missing))
            rest = f". The text does not use: {unused}" if unused else ""
            raise NetSyntaxError(f"no function was given for: {names}; pass them as `boxes`{rest}")
        return {name: net for name, net in self.scopes[0].nets.items() if not isinstance(net, Box)}

    # Definitions

    def box(self, name: Token, signature: BoxSignature) -> None:
        self._define(name, self._scope.nets, self._box(name, signature))

    def inner_scope(self) -> str:
        self.scopes.append(_Scope())
        return ""

    def net(self, name: Token, signature: Signature | None, scope: str | None, *inner: Any) -> None:
        if scope is not None:
            self.scopes.pop()
        self._define_net(name, NamedNet(str(name), inner[-1], signature))

    def declared_net(self, name: Token, signature: Signature | None) -> None:
        body = self._given(name)
        if not isinstance(body, Net):
            raise self.refuse(
                name, f"{str(name)!r} is not a net among `boxes`, and has no 'connect'"
            )
        self._define_net(name, NamedNet(str(name), body, signature))

    def type_definition(self, name: Token, variants: tuple[Variant, ...]) -> None:
        self._define(name, self._scope.types, variants)

    def signature_definition(self, name: Token, signature: Signature) -> None:
        self._define(name, self._scope.signatures, signature)

    # Names

    def type_name(self, name: Token) -> tuple[Variant, ...]:
        for scope in reversed(self.scopes):
            if name in scope.types:
                return scope.types[name]
        return super().type_name(name)

    def signature_name(self, name: Token) -> Signature:
        for scope in reversed(self.scopes):
            if name in scope.signatures:
                return scope.signatures[name]
        return super().signature_name(name)

    def reference(self, name: Token) -> Net:
        for scope in reversed(self.scopes):
            if name in scope.nets:
                return scope.nets[name]
        given = self._given(name)
        if isinstance(given, Net):
            return given
        if given is not None:
            reason = f"the text declares no box {str(name)!r}, and the function has no signature"
        else:
            reason = f"no box or net is named {str(name)!r} so far, in the text or among `boxes`"
        raise self.refuse(name, reason)

    # Combinators

    def function(self, name: Token, net: Net) -> Net:
        if name != "ordered":
            raise self.refuse(name, f"only 'ordered' takes a net in parentheses, not {str(name)!r}")
        return Ordered(net)

    def sync(self, patterns: tuple[Pattern, ...]) -> Net:
        return Sync(patterns)

    def serial(self, first: Net, *others: Net) -> Net:
        for other in others:
            first = Serial(first, other)
        return first

    def choice(self, *branches: Net) -> Net:
        return Choice(branches)

    def ordered_choice(self, *branches: Net) -> Net:
        return Choice(branches, ordered=True)

    def typed_branch(self, variants: object, net: Net) -> Net:
        log.info("text of a net: skipped", what="type of a branch", net=str(net))
        return net

    def star(self, body: Net, exits: tuple[Pattern, ...]) -> Net:
        return Star(body, exits)

    def ordered_star(self, body: Net, exits: tuple[Pattern, ...]) -> Net:
        return Star(body, exits, ordered=True)

    def split(self, body: Net, label: Label) -> Net:
        return Split(body, label)

    def ordered_split(self, body: Net, label: Label) -> Net:
        return Split(body, label, ordered=True)

    def placed_split(self, body: Net, label: Label) -> Net:
        return Split(body, label, placed=True)

    def ordered_placed_split(self, body: Net, label: Label) -> Net:
        return Split(body, label, ordered=True, placed=True)

    def feedback(self, body: Net, backs: tuple[Pattern, ...]) -> Net:
        return Feedback(body, backs)

    def placed(self, body: Net, place: Token) -> Net:
        return Placed(body, self.integer(place))

    @property
    def _scope(self) -> _Scope:
        return self.scopes[-1]

    def _define(self, name: Token, names: dict[str, Any], meaning: Any) -> None:
        if name in names:
            raise self.refuse(name, f"{str(name)!r} is defined twice")
        names[str(name)] = meaning

    def _define_net(self, name: Token, net: NamedNet) -> None:
        """Define a net, unless others refer to each other in it so often that it is too large."""
        number, deepest = 0, 0
        left: list[tuple[Net, int]] = [(net, 0)]
        while left:
            part, level = left.pop()
            more, deeper = self.sizes.get(id(part), (1, 0))
            number += more
            deepest = max(deepest, level + deeper)
            if number > MOST_PARTS:
                raise self.refuse(name, f"{str(name)!r} has more than {MOST_PARTS:,} parts")
            if id(part) in self.sizes:
                continue
            match part:
                case Serial(first, second):
                    left += (first, level), (second, level)
                case Choice(branches):
                    left += [(branch, level + 1) for branch in branches]
                case (
                    Star(body) | Split(body) | Feedback(body) | Ordered(body) | Placed(body)
                ) | NamedNet(_, body):
                    left.append((body, level + 1))
        if deepest > MOST_NESTED:
            raise self.too_deep(name)
        self.sizes[id(net)] = number, deepest
        self._define(name, self._scope.nets, net)

    def _given(self, name: Token) -> Any:
        self.used.add(str(name))
        return (self.boxes or {}).get(name)

    def _box(self, name: Token, signature: BoxSignature) -> Net:
        given = self._given(name)
        if isinstance(given, Box):
            return replace(given, name=str(name), signature=_agreed(name, signature, given))
        if isinstance(given, Net):
            return NamedNet(str(name), given, _as_signature(signature))
        if given is not None and not callable(given):
            raise TypeError(f"{str(name)!r} is neither a function nor a box: {safe_repr(given)}")
        if given is None and self.boxes is not None:
            self.missing.append(str(name))
        return Box(str(name), signature, given)


def _agreed(name: str, declared: BoxSignature, box: Box) -> BoxSignature:
    """Return the box's own signature, in whose order its function works, if it is as declared."""
    own = box.signature
    inputs_agree = own.inputs == declared.inputs or (
        None not in (own.inputs, declared.inputs)
        and sorted(own.inputs or ()) == sorted(declared.inputs or ())
    )
    outputs_agree = own.outputs is None or (
        declared.outputs is not None
        and set(map(frozenset, own.outputs)) == set(map(frozenset, declared.outputs))
    )
    if not (inputs_agree and outputs_agree):
        raise NetTypeError(f"the text declares box {name} ({declared}), but it has ({own})")
    return own if own.outputs is not None else replace(own, outputs=declared.outputs)


def _as_signature(signature: BoxSignature) -> Signature:
    inputs = () if signature.inputs is None else (frozenset(signature.inputs),)
    outputs = None if signature.outputs is None else tuple(map(frozenset, signature.outputs))
    return Signature((TypeMapping(inputs, outputs),))


def parse(text: str, boxes: Boxes | None = None, *, name: str | None = None) -> Net:
    """Return the last net that a text in S-Net's language defines, or the one with the given name.

    Metadata, compiler directives and the bodies of boxes are skipped, and logged.

    Args:
        text: The definitions.
        boxes: The functions of the boxes that the text declares, by name: a function, a callable
            class, a box with the declared signature, or a net instead. The text may also use boxes
            and nets from here without a declaration, and need not use all. Without `boxes`,
            declared boxes have no function; that is enough for drawings and type checks.
        name: The name of the net to return.
    """
    definitions = Definitions(text, boxes)
    nets = definitions.term_of(tree_of(text, "program"))
    if not nets:
        raise NetSyntaxError("the text defines no net")
    if name is None:
        name = list(nets)[-1]
    if name not in nets:
        raise NetSyntaxError(f"the text has no net {name!r}, but {', '.join(nets)}")
    net: Net = nets[name]
    return net


def parse_expression(text: str) -> Expression:
    """Return an expression on tags: `n % 2 == 0 && n > m`."""
    expression: Expression = Reading(text).term_of(tree_of(text, "expression"))
    return expression


def parse_pattern(text: str) -> Pattern:
    """Return a pattern: `{a, <n>} if <n > 1>`."""
    pattern: Pattern = Reading(text).term_of(tree_of(text, "pattern"))
    return pattern


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Return patterns with commas between them: `{a, <n>} if <n > 1>, {b}`."""
    patterns: tuple[Pattern, ...] = Reading(text).term_of(tree_of(text, "patterns"))
    return patterns


def parse_filter(text: str) -> RecordFilter:
    """Return a filter, with its brackets or without: `{a, <n>} -> {a}; {<m=n+1>}`."""
    rules: RecordFilter = Reading(text).term_of(tree_of(text, "filter_text"))
    return rules


def parse_signature(text: str) -> Signature:
    """Return a net's signature: `{a} | {b} -> {c}, {d} -> ...`."""
    signature: Signature = Reading(text).term_of(tree_of(text, "signature"))
    return signature


def parse_box_signature(text: str) -> BoxSignature:
    """Return a box's signature: `(x, <t>) -> (x) | (<p>)`."""
    signature: BoxSignature = Reading(text).term_of(tree_of(text, "box_signature"))
    return signature
