"""Placement policies: an actor's worker, and errors of wrong answers."""

import gc
import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, ConfigError
from callboard.policies import (
    Balanced,
    Blocks,
    Fixed,
    LeastLoaded,
    Near,
    PlacementPolicy,
    PolicyError,
    RoundRobin,
)
from callboard.scheduling.handle import Handle
from callboard.scheduling.worker import WorkerThread
from tests.tokenless import tokenless


class Box(Actor[Any]):
    def receive(self, message: int) -> None:
        while message > 0:
            message -= 1


class Filter(Box):
    pass


def index_of(ref: ActorRef[Any]) -> int:
    assert ref.worker is not None
    return ref.worker.index


def affinities(system: ActorSystem, count: int, **options: Any) -> list[int]:
    return [index_of(system.spawn(Box, **options)) for _ in range(count)]


def test_round_robin_takes_each_worker_in_its_turn() -> None:
    with ActorSystem(workers=3, threading="assigned") as system:
        assert affinities(system, 7) == [0, 1, 2, 0, 1, 2, 0]


def test_blocks_are_runs_of_neighbours() -> None:
    with ActorSystem(workers=2, placement=Blocks(3)) as system:
        assert affinities(system, 10) == [0, 0, 0, 1, 1, 1, 0, 0, 0, 1]


@pytest.mark.filterwarnings("error")
def test_a_policy_that_takes_turns_is_pickled_with_its_turn() -> None:
    policy = Blocks(3)
    with ActorSystem(workers=2, placement=policy) as system:
        assert affinities(system, 4) == [0, 0, 0, 1]
    with ActorSystem(workers=2, placement=pickle.loads(pickle.dumps(policy))) as system:
        assert affinities(system, 4) == [1, 1, 0, 0]


def test_fixed_is_the_worker_with_the_index() -> None:
    with ActorSystem(workers=3, threading="assigned") as system:
        assert affinities(system, 3, placement=Fixed(2)) == [2, 2, 2]


def test_near_is_where_the_other_actor_lives() -> None:
    with ActorSystem(workers=3, threading="assigned") as system:
        other = system.spawn(Box, placement=Fixed(1))
        assert affinities(system, 2, placement=Near(other)) == [1, 1]


def test_a_policy_for_one_actor_leaves_the_systems_own_alone() -> None:
    with ActorSystem(workers=3, threading="assigned") as system:
        assert affinities(system, 1) == [0]
        assert affinities(system, 2, placement=Fixed(0)) == [0, 0]
        assert affinities(system, 2) == [1, 2]


def test_a_policy_that_spawns_name_goes_on_where_it_was() -> None:
    with ActorSystem(workers=2, threading="assigned") as system:
        assert affinities(system, 4, placement={"policy": "blocks", "size": 2}) == [0, 0, 1, 1]
        assert affinities(system, 2, placement="balanced") == [0, 1]
        assert affinities(system, 2, placement="balanced") == [0, 1]


def test_balanced_spreads_each_class_evenly() -> None:
    with ActorSystem(workers=2, placement=Balanced()) as system:
        # A pipeline of box, filter, box, ...: in turns, all boxes would share a worker.
        actors = [system.spawn(Box if i % 2 == 0 else Filter) for i in range(12)]
        boxes = Counter(index_of(ref) for ref in actors[0::2])
        filters = Counter(index_of(ref) for ref in actors[1::2])
    assert boxes == {0: 3, 1: 3}
    assert filters == {0: 3, 1: 3}


def test_balanced_spreads_single_actors_of_many_classes() -> None:
    with ActorSystem(workers=2, placement=Balanced()) as system:
        kinds = [type(f"Kind{i}", (Box,), {}) for i in range(6)]
        placed = Counter(index_of(system.spawn(kind)) for kind in kinds)
    assert placed == {0: 3, 1: 3}


def test_balanced_forgets_actors_that_have_stopped() -> None:
    with ActorSystem(workers=2, placement=Balanced()) as system:
        actors = [system.spawn(Box) for _ in range(8)]
        for ref in actors:
            if index_of(ref) == 0:
                ref.stop()
        system.drain()
        actors = [ref for ref in actors if ref.is_alive]
        del ref
        gc.collect()
        # Four live on worker 1 and none on worker 0.
        assert affinities(system, 4) == [0, 0, 0, 0]


def test_least_loaded_is_the_worker_that_was_least_busy() -> None:
    # Without the token each worker runs the actors that live on it, and no others.
    with tokenless(workers=2, placement=LeastLoaded(window=1e-9)) as system:
        busy = system.spawn(Box, placement=Fixed(0))
        busy.tell(300_000)
        system.drain()
        assert affinities(system, 1) == [1]
        other = system.spawn(Box, placement=Fixed(1))
        other.tell(300_000)
        system.drain()
        assert affinities(system, 1) == [0]


def test_least_loaded_spreads_actors_that_nothing_is_known_of() -> None:
    with ActorSystem(workers=3, placement=LeastLoaded(window=3600.0)) as system:
        assert Counter(affinities(system, 9)) == {0: 3, 1: 3, 2: 3}


def test_least_loaded_makes_the_system_measure() -> None:
    with ActorSystem(placement="least_loaded") as system:
        box = system.spawn(Box)
        box.tell(1000)
        system.drain()
        assert box._busy_ns > 0


# --- a user's own, and errors ---------------------------------------------------------------------


class Last(PlacementPolicy):
    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        return workers[-1]


def test_a_users_policy_decides() -> None:
    with ActorSystem(workers=3, placement=Last()) as system:
        assert affinities(system, 2) == [2, 2]


def test_a_policy_that_raises_fails_the_spawn_and_nothing_else() -> None:
    class Broken(PlacementPolicy):
        def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
            raise LookupError("no idea")

    with ActorSystem(workers=2, threading="assigned") as system:
        with pytest.raises(PolicyError, match=r"/box: .*no idea"):
            system.spawn(Box, name="box", placement=Broken())
        assert system.actors == []
        assert index_of(system.spawn(Box, name="box")) == 0


@pytest.mark.parametrize("answer", [None, 1, "worker", "stranger"])
def test_a_placement_on_no_worker_of_the_system_fails_the_spawn(answer: object) -> None:
    class Wrong(PlacementPolicy):
        def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> Any:
            return stranger.worker if answer == "stranger" else answer

    with ActorSystem("other") as other, ActorSystem(workers=2, threading="assigned") as system:
        stranger = other.spawn(Box)
        with pytest.raises(PolicyError, match="expected one of the system's workers"):
            system.spawn(Box, placement=Wrong())


def test_an_index_that_does_not_exist_fails_the_spawn() -> None:
    with (
        ActorSystem(workers=2, threading="assigned") as system,
        pytest.raises(PolicyError, match="no worker 2; the system has the workers 0 to 1"),
    ):
        system.spawn(Box, placement=Fixed(2))


def test_no_actor_can_be_near_one_with_a_worker_of_its_own() -> None:
    with ActorSystem(workers=2, threading="assigned") as system:
        dedicated = system.spawn(Box, dedicated=True)
        with pytest.raises(PolicyError, match=f"near .*{dedicated.name}.* is dedicated"):
            system.spawn(Box, placement=Near(dedicated))


def test_near_wants_the_ref_of_an_actor() -> None:
    with pytest.raises(ConfigError, match="Near expects the ref of an actor, got 'box'"):
        Near("box")  # type: ignore[arg-type]


def test_policies_show_their_names() -> None:
    assert repr(RoundRobin()) == "<RoundRobin>"
