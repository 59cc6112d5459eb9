"""Threads and sockets that gevent or eventlet has replaced are refused, and not waited for."""

import sys
import types
from typing import Any

import pytest

from callboard import Actor, ActorSystem, CallboardError
from callboard.remote import connect


class Waits(Actor[Any]):
    async def receive(self, message: Any) -> Any:
        return message


def _patch(monkeypatch: pytest.MonkeyPatch, who: str, *modules: str) -> None:
    """Stand in for a library that says it has replaced these modules."""
    name, function = {
        "gevent.monkey": ("gevent.monkey", "is_module_patched"),
        "eventlet": ("eventlet.patcher", "is_monkey_patched"),
    }[who]
    library = types.ModuleType(name)
    setattr(library, function, lambda module: module in modules)
    monkeypatch.setitem(sys.modules, name, library)


@pytest.mark.parametrize(
    ("who", "module"), [("gevent.monkey", "threading"), ("eventlet", "thread")]
)
def test_green_threads_are_refused(monkeypatch: pytest.MonkeyPatch, who: str, module: str) -> None:
    _patch(monkeypatch, who, module)
    with pytest.raises(CallboardError, match=f"{who} has replaced the module '{module}': it would"):
        ActorSystem()
    with pytest.raises(CallboardError, match="Patch with thread=False"):
        connect("unix:/nowhere", timeout=0.1)


@pytest.mark.parametrize("who", ["gevent.monkey", "eventlet"])
def test_without_threads_only_event_loops_work(monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    _patch(monkeypatch, who, "select", "socket", "time")
    with ActorSystem(workers=1) as system:
        assert system.spawn(Waits).ask("x").result(30) == "x"
        error = system.spawn(Waits, event_loop=True).ask("x").exception(30)
    assert isinstance(error, CallboardError)
    assert "an actor with event_loop=True needs an asyncio event loop" in str(error)


def test_an_imported_library_that_patches_nothing_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    _patch(monkeypatch, "gevent.monkey")
    with ActorSystem(workers=1) as system:
        assert system.spawn(Waits, event_loop=True).ask("x").result(30) == "x"
