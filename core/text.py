"""Texts of values that may not be able to give one: the runtime prints what users' code made."""

from __future__ import annotations


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
    except Exception as error:
        return f"<{type(value).__qualname__}, whose repr() raised {type(error).__qualname__}>"


def safe_str(value: object) -> str:
    """Return `str(value)`, or a stand-in that names the type if that raises."""
    try:
        return sendable(str(value))
    except Exception as error:
        return f"<{type(value).__qualname__}, whose str() raised {type(error).__qualname__}>"
