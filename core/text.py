"""Formats values, whose `repr()` may fail, times, and counts as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from itertools import islice
from reprlib import Repr
from typing import Any

from callboard.core.interrupts import comes_from_signal

_MOST = 200  # characters of a text in a short repr
_LONG = 2_000  # characters of a repr in an error's text, and of a line in a log


def sendable(text: str, longest: int | None = None) -> str:
    """Return a text that UTF-8 can encode, of at most `longest` bytes: surrogates are escaped."""
    encoded = text.encode(errors="backslashreplace")
    return encoded[:longest].decode(errors="ignore")


def printable(text: str) -> str:
    """Return text that a terminal shows unchanged: other characters become U+FFFD."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def one_line(text: str) -> str:
    """Return text as one line that a terminal shows unchanged: other characters are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cut(text: str, longest: int = _LONG) -> str:
    """Return text without its middle if it has more than `longest` characters."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]}... ({len(text):,} characters) ...{text[-longest // 2 :]}"


def _contained(name: str, write: Callable[[Any], str], value: object) -> str:
    """Return `write(value)`, or a substitute with the type's name if that raises anything."""
    try:
        return write(value)
    except BaseException as error:  # even sys.exit(), which must not end the reader of a text
        if comes_from_signal(error):
            raise
        return f"<{type(value).__qualname__}, whose {name}() raised {type(error).__qualname__}>"


def safe_repr(value: object) -> str:
    """Return `repr(value)` for an error's text: that of a large value is cut.

    If it raises, a substitute names the type.
    """
    if type(value) in _SIZED and len(value) > _LONG:  # type: ignore[arg-type]
        return short_repr(value)
    return _contained("repr", lambda value: cut(sendable(repr(value))), value)


def short_repr(value: object) -> str:
    """Return the beginning of a value's repr. It reads only the first items of a large container.

    If a repr raises, a substitute names the type.
    """
    text = _contained("repr", lambda value: sendable(_SHORT.repr(value)), value)
    return text if len(text) <= 2 * _MOST else f"{text[: 2 * _MOST - 3]}..."


class _Short(Repr):
    """Writes short reprs. The base class would sort a whole dict or set first."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = _MOST
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 8

    def repr1(self, x: Any, level: int) -> str:
        """Write a value. The base class would go by the name of the value's class."""
        by_kind: dict[type, Callable[[Any, int], str]] = {
            dict: self._dict,
            set: self._items,
            frozenset: self._items,
            bytes: self._bytes,
            bytearray: self._bytes,
            list: self.repr_list,
            tuple: self.repr_tuple,
            str: self.repr_str,
        }
        if (write := by_kind.get(type(x))) is not None:
            return write(x, level)
        if _has_plain_repr(x):
            if level <= 0:
                return f"{type(x).__qualname__}(...)"
            shown = [field.name for field in fields(x) if field.repr]
            parts = [f"{name}={self.repr1(getattr(x, name), level - 1)}" for name in shown]
            return f"{type(x).__qualname__}({', '.join(parts)})"
        text = safe_repr(x)
        return text if len(text) <= _MOST else f"{text[:_MOST]}..."

    def _dict(self, x: dict[Any, Any], level: int) -> str:
        if level <= 0:
            return "{...}"
        some = islice(x.items(), self.maxdict)
        parts = [f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}" for k, v in some]
        return f"{{{', '.join(parts)}{', ...' if len(x) > self.maxdict else ''}}}"

    def _items(self, x: Collection[Any], level: int) -> str:
        if level <= 0 or not x:
            return f"{type(x).__name__}({'...' if x else ''})"
        parts = [self.repr1(one, level - 1) for one in islice(x, self.maxset)]
        text = f"{{{', '.join(parts)}{', ...' if len(x) > self.maxset else ''}}}"
        return text if type(x) is set else f"frozenset({text})"

    def _bytes(self, x: bytes, level: int) -> str:
        return f"{x[:_MOST]!r}{'...' if len(x) > _MOST else ''}"


def _has_plain_repr(value: object) -> bool:
    """Tell whether a value is of a dataclass with the generated repr."""
    return (
        is_dataclass(value)
        and not isinstance(value, type)
        and hasattr(type(value).__repr__, "__wrapped__")
    )


def safe_str(value: object) -> str:
    """Return `str(value)`, or a substitute with the type's name if that raises."""
    return _contained("str", lambda value: sendable(str(value)), value)


def time_in_words(seconds: float | None) -> str:
    """Return a time with a suitable unit: `3.000 s`, `1.132 ms`, `0.282 us`; `-` for None."""
    if seconds is None:
        return "-"
    if seconds >= 1:
        return f"{seconds:.3f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3f} ms"
    return f"{seconds * 1e6:.3f} us"


def counted(number: int, what: str) -> str:
    """Return "1 row", "2 rows" and so on, of "row"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a question about the nearest of the `known` names, or an empty text."""
    inner = [other for other in known if other.rpartition(".")[2] == name]
    near = inner or get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


_SHORT = _Short()
_SIZED = {str, bytes, bytearray, list, tuple, dict, set, frozenset}
_PLAIN = frozenset((str, int, float, bool, type(None)))


def json_text(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Write a value as JSON. Raises TypeError, and ValueError for NaN, an infinity, or a dict with
    two keys that are the same text in JSON, such as 1 and "1".
    """
    try:
        text = json.dumps(value, default=default, allow_nan=False)
    except ValueError as error:
        raise ValueError(f"expected a JSON value, got {safe_repr(value)}: {error}") from None
    is_flat = type(value) is dict and _PLAIN.issuperset(map(type, value.values()))
    if not (is_flat and all(type(key) is str for key in value)):
        json.loads(text, object_pairs_hook=unique_keys)
    return text


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of JSON's pairs. Raises ValueError if a key occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key occurs twice among {', '.join(key for key, _ in pairs)}")
    return found
