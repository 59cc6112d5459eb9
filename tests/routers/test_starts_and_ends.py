"""`ready` and `ended` of a router: futures of all its routees."""

from typing import Any

import pytest

from callboard import Actor, ActorStopped, ActorSystem, Future
from callboard.routers import RoundRobinRouter

DEADLINE = 30.0


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


def test_it_is_ready_when_all_routees_are() -> None:
    gates: list[Future[None]] = [Future(), Future()]
    left = list(gates)

    class Late(Echo):
        async def on_start(self) -> None:
            await left.pop()

    with ActorSystem(workers=1) as system:
        router = RoundRobinRouter.spawn(system, Late, routees=2)
        ready = router.ready
        gates[0].set_result(None)
        assert not ready.done()
        gates[1].set_result(None)
        assert ready.result(DEADLINE) is router


def test_it_fails_as_a_start_fails() -> None:
    class Broken(Echo):
        def __init__(self) -> None:
            raise KeyError("start")

    with ActorSystem(workers=1) as system:
        refs = [system.spawn(Echo), system.spawn(Broken)]
        with pytest.raises(ActorStopped, match="failed to start"):
            RoundRobinRouter(refs).ready.result(DEADLINE)


def test_it_has_ended_when_all_routees_have() -> None:
    with ActorSystem(workers=1) as system:
        router = RoundRobinRouter.spawn(system, Echo, routees=3)
        ended = router.ended
        system.drain(DEADLINE)  # which does not wait for ends
        first: Any = router.refs[0]
        first.stop()
        first.ended.result(DEADLINE)
        assert not ended.done()
        router.stop()
        assert [end.reason for end in ended.result(DEADLINE)] == ["stopped"] * 3
