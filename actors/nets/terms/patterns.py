"""Patterns of records, the outputs of filters, and signatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from callboard.nets.terms.expressions import Expression
from callboard.nets.terms.labels import Label, Variant, and_more, text_of, text_of_type

MOST_MAPPINGS = 8  # that a message shows


@dataclass(frozen=True, slots=True)
class Pattern:
    """Records that have these labels, and for which the guard is true if there is one."""

    variant: Variant
    guard: Expression | None = None

    def __str__(self) -> str:
        return text_of(self.variant) + (f" if <{self.guard}>" if self.guard is not None else "")


@dataclass(frozen=True, slots=True)
class Item:
    """A label of a filter's output, and the source of its value.

    A field comes from the field `source`. A tag comes from `value`; without one it keeps its value
    if the filter's pattern has it, and is 0 otherwise.
    """

    label: Label
    source: Label | None = None
    value: Expression | None = None

    def __str__(self) -> str:
        if self.value is not None:
            return f"<{self.label.strip('<>')}={self.value}>"
        return self.label if self.source in (None, self.label) else f"{self.label}={self.source}"


@dataclass(frozen=True, slots=True)
class Rule:
    """The outputs of a filter for a record, if its guard is the first that is true.

    Each output is a tuple of items. Without outputs, the record ends.
    """

    outputs: tuple[tuple[Item, ...], ...]
    guard: Expression | None = None

    def __str__(self) -> str:
        outputs = "; ".join("{" + ", ".join(map(str, items)) + "}" for items in self.outputs)
        return f"if <{self.guard}> then {outputs}" if self.guard is not None else outputs


@dataclass(frozen=True, slots=True)
class Mapping:
    """Records of the variants `inputs` become records of the variants `outputs`.

    `outputs` is None if the signature leaves them open (`...`).
    """

    inputs: tuple[Variant, ...]
    outputs: tuple[Variant, ...] | None

    def __str__(self) -> str:
        return self._text(text_of_type)

    def in_full(self) -> str:
        """Return the text with all variants, which can be parsed."""
        return self._text(lambda variants: " | ".join(map(text_of, variants)))

    def _text(self, written: Callable[[tuple[Variant, ...]], str]) -> str:
        inputs = written(self.inputs) if self.inputs else ""
        outputs = "..." if self.outputs is None else written(self.outputs) if self.outputs else ""
        return f"{inputs} -> {outputs}".strip()


@dataclass(frozen=True, slots=True)
class Signature:
    """A net's type: a mapping or several. No input at all marks an initialiser."""

    mappings: tuple[Mapping, ...]

    @property
    def inputs(self) -> tuple[Variant, ...]:
        """All accepted variants."""
        return tuple(variant for mapping in self.mappings for variant in mapping.inputs)

    def __str__(self) -> str:
        shown = [str(mapping) for mapping in self.mappings[:MOST_MAPPINGS]]
        return ", ".join(shown) + and_more(len(self.mappings) - len(shown), ",")

    def in_full(self) -> str:
        """Return the text with all mappings, which can be parsed."""
        return ", ".join(mapping.in_full() for mapping in self.mappings)


@dataclass(frozen=True, slots=True)
class BoxSignature:
    """A box's labels, in the order of its arguments, and those of each output, in order.

    `inputs` is None for an initialiser, a box that runs once at the start. `outputs` is None if a
    function's hints do not name its outputs.
    """

    inputs: tuple[Label, ...] | None
    outputs: tuple[tuple[Label, ...], ...] | None

    def __str__(self) -> str:
        def listed(labels: tuple[Label, ...]) -> str:
            return "(" + ", ".join(labels) + ")"

        inputs = "" if self.inputs is None else listed(self.inputs) + " "
        outputs = "..." if self.outputs is None else " | ".join(map(listed, self.outputs))
        return f"{inputs}-> {outputs}".strip()
