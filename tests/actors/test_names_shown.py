"""The names and signatures that `dir()`, completion and `inspect.signature()` show."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, Future
from callboard.channels import channel
from callboard.frequency import SpaceSaving
from callboard.native import NativeActor
from callboard.nets import box
from callboard.policies import Fifo, PlacementPolicy, RoundRobin
from callboard.routers import BroadcastRouter, RoundRobinRouter
from callboard.streams import entry
from callboard.testing import ManualSystem, Probe

FOLDERS = ("channels", "frequency", "nets", "policies", "routers", "streams", "testing")
PACKAGES = ("callboard", *(f"callboard.{folder}" for folder in FOLDERS))


class Echo(Actor[Any]):
    def __init__(self) -> None:
        self._mine = 1

    def receive(self, message: Any) -> Any:
        return dir(self)


def insides(names: list[str]) -> list[str]:
    """Return the names that are for nobody outside."""
    return [
        name
        for name in names
        if name.startswith("_") and (not name.endswith("__") or name.startswith("__pyx"))
    ]


def test_objects_of_ours_show_no_insides(system: ActorSystem) -> None:
    ref = system.spawn(Echo)
    answer = ref.ask("x")
    answer.result(30)
    sender, receiver = channel(3)
    stream = entry("rows").map(str)
    graph = stream.collect()
    run = system.run(graph)
    net = box("(a) -> (b)")(lambda a: {"b": a})
    objects: list[Any] = [system, ref, answer, sender, receiver, stream, graph, run, net]
    objects += [SpaceSaving(0.1), Fifo(), RoundRobin(), RoundRobinRouter([ref])]
    objects += [BroadcastRouter([ref]), stream.key_by(str), ref.ready, system.run(net)]
    objects += [ManualSystem(), Probe(system), run.results()]
    found = {type(each).__name__: insides(dir(each)) for each in objects}
    assert {name: inside for name, inside in found.items() if inside} == {}
    assert "tell" in dir(ref)
    assert "__init__" in dir(ref)
    receiver.close()
    sender.close()


def test_a_class_of_a_users_shows_what_it_has_added(system: ActorSystem) -> None:
    class Own(PlacementPolicy):
        _turn = 0

        def _next(self) -> None: ...

    assert insides(system.spawn(Echo).ask("x").result(30)) == ["_mine"]
    assert insides(dir(Own())) == ["_next", "_turn"]


def public_classes() -> list[Any]:
    """Return our classes that the packages name, but for tuples, errors and protocols."""
    named = {
        getattr(module, name)
        for module in map(importlib.import_module, PACKAGES)
        for name in module.__all__
    }
    return [
        cls
        for cls in sorted((each for each in named if isinstance(each, type)), key=repr)
        if cls.__module__.startswith("callboard")
        and not issubclass(cls, tuple | BaseException)
        and not getattr(cls, "_is_protocol", False)
    ]


def test_each_public_class_with_insides_hides_them() -> None:
    assert ActorRef in public_classes()
    bare = [cls for cls in public_classes() if cls.__dir__ is object.__dir__]
    assert [cls for cls in bare if insides([*vars(cls)])] == []


@pytest.mark.parametrize(
    ("method", "signature"),
    [
        (ActorRef.tell, "(self, message, /)"),
        (ActorRef.ask, "(self, /, message, timeout=None)"),
        (ActorRef.stop, "(self, /, *, after_queue=False)"),
        (Future.result, "(self, /, timeout=None)"),
        (Actor.spawn, "(self, cls, /, *args, **kwargs)"),
        (NativeActor.spawn, "(self, cls, /, *args, **kwargs)"),
    ],
)
def test_methods_of_compiled_classes_show_args(method: Callable[..., Any], signature: str) -> None:
    assert str(inspect.signature(method)) == signature


def test_each_method_of_a_ref_and_of_its_future_has_a_signature(system: ActorSystem) -> None:
    ref = system.spawn(Echo)
    for each in (ref, ref.ask("x")):
        names = [name for name in dir(each) if not name.startswith("_")]
        methods = [value for name in names if inspect.isbuiltin(value := getattr(each, name))]
        assert len(methods) >= 6
        for method in methods:
            inspect.signature(method)
