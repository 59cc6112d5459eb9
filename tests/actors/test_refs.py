"""Refs: the only handle that others hold on an actor."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, CallboardError, Future, Terminated
from callboard.testing import Probe


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


class Parent(Actor[Any]):
    def receive(self, message: Any) -> ActorRef[Any]:
        return self.spawn(Echo, name=message)


def test_a_ref_equals_itself_alone_and_can_be_a_key(system: ActorSystem) -> None:
    first, second = system.spawn(Echo), system.spawn(Echo)
    assert first == first
    assert first != second
    assert {first: 1, second: 2}[first] == 1
    assert len({first, second, first}) == 2


def test_a_ref_knows_its_name_path_parent_and_number(system: ActorSystem) -> None:
    parent = system.spawn(Parent, name="shop")
    child = parent.ask("cart").result(timeout=30)
    plain = system.spawn(Echo)
    assert (parent.name, parent.path, parent.parent) == ("shop", "/shop", None)
    assert (child.name, child.path, child.parent) == ("cart", "/shop/cart", parent)
    assert (plain.name, plain.path) == (f"Echo-{plain._number}", f"/Echo-{plain._number}")
    assert [parent._number, child._number, plain._number] == [1, 2, 3]


def test_a_ref_knows_its_system(system: ActorSystem) -> None:
    assert system.spawn(Echo).system is system


def test_a_ref_says_whether_its_actor_lives(system: ActorSystem) -> None:
    ref = system.spawn(Echo, name="echo")
    assert ref.is_alive
    assert repr(ref) == "<ActorRef /echo>"
    ref.stop()
    system.drain()
    assert not ref.is_alive
    assert repr(ref) == "<ActorRef /echo, stopped>"
    ref.stop()  # once more: no matter


def test_a_ref_outlives_its_actor_and_its_system() -> None:
    with ActorSystem() as system:
        ref = system.spawn(Echo, name="echo")
    del system
    assert (ref.name, ref.path, ref.is_alive) == ("echo", "/echo", False)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_ref_cannot_be_pickled_and_says_why(system: ActorSystem, protocol: int) -> None:
    ref = system.spawn(Echo, name="echo")
    with pytest.raises(
        TypeError, match=r"<ActorRef /echo> cannot be pickled: it is valid only in its own process"
    ):
        pickle.dumps(ref, protocol)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_of_identities_are_same(system: ActorSystem, copied: Callable[[Any], Any]) -> None:
    ref = system.spawn(Echo)
    probe = Probe(system)
    timer = system._runtime.timers.call_after(1000, system.drain)
    for one in (ref, ref.ask("a"), system, probe, timer):
        assert copied(one) is one
        assert copied([one]) == [one]
    timer.cancel()


def test_objects_that_hold_refs_can_be_copied(system: ActorSystem) -> None:
    @dataclass
    class Order:
        customer: ActorRef[Any]
        others: list[ActorRef[Any]]
        answer: Future[Any]

    ref = system.spawn(Echo)
    order = Order(ref, [ref], ref.ask("a"))
    assert asdict(order) == {"customer": ref, "others": [ref], "answer": order.answer}
    assert copy.deepcopy(order) == order
    assert replace(order, others=[]).customer is ref
    assert copy.deepcopy(Terminated(ref)) == Terminated(ref)


def test_refs_come_from_spawn() -> None:
    with pytest.raises(TypeError, match=r"refs come from spawn\(\), not from ActorRef\(\)"):
        ActorRef()


def test_a_ref_is_found_by_its_path(system: ActorSystem) -> None:
    parent = system.spawn(Parent, name="shop")
    child = parent.ask("cart").result(timeout=30)
    assert system.find("/shop") is parent
    assert system.find("/shop/cart") is child
    with pytest.raises(CallboardError, match="no actor at '/shop/none'; named actors: /shop"):
        system.find("/shop/none")
