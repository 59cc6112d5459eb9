"""Facts that inference has found out about one term of a net."""

from __future__ import annotations

from dataclasses import dataclass, field

from callboard.nets.terms.labels import Variant
from callboard.nets.terms.network import Net
from callboard.nets.types.flows import LabelFlow, Stuck

Group = tuple[Variant, ...]


@dataclass(slots=True)
class Facts:
    """A term's input type, and the flows through it that are known so far.

    An input group is a variant that a leaf takes, with what the nets behind it need besides. Where
    they can be content with different labels, the group has several variants, of which one will do.
    """

    net: Net
    parts: tuple[Facts, ...]
    mentioned: Variant
    groups: tuple[Group, ...] = ()
    at_start: LabelFlow = field(default_factory=LabelFlow)  # what initialisers in it put out once
    made: Variant | None = None  # the labels that anything in it may put out, if that is known
    unchecked: bool = False  # it is too large to be checked
    flows: dict[Variant, LabelFlow | Stuck] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Variant, ...]:
        """The input type: none marks an initialiser."""
        return tuple(dict.fromkeys(variant for group in self.groups for variant in group))
