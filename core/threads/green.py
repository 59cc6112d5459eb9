"""Checks that gevent or eventlet has not replaced modules whose originals are needed."""

from __future__ import annotations

import sys

from callboard.core.errors import CallboardError


def refuse_green_threads(what: str) -> None:
    """Raise CallboardError if threads are green ones, which would wait for each other for ever."""
    _refuse(what, "threads of the operating system", ("threading", "thread"), "thread=False")


def refuse_green_sockets(what: str) -> None:
    """Raise CallboardError if an event loop of asyncio would wait in green threads."""
    _refuse(what, "an event loop of asyncio", ("select",), "select=False")


def _refuse(what: str, needed: str, modules: tuple[str, ...], remedy: str) -> None:
    for module in modules:
        who = _replacer_of(module)
        if who is not None:
            raise CallboardError(
                f"{what} needs {needed}, and {who} has replaced the module {module!r}: it would "
                f"hang. Patch with {remedy}, or use callboard in a process that is not patched"
            )


def _replacer_of(module: str) -> str | None:
    """Return the library that has replaced a module, or None."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched(module):
        return "gevent.monkey"
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and eventlet.is_monkey_patched(module):
        return "eventlet"
    return None
