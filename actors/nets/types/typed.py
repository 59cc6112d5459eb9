"""Nets with their types: the result of inference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from callboard.core.handles import public_names
from callboard.nets.errors import NetTypeError
from callboard.nets.terms.labels import Label, Variant
from callboard.nets.terms.network import Net, checked_net
from callboard.nets.terms.patterns import Mapping, Signature
from callboard.nets.types.flows import Facts, LabelFlow, Stuck
from callboard.nets.types.inference import Inference
from callboard.nets.types.messages import Messages
from callboard.nets.types.places import Place, places_in


@dataclass(frozen=True, slots=True)
class Typed:
    """A part of a net with its type, and its own parts.

    `children` are the branches of a choice, the factors of a serial composition, however they were
    nested, and the body of everything else. A choice finds the best match in their `inputs`.
    """

    __dir__ = public_names

    net: Net
    path: str  # `/fib/merge/sum`: names of nets and boxes
    signature: Signature
    children: tuple[Typed, ...]
    _facts: Facts = field(repr=False, compare=False)
    _inference: Inference = field(repr=False, compare=False)

    @property
    def inputs(self) -> tuple[Variant, ...]:
        """The variants that it accepts, each once. Declared ones, if it has a signature."""
        return self.signature.inputs

    @property
    def is_initialiser(self) -> bool:
        """Whether it takes no records, and runs once at the start."""
        return not self.inputs

    def inputs_of(self, part: Net) -> tuple[Variant, ...]:
        """Return the variants that a part of the net accepts, by the identity of its term.

        A part is what some `children` have. A choice routes by this, for each of its branches.
        """
        return self._inference.known(part).inputs

    def __str__(self) -> str:
        return f"{self.path}: {self.signature}"

    def outputs(self, labels: Iterable[Label]) -> tuple[Variant, ...] | None:
        """Return what may come out for a record with these labels. None: that is not known."""
        flow = self._inference.record_flow(self._facts, frozenset(labels))
        return None if isinstance(flow, Stuck) else flow.variants()


def infer(net: Net) -> Typed:
    """Infer a net's type, and check that its parts fit together. NetTypeError says where not."""
    try:
        root = places_in(checked_net("what infer() is given", net))
        return _typed(root, Inference(Messages(root)))
    except RecursionError as error:
        raise NetTypeError("the net's parts are too deep within each other") from error


def accepts(typed: Typed, labels: Iterable[Label]) -> bool:
    """Tell whether a record with these labels gets through, and not only one of the input type.

    A record may have more labels than the input type says, and these may lead it to a branch where
    it is stuck. Guards are taken to be true or false.
    """
    return isinstance(typed._inference.record_flow(typed._facts, frozenset(labels)), LabelFlow)


def _typed(place: Place, inference: Inference) -> Typed:
    children = tuple(_typed(part, inference) for part in place.parts)
    facts = inference.facts(place.net, tuple(child._facts for child in children))
    return Typed(place.net, place.path, _signature(facts, inference), children, facts, inference)


def _signature(facts: Facts, inference: Inference) -> Signature:
    """Return the type of a net, with what its initialisers put out as a mapping without inputs."""
    declared = getattr(facts.net, "signature", None)
    if isinstance(declared, Signature):
        return declared
    mappings = []
    if not facts.groups or facts.at_start.open or facts.at_start.size:
        mappings.append(Mapping((), facts.at_start.variants()))
    for variant in facts.inputs:
        flow = inference.flow(facts, variant)
        outputs = None if isinstance(flow, Stuck) else flow.variants()
        mappings.append(Mapping((variant,), outputs))
    return Signature(tuple(mappings))
