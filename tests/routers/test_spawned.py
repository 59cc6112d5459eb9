"""Routers that spawn their routees: deaths, resizes, elasticity. Nothing is lost silently."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import (
    Actor,
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    DeadLetter,
    SpawnError,
    Supervision,
    Terminated,
)
from callboard.routers import (
    AutoScale,
    BroadcastRouter,
    KeyRouter,
    LeastLoadedRouter,
    RoundRobinRouter,
)
from callboard.routers.elastic import Level
from callboard.testing import ManualSystem

LIMIT = 30


class Note(Actor[Any]):
    """Notes what it handles, with its own ref."""

    def __init__(self, noted: list[tuple[Any, Any]]) -> None:
        self.noted = noted

    def receive(self, message: Any) -> Any:
        if message == "stop":
            self.stop()
        elif message == "fail":
            raise ValueError("told to")
        else:
            self.noted.append((self.ref, message))
        return self.ref


class Slow(Actor[Any]):
    """Takes a second for each message."""

    def __init__(self, noted: list[tuple[Any, Any]]) -> None:
        self.noted = noted

    async def receive(self, message: Any) -> None:
        await self.sleep(1.0)
        self.noted.append((self.ref, message))


class Broken(Actor[Any]):
    def __init__(self) -> None:
        raise ValueError("broken")

    def receive(self, message: Any) -> None: ...


class Host(Actor[Any]):
    """Spawns a router of its own, and has it do its work."""

    def __init__(self, noted: list[Any]) -> None:
        self.router = RoundRobinRouter.spawn(self, Note, noted, routees=2, name="notes")

    def receive(self, message: Any) -> None:
        self.router.tell(message)


def letters(system: ActorSystem) -> list[DeadLetter]:
    found: list[DeadLetter] = []
    system.dead_letters.subscribe(found.append)
    return found


def test_routees_are_children_of_one_actor(manual: ManualSystem) -> None:
    noted: list[Any] = []
    router: Any = RoundRobinRouter.spawn(manual, Note, noted, routees=3, name="notes")
    assert router.parent is not None
    assert (router.parent.path, router.parent.name) == ("/notes", "notes")
    assert router.parent is manual.find("/notes")
    assert [ref.parent for ref in router.refs] == [router.parent] * 3
    router.tell_many(range(6))
    manual.run_until_idle()
    assert len({ref for ref, _ in noted}) == 3
    router.stop()
    manual.run_until_idle()
    assert manual.actors == []


class Labelled(Actor[Any]):
    def __init__(self, name: str, *, routees: int = 0, supervision: str = "none") -> None:
        self.given = name, routees, supervision

    def receive(self, message: Any) -> Any:
        return self.given


def test_a_routees_arguments_are_not_taken_for_the_routers_options(manual: ManualSystem) -> None:
    for wrong in ({"name": "x"}, {"routees": 2}):
        (option,) = wrong
        why = rf"whether {option}=.* is its option or an argument of Labelled"
        with pytest.raises(SpawnError, match=why):
            RoundRobinRouter.spawn(manual, Labelled, **{"elastic": (2, 3), **wrong})  # type: ignore[arg-type]
    made = partial(Labelled, "Ada", routees=5)
    router = RoundRobinRouter.spawn(manual, made, routees=2, name="labels")
    answer = router.ask("x")
    assert answer.result(30.0) == ("Ada", 5, "none")
    assert router.parent is not None
    assert router.parent.path == "/labels"
    keyed = KeyRouter.spawn(manual, made, routees=2, by=str)
    assert keyed.ask("x").result(30.0) == ("Ada", 5, "none")


def test_an_actor_spawns_a_router_for_itself(manual: ManualSystem) -> None:
    noted: list[Any] = []
    host = manual.spawn(Host, noted, name="host")
    host.tell_many(range(4))
    manual.run_until_idle()
    assert sorted(message for _, message in noted) == [0, 1, 2, 3]
    assert {ref.parent.path for ref, _ in noted} == {"/host/notes"}


def test_a_failure_restarts_a_routee_and_its_mailbox_stays() -> None:
    noted: list[Any] = []
    with ManualSystem() as system:
        router = RoundRobinRouter.spawn(system, Note, noted, routees=2)
        before = router.refs
        router.tell_many([0, 1, "fail", 3, 4, 5])
        system.run_until_idle()
        assert router.refs == before
        assert system.dead_letters.reasons == {"failed": 1}
    assert sorted(message for _, message in noted) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("how", ["stop", "fail"])
@pytest.mark.parametrize("seed", range(10))
def test_a_routee_that_ends_is_replaced_at_its_place(how: str, seed: int) -> None:
    noted: list[Any] = []
    with ManualSystem(seed=seed) as system:
        found = letters(system)
        router = RoundRobinRouter.spawn(system, Note, noted, routees=3, supervision="stop")
        before = router.refs
        router.tell_many([0, how, 2, 3, 4, 5])
        system.run_until_idle()
        after = router.refs
        assert [ref is other for ref, other in zip(before, after, strict=True)] == [
            True,
            False,
            True,
        ]
        router.tell_many(range(6, 12))
        system.run_until_idle()
        assert after[1] in {ref for ref, _ in noted}
        handled = [message for _, message in noted]
        left = [letter.message for letter in found]
        assert Counter(handled) + Counter(left) == Counter([*range(12)]) + Counter(
            [how] * (how == "fail")
        ) - Counter([1])


def test_a_router_whose_routees_fail_again_and_again_gives_up_and_says_so() -> None:
    with ManualSystem() as system:
        probe = system.probe()
        router = RoundRobinRouter.spawn(system, Broken, routees=2, supervision="stop", name="b")
        assert router.parent is not None
        probe.watch(router.parent)
        ended = router.parent.ended
        system.run_until_idle()
        assert ended.result(0).reason == "failed"
        assert "/b gives up: failures ended 11 of its routees" in str(ended.result(0))
        assert probe.messages == [Terminated(router.parent)]
        before = system.dead_letters.count
        router.tell(1)
        system.run_until_idle()
        assert system.dead_letters.count == before + 1
        with pytest.raises(SpawnError):
            router.resize(3)


def test_routees_that_stop_themselves_are_replaced_for_ever() -> None:
    noted: list[Any] = []
    with ManualSystem() as system:
        router = RoundRobinRouter.spawn(system, Note, noted, routees=2)
        for _ in range(50):
            router.tell("stop")
            system.run_until_idle()
        router.tell_many([1, 2])
        system.run_until_idle()
    assert sorted(message for _, message in noted) == [1, 2]


def test_failures_of_an_hour_ago_count_no_more(manual: ManualSystem) -> None:
    noted: list[Any] = []
    router = RoundRobinRouter.spawn(manual, Note, noted, routees=2, supervision="stop")
    for _ in range(30):
        router.tell("fail")
        manual.run_until_idle()
        manual.advance(10)
    assert router.parent is not None
    assert router.parent.is_alive


def test_a_failure_may_restart_all_routees() -> None:
    noted: list[Any] = []
    with ManualSystem() as system:
        other = system.spawn(Note, noted)
        all_of_them = Supervision("restart", scope="all")
        router = RoundRobinRouter.spawn(system, Note, noted, routees=2, supervision=all_of_them)
        refs = router.refs
        router.tell_many(["fail", 1, 2, 3])
        system.run_until_idle()
        assert router.refs == refs
        assert other.is_alive
    assert sorted(message for _, message in noted) == [1, 2, 3]


@given(
    st.integers(0, 2**32),
    st.lists(
        st.one_of(
            st.integers(1, 5),
            st.tuples(st.sampled_from(["tell", "many", "ask", "soon"]), st.integers(1, 9)),
            st.sampled_from(["stop", "fail", "step"]),
        ),
        max_size=25,
    ),
    st.sampled_from(["round robin", "least loaded", "by key"]),
    st.booleans(),
)
def test_nothing_is_lost_by_deaths_and_resizes(
    seed: int, acts: list[Any], kind: str, is_bounded: bool
) -> None:
    noted: list[tuple[Any, Any]] = []
    options: dict[str, Any] = {"supervision": "stop"}
    if is_bounded:
        options["mailbox"] = BoundedMailbox(3)
    with ManualSystem(seed=seed) as system:
        found = letters(system)
        router: Any
        if kind == "by key":
            by = lambda message: message if isinstance(message, str) else message % 7  # noqa: E731
            router = KeyRouter.spawn(system, Note, noted, by=by, routees=2, **options)
        else:
            cls = RoundRobinRouter if kind == "round robin" else LeastLoadedRouter
            router = cls.spawn(system, Note, noted, routees=2, **options)
        sent, ended, number, failures = [], [], 0, 0
        for act in acts:
            if isinstance(act, int):
                router.resize(act)
            elif act == "step":
                for _ in range(7):
                    system.step()
            elif isinstance(act, str):
                failures += act == "fail"
                if failures <= 9:
                    ended.append(act)
                    router.tell(act)
            else:
                rows = [*range(number, number + act[1])]
                number += act[1]
                sent += rows
                if act[0] == "many":
                    router.tell_many(rows)
                elif act[0] == "soon":
                    router.atell_many(rows)
                else:
                    for row in rows:
                        router.tell(row) if act[0] == "tell" else router.ask(row)
        system.run_until_idle()
        dead = Counter(letter.message for letter in found)
        handled = Counter(message for _, message in noted)
        of_numbers = Counter(
            {message: n for message, n in dead.items() if isinstance(message, int)}
        )
        assert handled + of_numbers == Counter(sent)
        if not ended:  # a resize alone loses nothing
            assert not dead
        of_one: dict[Any, list[int]] = defaultdict(list)
        for ref, message in noted:
            of_one[ref].append(message)
        if not is_bounded or not any(isinstance(act, tuple) and act[0] == "soon" for act in acts):
            assert all(messages == sorted(messages) for messages in of_one.values())
        assert len(router.refs) == len({*router.refs})
        assert all(ref.is_alive for ref in router.refs)
        assert set(router.parent.children) == {*router.refs}


@pytest.mark.parametrize("make", [RoundRobinRouter, LeastLoadedRouter, BroadcastRouter])
@pytest.mark.parametrize("mailbox", [None, BoundedMailbox(4)])
def test_threads_lose_nothing_while_another_resizes(make: Any, mailbox: Any) -> None:
    noted: list[tuple[Any, Any]] = []
    threads, rows = 3, 600
    with ActorSystem(workers=2) as system:
        router = make.spawn(
            system, Note, noted, routees=2, **({"mailbox": mailbox} if mailbox else {})
        )
        going = threading.Event()

        def send(thread: int) -> None:
            for number in range(0, rows, 2):
                router.tell((thread, number))
                router.tell_many([(thread, number + 1)])

        def resize() -> None:
            count = 0
            while not going.is_set():
                router.resize(1 + count % 4)
                count += 1

        with ThreadPoolExecutor(threads + 1) as pool:
            resizing = pool.submit(resize)
            try:
                list(pool.map(send, range(threads)))
            finally:
                going.set()
            resizing.result(LIMIT)
        system.drain(LIMIT)
        assert system.dead_letters.count == 0
    handled = Counter(message for _, message in noted)
    wanted = {(thread, number) for thread in range(threads) for number in range(rows)}
    assert {*handled} == wanted
    if make is not BroadcastRouter:
        assert handled.total() == len(wanted)
    for ref in {ref for ref, _ in noted}:
        for thread in range(threads):
            of_one = [row[1] for other, row in noted if other is ref and row[0] == thread]
            assert of_one == sorted(of_one)


def test_removed_routees_handle_what_they_have_and_stop() -> None:
    noted: list[Any] = []
    with ManualSystem() as system:
        router: Any = RoundRobinRouter.spawn(system, Note, noted, routees=4)
        before = router.refs
        router.tell_many(range(8))
        router.resize(1)
        assert router.refs == before[:1]
        system.run_until_idle()
        assert [ref.is_alive for ref in before] == [True, False, False, False]
        assert system.dead_letters.count == 0
        router.resize(3)
        router.tell_many(range(8, 11))
        system.run_until_idle()
        assert len({ref for ref, message in noted if message >= 8}) == 3
    assert sorted(message for _, message in noted) == [*range(11)]


def test_stopping_a_router_after_its_queue_ends_its_parent_too() -> None:
    noted: list[Any] = []
    with ManualSystem() as system:
        router = RoundRobinRouter.spawn(system, Note, noted, routees=2)
        router.tell_many(range(6))
        router.stop(after_queue=True)
        system.run_until_idle()
        assert system.actors == []
        with pytest.raises(CallboardError, match="was stopped"):
            router.resize(2)
        assert system.dead_letters.count == 0
    assert sorted(message for _, message in noted) == [*range(6)]


def test_an_elastic_router_grows_with_its_queues_and_shrinks_again() -> None:
    noted: list[Any] = []
    with ManualSystem() as system:
        elastic = AutoScale(1, 6, period=1.0, high=4.0, low=0.5, after_looks=2)
        router = RoundRobinRouter.spawn(system, Slow, noted, elastic=elastic)
        assert len(router.refs) == 1
        router.tell_many(range(60))
        sizes = []
        for _ in range(10):
            system.advance(1.0)
            sizes.append(len(router.refs))
        assert sizes == [1, 2, 2, 3, 3, 4, 4, 6, 6, 6]
        router.tell_many(range(60, 120))
        for _ in range(80):
            system.advance(1.0)
        assert len(router.refs) == 1
        assert system.dead_letters.count == 0
    assert len({ref for ref, _ in noted}) == 6
    assert sorted(message for _, message in noted) == [*range(120)]


def test_an_elastic_level_waits_for_its_looks_and_keeps_its_bounds() -> None:
    level = Level(AutoScale(2, 6, high=4.0, low=1.0, after_looks=3))
    assert [level.decide(2, 100) for _ in range(3)] == [2, 2, 3]
    assert [level.decide(3, 12), level.decide(3, 100)] == [3, 3]  # 12 are not more than high
    assert [level.decide(3, 100) for _ in range(2)] == [3, 4]
    assert [level.decide(4, 100) for _ in range(3)] == [4, 4, 6]
    assert [level.decide(6, 100) for _ in range(3)] == [6, 6, 6]
    assert [level.decide(6, 6), level.decide(6, 0), level.decide(6, 0)] == [6, 6, 6]
    assert [level.decide(6, 7), level.decide(6, 0), level.decide(6, 5)] == [6, 6, 6]
    assert level.decide(6, 5) == 5
    assert [level.decide(2, 0) for _ in range(6)] == [2] * 6
    assert level.decide(1, 2) == 2  # somebody has resized it beyond its bounds


def test_an_elastic_router_begins_with_as_many_routees_as_it_is_told(manual: ManualSystem) -> None:
    for wanted, found in ((None, 2), (2, 2), (3, 3), (4, 4)):
        router = RoundRobinRouter.spawn(manual, Note, [], routees=wanted, elastic=(2, 4))
        assert len(router.refs) == found


def test_elastic_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="min_size of an AutoScale"):
        AutoScale(0, 3)
    with pytest.raises(
        ValueError, match="max_size of an AutoScale must be a whole number of at least 3"
    ):
        AutoScale(3, 2)
    with pytest.raises(ValueError, match=r"0 <= low < high, got 4\.0 and 4\.0"):
        AutoScale(low=4.0)
    with pytest.raises(ValueError, match="period"):
        AutoScale(period=0)
    with pytest.raises(TypeError, match="pair"):
        AutoScale._of(3)


def test_spawning_says_what_is_wrong_and_leaves_nothing_behind(manual: ManualSystem) -> None:
    with pytest.raises(TypeError, match="expected a system or an actor, got 3"):
        RoundRobinRouter.spawn(3, Note, routees=2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expects the number of routees"):
        RoundRobinRouter.spawn(manual, Note, [])
    with pytest.raises(ValueError, match="the number of routees"):
        RoundRobinRouter.spawn(manual, Note, [], routees=0)
    for wrong in (1, 4):
        refused = rf"routees={wrong} is not within elastic=\(2, 3\)"
        with pytest.raises(ValueError, match=refused):
            RoundRobinRouter.spawn(manual, Note, [], routees=wrong, elastic=(2, 3))
    with pytest.raises(SpawnError, match="expects a subclass of Actor"):
        RoundRobinRouter.spawn(manual, int, routees=2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="noted"):
        RoundRobinRouter.spawn(manual, Note, routees=2)  # type: ignore[arg-type]
    router = RoundRobinRouter.spawn(manual, Note, [], routees=2)
    with pytest.raises(ValueError, match="the number of routees"):
        router.resize(0)
    router.stop()
    manual.run_until_idle()
    assert manual.actors == []
