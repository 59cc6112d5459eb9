"""What operators have in common whose state is an object, or one for each key.

The object is one that a user's class could make: see Receives in chaining/protocols.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from callboard.streams.planning.operator import Operator
from callboard.streams.programs.keyed import Objects


def objects(
    kind: str, make: Callable[[], Any], *, label: str = "", detail: str = "", paired: bool = True,
    marks_end: bool = False,
) -> Operator:
    """Hand rows to what `make` makes; with keys, give pairs of key and output if `paired`."""
    program = partial(Objects, make=make, paired=paired, marks_end=marks_end)
    return Operator(kind=kind, program=program, label=label, detail=detail, stateful=True)
