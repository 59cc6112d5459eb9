"""The result of inference: nets with their types."""

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

    `children` are the branches of a choice, the factors of a serial composition without their
    nesting, and otherwise the body. A choice finds the best match in their `inputs`.
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
        """The variants that it accepts, each once: the declared ones, if it has a signature."""
        return self.signature.inputs

    @property
    def _is_initialiser(self) -> bool:
        """Whether it takes no records, and runs once at the start."""
        return not self.inputs

    def __str__(self) -> str:
        return f"{self.path}: {self.signature}"

    def outputs(self, labels: Iterable[Label]) -> tuple[Variant, ...] | None:
        """Return the possible outputs for a record with these labels; None if that is not known."""
        flow = self._inference.record_flow(self._facts, frozenset(labels))
        return None if isinstance(flow, Stuck) else flow.variants()


def infer(net: Net) -> Typed:
    """Infer a net's type. Raises NetTypeError where its parts do not fit together."""
    try:
        root = places_in(checked_net("the argument of infer()", net))
        return _typed(root, Inference(Messages(root)))
    except RecursionError as error:
        raise NetTypeError("the net's parts are nested too deeply") from error


def accepts(typed: Typed, labels: Iterable[Label]) -> bool:
    """Tell whether a record with exactly these labels gets through the net.

    A record may have more labels than the input type, which may lead it to a branch where it gets
    stuck. Guards may be true or false.
    """
    return isinstance(typed._inference.record_flow(typed._facts, frozenset(labels)), LabelFlow)


def _typed(place: Place, inference: Inference) -> Typed:
    children = tuple(_typed(part, inference) for part in place.parts)
    facts = inference.facts(place.net, tuple(child._facts for child in children))
    return Typed(place.net, place.path, _signature(facts, inference), children, facts, inference)


def _signature(facts: Facts, inference: Inference) -> Signature:
    """Return the type of a net, with its initialisers' outputs as a mapping without inputs."""
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
