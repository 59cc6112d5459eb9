"""Labels of records, and variants: sets of labels.

A label is a string. `a` names a field, whose value is any object. `<a>` names a tag, an integer.
`<#a>` names a binding tag, an integer that only patterns with this label match.

The type system is that of Prokesch 2011, 2.2.1: a variant with more labels is a subtype.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Label: TypeAlias = str
Variant: TypeAlias = frozenset[Label]
Record: TypeAlias = dict[Label, Any]

MOST_VARIANTS = 8  # of a type that a message shows


def tag(name: str) -> Label:
    """Return the label of a tag."""
    return f"<{name}>"


def binding_tag(name: str) -> Label:
    """Return the label of a binding tag."""
    return f"<#{name}>"


def is_tag(label: Label) -> bool:
    """Tell whether a label names a tag, binding or not."""
    return label.startswith("<")


def is_binding(label: Label) -> bool:
    """Tell whether a label names a binding tag."""
    return label.startswith("<#")


def name_of(label: Label) -> str:
    """Return a label's name, without the signs that say its kind."""
    return label.strip("<#>")


def text_of(labels: Iterable[Label]) -> str:
    """Write labels as S-Net does: `{a, b, <t>}`, fields first. An ordered input keeps its order."""
    ordered = list(labels) if isinstance(labels, (list, tuple)) else sorted(labels, key=_order)
    return "{" + ", ".join(ordered) + "}"


def text_of_type(variants: Iterable[Iterable[Label]]) -> str:
    """Write a type, a set of variants, for people: `{a} | {b, <t>}`. Many are cut short."""
    listed = list(variants)
    shown = listed[:MOST_VARIANTS]
    text = " | ".join(map(text_of, shown)) or "nothing"
    return text + and_more(len(listed) - len(shown), " |")


def and_more(left: int, separator: str) -> str:
    """Return the end of a list that is cut short by this number."""
    return f"{separator} and {left} more" if left else ""


def matches(variant: Variant, labels: Variant) -> bool:
    """Tell whether a record with these labels matches a pattern of that variant.

    It has all labels of the variant, and no binding tag that the variant lacks.
    """
    return variant <= labels and all(label in variant for label in labels if is_binding(label))


def _order(label: Label) -> tuple[bool, bool, str]:
    return is_tag(label), is_binding(label), name_of(label)
