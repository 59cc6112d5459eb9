"""Boxes without functions, for tests of types."""

from __future__ import annotations

from callboard.nets.language.parsing import parse_box_signature
from callboard.nets.terms.network import Box


def declared(signature: str, name: str = "") -> Box:
    """Return a box of a signature, which is its name, too, if there is no other."""
    return Box(name or signature, parse_box_signature(signature))
