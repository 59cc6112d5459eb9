"""Moving live actors: the decisions of a rebalance, and moves that disturb nothing."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox
from callboard.policies import Balanced, Blocks, Fixed, LeastLoaded, PlacementPolicy, PolicyError
from callboard.scheduling.handle import Handle
from callboard.scheduling.placement import rebalance
from callboard.scheduling.worker import WorkerThread
from tests.tokenless import tokenless


class Box(Actor[Any]):
    """Answers with the name of the worker's thread that runs it."""

    def receive(self, message: Any) -> str:
        return threading.current_thread().name


class Filter(Box):
    pass


def index_of(ref: ActorRef[Any]) -> int:
    assert ref.worker is not None
    return ref.worker.index


# --- what is decided ------------------------------------------------------------------------------


def test_rebalance_places_actors_anew_and_answers_how_many_move() -> None:
    with ActorSystem(workers=2, threading="assigned") as system:
        actors = [system.spawn(Box) for _ in range(6)]
        assert system.rebalance(Blocks(3)) == 2
        assert [index_of(ref) for ref in actors] == [0, 0, 0, 1, 1, 1]
        assert system.rebalance(Blocks(3)) == 0
        assert system.rebalance("round_robin") == 2
        assert [index_of(ref) for ref in actors] == [0, 1, 0, 1, 0, 1]


def test_rebalance_moves_children_too() -> None:
    class Parent(Actor[Any]):
        def receive(self, message: Any) -> ActorRef[Any]:
            return self.spawn(Box)

    with ActorSystem(workers=2, placement=Fixed(0)) as system:
        parent = system.spawn(Parent)
        child = parent.ask("spawn").result(30)
        assert system.rebalance(Fixed(1)) == 2
        assert index_of(child) == index_of(parent) == 1


def test_rebalance_leaves_actors_with_a_worker_of_their_own() -> None:
    with ActorSystem(workers=2, threading="assigned") as system:
        dedicated = system.spawn(Box, dedicated=True)
        before = dedicated.worker
        assert system.rebalance(Fixed(1)) == 0
        assert dedicated.worker is before


def test_rebalance_leaves_a_dedicated_actor_that_ended_while_it_looked() -> None:
    with ActorSystem(workers=2, threading="assigned") as system:
        ended = system.spawn(Box, dedicated=True)
        ended.stop()
        system.drain()
        assert rebalance([ended], system._runtime.team.workers, Fixed(1)) == []


def test_balanced_moves_no_more_than_it_must() -> None:
    with ActorSystem(workers=2, placement=Balanced()) as system:
        actors = [system.spawn(Box, placement=Fixed(0)) for _ in range(6)]
        actors += [system.spawn(Filter) for _ in range(4)]
        policy = Balanced()
        assert system.rebalance(policy) == 3
        assert Counter(index_of(ref) for ref in actors[:6]) == {0: 3, 1: 3}
        assert Counter(index_of(ref) for ref in actors[6:]) == {0: 2, 1: 2}
        assert system.rebalance(policy) == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "failed to arrange 3 actors"),
        ([], "arranged 0 actors instead of 3"),
        ([None, None, None], "on None, which is not a worker"),
    ],
)
def test_nothing_moves_where_a_policy_answers_nonsense(answer: Any, message: str) -> None:
    class Wrong(PlacementPolicy):
        def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> Any:
            return None

        def arrange(self, actors: Sequence[Handle], workers: Sequence[WorkerThread]) -> Any:
            return answer

    with ActorSystem(workers=2, threading="assigned") as system:
        actors = [system.spawn(Box) for _ in range(3)]
        with pytest.raises(PolicyError, match=message):
            system.rebalance(Wrong())
        assert [index_of(ref) for ref in actors] == [0, 1, 0]


@dataclass(eq=False)
class Costly:
    """What LeastLoaded looks at."""

    _busy_ns: int
    worker: int


@given(
    st.integers(1, 5).flatmap(
        lambda workers: st.tuples(
            st.just(workers),
            st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, workers - 1)), max_size=30),
        )
    )
)
def test_least_loaded_levels_by_moves_that_help(case: tuple[int, list[tuple[int, int]]]) -> None:
    workers, population = case
    actors = [Costly(cost, affinity) for cost, affinity in population]
    everyone = cast("Sequence[WorkerThread]", range(workers))
    found = LeastLoaded().arrange(cast("Sequence[Handle]", actors), everyone)
    affinities = cast("Sequence[int]", found)

    def loads(where: Sequence[int]) -> list[int]:
        sums = [0] * workers
        for actor, affinity in zip(actors, where, strict=True):
            sums[affinity] += actor._busy_ns
        return sums

    before, after = loads([actor.worker for actor in actors]), loads(affinities)
    assert max(after) <= max(before)
    gap = max(after) - min(after)
    # As level as a tenth of the mean, or no single move from the fullest worker would help.
    if gap > sum(after) / workers / 10:
        fullest = after.index(max(after))
        assert not [
            actor
            for actor, affinity in zip(actors, affinities, strict=True)
            if affinity == fullest and 0 < actor._busy_ns < gap
        ]


