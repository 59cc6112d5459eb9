"""Checks that gevent or eventlet has not replaced modules that callboard needs."""

from __future__ import annotations

import sys

from callboard.core.errors import CallboardError


def refuse_green_threads(what: str) -> None:
    """Raise CallboardError if threads are green: they would wait for each other for ever."""
    _refuse(what, "threads of the operating system", ("threading", "thread"), "thread=False")


def refuse_green_sockets(what: str) -> None:
    """Raise CallboardError if an asyncio event loop would wait in green threads."""
    _refuse(what, "an asyncio event loop", ("select",), "select=False")


def _refuse(what: str, needed: str, modules: tuple[str, ...], remedy: str) -> None:
    for module in modules:
        library = _replacer_of(module)
        if library is not None:
            raise CallboardError(
                f"{what} needs {needed}, and {library} has replaced the module {module!r}: it "
                f"would hang. Patch with {remedy}, or use callboard in an unpatched process"
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
