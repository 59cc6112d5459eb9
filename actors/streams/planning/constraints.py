"""The placement constraints of a graph: which part of it has which threading model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams.checks import check_choice


@dataclass(frozen=True, eq=False)
class Constraint:
    """Where the operators that are made from a stream may run; each is of one call alone."""

    model: Model | None = None
    """None: the run's."""
    is_port: bool = False
    """Where the model is `manual`, a thread begins here."""


UNCONSTRAINED = Constraint()


def check_model(what: str, value: Any) -> Model:
    """Check the name of a threading model. Raises GraphError."""
    check_choice(what, value, MODELS)
    return cast("Model", value)