def test_least_loaded_counts_what_was_spent_since_the_last_rebalance() -> None:
    one, two, three = Costly(100, 0), Costly(100, 0), Costly(0, 1)
    actors = cast("list[Handle]", [one, two, three])
    workers = cast("Sequence[WorkerThread]", [0, 1])
    policy = LeastLoaded()
    assert Counter(cast("list[int]", policy.arrange(actors, workers))[:2]) == {0: 1, 1: 1}
    # Nobody moved them, and neither has worked since.
    assert list(cast("list[int]", policy.arrange(actors, workers))) == [0, 0, 1]


# --- that a move disturbs nothing -----------------------------------------------------------------


def test_an_idle_actor_runs_on_its_new_worker_from_the_next_message_on() -> None:
    # Without the token each worker runs the actors that live on it, and no others.
    with tokenless("move", workers=2, threading="assigned") as system:
        box = system.spawn(Box, placement=Fixed(0))
        assert box.ask("where").result(30) == "move-0"
        system.drain()  # the answer is there before the dispatch is over, which may take more
        system.rebalance(Fixed(1))
        assert box.ask("where").result(30) == "move-1"


def test_an_actor_that_is_always_ready_moves_too() -> None:
    class Spinner(Box):
        """Has a message waiting at every moment."""

        def receive(self, message: Any) -> str:
            if message == "spin":
                self.ref.tell("spin")
            return super().receive(message)

    with tokenless("spin", workers=2, threading="assigned", quantum=1) as system:
        spinner = system.spawn(Spinner, placement=Fixed(0))
        spinner.tell("spin")
        spinner.tell("spin")
        for to in (1, 0, 1):
            assert spinner.ask("where").result(30) == f"spin-{1 - to}"
            system.rebalance(Fixed(to))
            # It was ready on the old worker, with two messages ahead of this ask.
            assert spinner.ask("where").result(30) == f"spin-{to}"
        spinner.stop()


def test_an_actor_cannot_be_taken_over_from_another_system_or_its_own_worker() -> None:
    with ActorSystem("one") as one, ActorSystem("two") as two:
        stranger = one.spawn(Box)
        dedicated = two.spawn(Box, dedicated=True)
        worker = two.spawn(Box).worker
        assert worker is not None
        with pytest.raises(PolicyError, match="worker of another system"):
            worker.take_over(stranger)
        with pytest.raises(PolicyError, match="it is dedicated"):
            worker.take_over(dedicated)


@pytest.mark.parametrize("make", [ActorSystem, tokenless])
@pytest.mark.parametrize("seed", range(3))
def test_random_moves_keep_order_and_messages(make: Callable[..., ActorSystem], seed: int) -> None:
    producers = 3
    random = Random(seed)

    class Receiver(Actor[tuple[int, int]]):
        """Counts each producer's messages, and what was not the next one of its producer."""

        def __init__(self) -> None:
            self.next = [0] * producers
            self.wrong = 0

        def receive(self, message: tuple[int, int]) -> tuple[int, list[int]]:
            producer, number = message
            if producer >= 0:
                self.wrong += number != self.next[producer]
                self.next[producer] += 1
            return self.wrong, self.next

    with make(workers=3, threading="assigned", quantum=4) as system:
        receivers = [system.spawn(Receiver, mailbox=BoundedMailbox(50)) for _ in range(5)]
        workers = sorted({ref.worker for ref in receivers if ref.worker}, key=lambda w: w.index)
        assert len(workers) == 3
        enough = threading.Event()
        begun = threading.Barrier(producers + 1)
        sent = [0] * producers

        def produce(producer: int) -> None:
            begun.wait(30)
            while not sent[producer] or not enough.is_set():
                for ref in receivers:
                    ref.tell((producer, sent[producer]))
                sent[producer] += 1

        threads = [threading.Thread(target=produce, args=(i,)) for i in range(producers)]
        for thread in threads:
            thread.start()
        begun.wait(30)
        for _ in range(30):
            ref = random.choice(receivers)
            random.choice(workers).take_over(ref)
            wrong, _ = ref.ask((-1, 0)).result(30)
            assert wrong == 0
        enough.set()
        for thread in threads:
            thread.join()
        for ref in receivers:
            assert ref.ask((-1, 0)).result(30) == (0, sent)
