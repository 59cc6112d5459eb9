"""Trees of actors that are thousands of levels deep."""

import itertools
import subprocess
import sys
import threading
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorStopped, ActorSystem, Future

LEVELS = 10_000


class Asynchronous(Actor[int]):
    """Spawns the next level."""

    async def receive(self, below: int) -> None:
        if below:
            self.spawn(Asynchronous).tell(below - 1)


class Asking(Actor[int]):
    """Waits for the answer of the next level; the last one gives none."""

    def __init__(self, reached: threading.Event) -> None:
        self.reached = reached

    async def receive(self, below: int) -> Any:
        if below:
            return await self.spawn(Asking, self.reached).ask(below - 1)
        self.reached.set()
        return await Future[None]()


class Plain(Actor[tuple[int, "list[ActorRef[Any]]"]]):
    """Spawns the next level, and says which is the last."""

    def receive(self, message: "tuple[int, list[ActorRef[Any]]]") -> None:
        below, last = message
        last[:] = [self.ref]
        if below:
            self.spawn(Plain).tell((below - 1, last))


def test_a_deep_tree_of_async_actors_stops_within_the_time_of_a_stop() -> None:
    system = ActorSystem(workers=1)
    system.spawn(Asynchronous).tell(LEVELS)
    system.drain()
    system.stop()  # or DrainTimeout
    assert system.dead_letters.failure_count == 0


def test_a_deep_tree_whose_actors_wait_for_each_other_stops_within_the_time_of_a_stop() -> None:
    system = ActorSystem(workers=1)
    reached = threading.Event()
    answer = system.spawn(Asking, reached).ask(LEVELS)
    assert reached.wait(60)
    system.stop()
    with pytest.raises(
        ActorStopped, match=r"^/Asking-1 was stopped: .*; it was in the middle of the ask$"
    ):
        answer.result(60)


def test_an_error_names_a_deep_actor_by_its_last_names(system: ActorSystem) -> None:
    last: list[ActorRef[Any]] = []
    system.spawn(Plain).tell((LEVELS, last))
    system.drain()
    ref = last[0]
    ref.stop()
    system.drain()
    with pytest.raises(ActorStopped) as caught:
        ref.ask((0, last)).result(60)
    text = str(caught.value)
    assert text.startswith(".../Plain-")
    assert text.endswith(f"/{ref.name} was stopped")
    assert len(text) < 1_000
    assert len(repr(ref)) < 1_000
    assert ref.path.startswith("/Plain-1/Plain-2/")
    assert ref.path.count("/") == LEVELS + 1


def test_statistics_name_each_level_of_a_deep_tree(system: ActorSystem) -> None:
    last: list[ActorRef[Any]] = []
    system.spawn(Plain).tell((1_000, last))
    system.drain()
    actors = system.statistics().actors
    assert len(actors) == 1_001
    assert actors[-1].path == last[0].path
    assert all(
        below.path.startswith(f"{above.path}/") for above, below in itertools.pairwise(actors)
    )


PROGRAM = """
from callboard import ActorSystem
from tests.actors.test_deep_trees import Plain

last = []
system = ActorSystem(workers=1)
system.spawn(Plain).tell((100_000, last))
system.drain(120)
system.stop()
last.clear()
print("still here")
"""


def test_the_refs_of_a_deep_tree_can_be_let_go_of_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240
    )
    assert done.stdout == "still here\n", done.stderr
