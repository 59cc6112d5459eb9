"""Summaries as msgpack bytes.

A map: `format`, which says what it is; `version`, 1; `epsilon`; `total`; `unseen`; and three arrays
of one length, `keys`, `counts` and `errors`. A tuple is an array; msgpack tells texts, bytes,
integers, floats and booleans apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgpack

from callboard.core.checks import LARGEST
from callboard.core.text import safe_repr
from callboard.frequency.results import Counted

__all__ = ["pack", "unpack"]

FORMAT = "callboard.frequency.SpaceSaving"
VERSION = 1


def pack(epsilon: float, total: int, unseen: int, counters: list[Counted]) -> bytes:
    """Return the bytes. Raises TypeError for a key that cannot be packed."""
    parts = {
        "format": FORMAT,
        "version": VERSION,
        "epsilon": epsilon,
        "total": total,
        "unseen": unseen,
        "keys": [_packable(each.key) for each in counters],
        "counts": [each.count for each in counters],
        "errors": [each.error for each in counters],
    }
    packed: bytes = msgpack.packb(parts)
    return packed


DEEPEST = 16  # tuples in tuples


def _packable(key: Any, depth: int = 0) -> Any:
    if type(key) is tuple and depth < DEEPEST:
        return [_packable(part, depth + 1) for part in key]
    if key is None or type(key) in (bool, float, bytes):
        return key
    if type(key) is int and -LARGEST - 1 <= key <= LARGEST:
        return key
    if type(key) is str and not any("\ud800" <= character <= "\udfff" for character in key):
        return key
    sort = type(key).__name__
    raise TypeError(f"a key of type {sort} has no bytes, but may be pickled: {safe_repr(key)}")


def unpack(data: Any) -> tuple[float, int, int, list[Counted]]:
    """Return epsilon, total, unseen and counters. Raises ValueError for bytes of another origin."""
    try:
        parts = msgpack.unpackb(data, use_list=False, strict_map_key=True)
    except TypeError:
        raise
    except Exception as error:  # msgpack has several, without a common class
        raise _no_summary("they are not msgpack's") from error
    if type(parts) is not dict or parts.get("format") != FORMAT:
        raise _no_summary(f"their format is not {FORMAT}")
    if parts.get("version") != VERSION:
        raise _no_summary(f"expected version {VERSION}, got {safe_repr(parts.get('version'))}")
    epsilon: Any = parts.get("epsilon")
    total: Any = parts.get("total")
    if type(epsilon) is not float or not 1e-9 <= epsilon < 1:
        raise _no_summary(f"epsilon is {safe_repr(epsilon)}")
    if not _is_count(total, 0):
        raise _no_summary(f"the total is {safe_repr(total)}")
    unseen: Any = parts.get("unseen")
    # For partitions, and summaries merged from them, it may be a little above the bound.
    if not _is_count(unseen, 0) or unseen > 2 * epsilon * total + 1:
        raise _no_summary(f"unseen is {safe_repr(unseen)} of {total}")
    columns: list[Any] = [parts.get(name) for name in ("keys", "counts", "errors")]
    if any(type(column) is not tuple for column in columns) or len({len(c) for c in columns}) != 1:
        raise _no_summary("keys, counts and errors are not arrays of one length")
    return epsilon, total, unseen, _checked(zip(*columns, strict=True), total, unseen)


def _checked(rows: Iterable[tuple[Any, Any, Any]], total: int, unseen: int) -> list[Counted]:
    counters = [Counted(*row) for row in rows]
    for each in counters:
        try:
            _packable(each.key)
        except TypeError as error:
            raise _no_summary(f"a key is {safe_repr(each.key)}") from error
        if (
            not _is_count(each.count, 1)
            or not _is_count(each.error, 0)
            or not each.error < each.count <= total
            or each.error > unseen
        ):
            raise _no_summary(
                f"a counter has count {safe_repr(each.count)}, error {safe_repr(each.error)}"
            )
    if len({each.key for each in counters}) != len(counters):
        raise _no_summary("a key has two counters")
    if sum(each.count - each.error for each in counters) > total:
        raise _no_summary("their counts are more than the total")
    if unseen == 0 and sum(each.count for each in counters) != total:
        raise _no_summary("without a lost counter, their counts do not add up to the total")
    return counters


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and least <= value <= LARGEST


def _no_summary(why: str) -> ValueError:
    return ValueError(f"these bytes are not those of a summary: {why}")
