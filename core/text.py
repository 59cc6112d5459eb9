"""Texts of values that may not be able to give one: the runtime prints what users' code made."""

from __future__ import annotations


def safe_repr(value: object) -> str:
    """Return `repr(value)`, or a stand-in that names the type if that raises."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__qualname__}, whose repr() raised {type(error).__qualname__}>"


def safe_str(value: object) -> str:
    """Return `str(value)`, or a stand-in that names the type if that raises."""
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__qualname__}, whose str() raised {type(error).__qualname__}>"
