"""Finding actors: by path, by class, and when they are spawned."""

import threading
from typing import Any

import pytest

from callboard import Actor, ActorSystem, AskTimeout, CallboardError, SystemClosed
from callboard.testing import ManualSystem

DEADLINE = 30.0


class Shop(Actor[Any]):
    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise LookupError
        return self.spawn(Till, name=message) if isinstance(message, str) else self.spawn(Till)


class Till(Actor[Any]):
    def receive(self, message: Any) -> None:
        pass


class SmallTill(Till):
    pass


def test_an_actor_without_a_name_is_found_by_its_path(manual: ManualSystem) -> None:
    shop = manual.spawn(Shop)
    other = manual.spawn(Shop, name="other")
    child = shop.ask(None).result()
    named = shop.ask("till").result()
    among = other.ask(None).result()
    for ref in (shop, other, child, named, among):
        assert manual.find(ref.path) is ref
    for path in ("/Shop-99", "/Till-1", f"/{shop.name}/Till-x", "", "/other/till", "/Shop"):
        with pytest.raises(CallboardError, match="named actors: /"):
            manual.find(path)
    child.stop()
    manual.run_until_idle()
    with pytest.raises(CallboardError, match="no actor at"):
        manual.find(child.path)


def test_the_actors_of_a_class_are_found(manual: ManualSystem) -> None:
    shop = manual.spawn(Shop)
    small = manual.spawn(SmallTill)
    till = shop.ask(None).result()
    assert manual.find(Till) == [till, small]
    assert manual.find(SmallTill) == [small]
    assert manual.find(Shop) == [shop]
    small.stop()
    manual.run_until_idle()
    assert manual.find(SmallTill) == []
    with pytest.raises(TypeError, match=r"find\(\) expects a path such as '/shop/cart', got 5"):
        manual.find(5)  # type: ignore[call-overload]


def test_an_actor_that_is_to_come_can_be_waited_for(manual: ManualSystem) -> None:
    coming = manual.afind("/shop/till")
    shop = manual.spawn(Shop, name="shop")
    assert not coming.done()
    till = shop.ask("till").result()
    assert coming.result(0) is till
    assert manual.afind("/shop").result(0) is shop


def test_a_wait_for_an_actor_ends_in_time(manual: ManualSystem) -> None:
    coming = manual.afind("/shop", timeout=5)
    with pytest.raises(AskTimeout, match="no actor came at '/shop' in 5 s"):
        coming.result()
    assert manual.now == 5
    manual.spawn(Shop, name="shop")
    again = manual.afind("/other", 5)
    assert again.cancel()
    manual.spawn(Shop, name="other")
    with pytest.raises(ValueError, match=r"the timeout of afind\(\)"):
        manual.afind("/shop", -1)
    with pytest.raises(TypeError, match="expects a path"):
        manual.afind(Shop)  # type: ignore[arg-type]


def test_a_wait_for_an_actor_ends_with_the_system() -> None:
    with ActorSystem(workers=1) as system:
        coming = system.afind("/shop")
    with pytest.raises(SystemClosed, match="no actor came at '/shop'"):
        coming.result(DEADLINE)


async def test_an_actor_of_another_thread_is_awaited() -> None:
    async with ActorSystem(workers=1) as system:
        coming = system.afind("/shop", DEADLINE)
        threading.Timer(0.0, system.spawn, (Shop,), {"name": "shop"}).start()
        assert (await coming).path == "/shop"
