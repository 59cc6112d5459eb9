"""Checks of the refs of routers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from callboard.core.text import safe_repr
from callboard.recipient import Recipient, is_recipient


def checked_refs(what: str, refs: Iterable[Recipient[Any]]) -> tuple[Recipient[Any], ...]:
    """Return the refs of a router. Raises TypeError, or ValueError if there is none."""
    try:
        found = tuple(refs)
    except TypeError:
        raise TypeError(f"{what} wants several refs, not {safe_repr(refs)}") from None
    for ref in found:
        if not is_recipient(ref):
            raise TypeError(f"{what} wants refs, not {safe_repr(ref)}")
    if not found:
        raise ValueError(f"{what} wants at least one ref")
    return found
