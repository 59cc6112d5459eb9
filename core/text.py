"""Texts of users' values, whose own methods may fail, and of times."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from callboard.core.interrupts import comes_from_signal


def sendable(text: str, longest: int | None = None) -> str:
    """Return a text that UTF-8 can encode: a surrogate becomes its escape sequence.

    It is cut where it would take more than `longest` bytes.
    """
    encoded = text.encode(errors="backslashreplace")
    return encoded[:longest].decode(errors="ignore")


def safe_repr(value: object) -> str:
    """Return `repr(value)`, or a stand-in that names the type if that raises."""
    try:
        return sendable(repr(value))
    except BaseException as error:  # sys.exit() is none that the reader of a text is to follow
        if comes_from_signal(error):
            raise
        return f"<{type(value).__qualname__}, whose repr() raised {type(error).__qualname__}>"


def safe_str(value: object) -> str:
    """Return `str(value)`, or a stand-in that names the type if that raises."""
    try:
        return sendable(str(value))
    except BaseException as error:  # sys.exit() is none that the reader of a text is to follow
        if comes_from_signal(error):
            raise
        return f"<{type(value).__qualname__}, whose str() raised {type(error).__qualname__}>"


def time_in_words(seconds: float | None) -> str:
    """Return a time with a unit that suits it: `3.000 s`, `1.132 ms`, `0.282 us`; `-` for None."""
    if seconds is None:
        return "-"
    if seconds >= 1:
        return f"{seconds:.3f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3f} ms"
    return f"{seconds * 1e6:.3f} us"


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a question about the nearest of the `known` names, or nothing."""
    inner = [other for other in known if other.rpartition(".")[2] == name]
    near = inner or get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
