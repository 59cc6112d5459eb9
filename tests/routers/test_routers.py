"""Routers: the ref that a message goes to, the order, and no losses."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorStopped,
    ActorSystem,
    AskTimeout,
    BoundedMailbox,
    CallboardError,
    ConfigError,
    MailboxFull,
)
from callboard.recipient import is_recipient
from callboard.remote import Server, connect, serve_entries
from callboard.remote.errors import CodecError
from callboard.remote.sharding.key_hash import key_hash
from callboard.routers import BroadcastRouter, KeyRouter, LeastLoadedRouter, RoundRobinRouter
from callboard.streams import entry
from callboard.testing import ManualSystem

LIMIT = 30
ROUTERS: list[Any] = [
    RoundRobinRouter,
    LeastLoadedRouter,
    BroadcastRouter,
    lambda refs: KeyRouter(refs, "k"),
]


class Keep(Actor[Any]):
    """Keeps what it is told in a list."""

    def __init__(self, kept: list[Any]) -> None:
        self.kept = kept

    def receive(self, message: Any) -> None:
        self.kept.append(message)


class Answer(Actor[Any]):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def receive(self, message: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Mute(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return self.sleep(3600)


def keepers(system: ActorSystem, count: int) -> tuple[list[list[Any]], list[ActorRef[Any]]]:
    kept: list[list[Any]] = [[] for _ in range(count)]
    return kept, [system.spawn(Keep, each) for each in kept]


def test_round_robin_takes_turns() -> None:
    with ManualSystem() as system:
        kept, refs = keepers(system, 3)
        router = RoundRobinRouter(refs)
        router.tell(0)
        router.tell_many(range(1, 7))
        system.run_until_idle()
    assert kept == [[0, 3, 6], [1, 4], [2, 5]]


def place_of(key: Any, places: int) -> int:
    """Return what figure 1 of Lamping and Veach (2014) says."""
    number, place, following = key_hash(key), -1, 0
    while following < places:
        place = following
        number = (number * 2862933555777941757 + 1) % 2**64
        following = int((place + 1) * ((1 << 31) / ((number >> 33) + 1)))
    return place


def test_each_key_has_one_ref() -> None:
    with ManualSystem() as system:
        kept, refs = keepers(system, 3)
        router = KeyRouter(refs, "user")
        rows = [{"user": f"u{number % 7}", "n": number} for number in range(50)]
        router.tell_many(rows)
        system.run_until_idle()
        assert router.of_key("u1") is refs[place_of("u1", 3)]
    for place, part in enumerate(kept):
        assert part == [row for row in rows if place_of(row["user"], 3) == place]


@pytest.mark.parametrize("places", [1, 2, 7, 40])
def test_one_ref_more_takes_its_share_of_keys_and_moves_no_others(places: int) -> None:
    with ManualSystem() as system:
        _, refs = keepers(system, places + 1)
        less, more = KeyRouter(refs[:-1], "k"), KeyRouter(refs, "k")
        keys = range(8_000)
        moved = [key for key in keys if less.of_key(key) is not more.of_key(key)]
        assert all(more.of_key(key) is refs[-1] for key in moved)
        share = len(keys) / (places + 1)
        assert abs(len(moved) - share) < 5 * share**0.5


def test_broadcast_tells_all() -> None:
    with ManualSystem() as system:
        kept, refs = keepers(system, 3)
        router = BroadcastRouter(refs)
        router.tell(0)
        router.tell_many(iter([1, 2]))
        system.run_until_idle()
    assert kept == [[0, 1, 2]] * 3


def test_an_ask_is_answered_by_the_chosen_actor() -> None:
    with ActorSystem() as system:
        refs = [system.spawn(Answer, answer) for answer in "ab"]
        router = RoundRobinRouter(refs)
        assert [router.ask(0).result(LIMIT) for _ in range(3)] == ["a", "b", "a"]
        assert KeyRouter(refs, lambda row: row).ask("k").result(LIMIT) == "ab"[place_of("k", 2)]


def test_broadcast_gathers_all_answers_in_the_order_of_its_refs() -> None:
    with ActorSystem() as system:
        router = BroadcastRouter([system.spawn(Answer, answer) for answer in "abc"])
        assert router.ask(0).result(LIMIT) == ["a", "b", "c"]


@pytest.mark.parametrize("seed", range(10))
def test_broadcast_gathers_the_first_answers(seed: int) -> None:
    with ManualSystem(seed=seed) as system:
        router = BroadcastRouter(
            [system.spawn(Mute), system.spawn(Answer, "b"), system.spawn(Answer, "c")]
        )
        asked = router.ask(0, timeout=5, first=2)
        system.run_until_idle()
        assert sorted(asked.result(0)) == ["b", "c"]
        late = router.ask(0, timeout=5)
        system.run_until_idle()
        assert not late.done()
        system.advance(6)
        assert isinstance(late.exception(0), AskTimeout)
        system.advance(3600)


def test_gathering_fails_only_when_too_few_answers_can_come() -> None:
    for first in (1, 2):
        with ActorSystem() as system:
            bad = [system.spawn(Answer, ValueError("bad")) for _ in range(2)]
            asked = BroadcastRouter([*bad, system.spawn(Answer, "g")]).ask(0, first=first)
            if first == 1:
                assert asked.result(LIMIT) == ["g"]
            else:
                with pytest.raises(ValueError, match="bad"):
                    asked.result(LIMIT)


@pytest.mark.parametrize(
    "make", [RoundRobinRouter, LeastLoadedRouter, lambda refs: KeyRouter(refs, lambda row: row)]
)
def test_threads_lose_nothing_and_each_pair_has_its_order(make: Any) -> None:
    threads, rows = 4, 2_000
    with ActorSystem() as system:
        kept, refs = keepers(system, 3)
        router = make(refs)

        def send(thread: int) -> None:
            for number in range(rows):
                router.tell((thread, number))

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(send, range(threads)))
        system.drain(LIMIT)
    taken = Counter(message for part in kept for message in part)
    assert taken == Counter((thread, number) for thread in range(threads) for number in range(rows))
    for part in kept:
        for thread in range(threads):
            of_one = [number for sender, number in part if sender == thread]
            assert of_one == sorted(of_one)


@pytest.mark.parametrize("seed", range(20))
def test_a_stopped_actor_is_passed_over_and_its_mailbox_becomes_dead_letters(seed: int) -> None:
    with ManualSystem(seed=seed) as system:
        kept, refs = keepers(system, 3)
        router = RoundRobinRouter(refs)
        router.tell_many(range(30))
        for _ in range(seed % 10):
            system.step()
        refs[0].stop()
        system.run_until_idle()
        dead = system.dead_letters.count
        assert 0 < dead <= 10
        router.tell_many(range(30, 60))
        system.run_until_idle()
        assert system.dead_letters.count == dead
        for ref in refs:
            ref.stop()
        system.run_until_idle()
        router.tell(60)
        system.run_until_idle()
        assert system.dead_letters.count == dead + 1
    assert sum(map(len, kept)) + dead == 60
    assert len(kept[1]) == len(kept[2]) == 25


def test_the_least_loaded_is_the_one_whose_mailbox_is_shortest() -> None:
    with ManualSystem() as system:
        kept: list[list[Any]] = [[] for _ in range(3)]
        refs = [system.spawn(Keep, each, mailbox=BoundedMailbox(100)) for each in kept]
        refs[0].tell_many("aaa")
        refs[1].tell_many("b")
        router = LeastLoadedRouter(refs)
        router.tell_many(range(5))
        system.run_until_idle()
    assert [len(part) for part in kept] == [3, 3, 3]


def test_the_least_loaded_has_the_fewest_asks_without_an_answer(manual: ManualSystem) -> None:
    router = LeastLoadedRouter([manual.spawn(Mute), manual.spawn(Answer, "b")])
    first = [router.ask(0, timeout=5) for _ in range(2)]
    manual.run_until_idle()
    assert [answer.done() for answer in first] == [False, True]
    for _ in range(3):
        answer = router.ask(0, timeout=5)
        manual.run_until_idle()
        assert answer.result(0) == "b"
    manual.advance(3600)


def test_a_recipient_that_raises_keeps_the_message_from_no_other() -> None:
    with ManualSystem() as system:
        kept: list[list[Any]] = [[] for _ in range(2)]
        full = system.spawn(Keep, kept[0], mailbox=BoundedMailbox(1, "fail"))
        router = BroadcastRouter([full, system.spawn(Keep, kept[1])])
        router.tell(0)
        for send in (router.tell, lambda row: router.tell_many([row])):
            with pytest.raises(MailboxFull):
                send(1)
        turns = RoundRobinRouter([full, router.refs[1]])
        with pytest.raises(MailboxFull):
            turns.tell_many([2, 3, 4])
        system.run_until_idle()
    assert kept == [[0], [0, 1, 1, 3]]


def test_a_full_mailbox_is_told_soon() -> None:
    with ManualSystem() as system:
        kept: list[list[Any]] = [[] for _ in range(2)]
        refs = [system.spawn(Keep, each, mailbox=BoundedMailbox(1)) for each in kept]
        for router in (RoundRobinRouter(refs), BroadcastRouter(refs)):
            told = [router.atell(1), router.atell(2), router.atell_many([3, 4, 5, 6])]
            assert not told[-1].done()
            system.run_until_idle()
            for each in told:
                each.result(0)
    assert kept == [[1, 3, 5, 1, 2, 3, 4, 5, 6], [2, 4, 6, 1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize("seed", range(10))
def test_gathering_says_who_did_not_answer(seed: int) -> None:
    with ManualSystem(seed=seed) as system:
        mute, bad = system.spawn(Mute), system.spawn(Answer, ValueError("bad"))
        good, gone = system.spawn(Answer, "g"), system.spawn(Answer, "x")
        gone.stop()
        system.run_until_idle()
        asked = BroadcastRouter([mute, bad, good, gone]).gather(0, timeout=5)
        system.run_until_idle()
        assert not asked.done()
        system.advance(6)
        outcome = asked.result(0)
        assert outcome.answers == {good: "g"}
        assert [*outcome.failures] == [mute, bad, gone]
        kinds = [type(error) for error in outcome.failures.values()]
        assert kinds == [AskTimeout, ValueError, ActorStopped]
        assert not outcome.is_complete
        for timeout in (-1, float("nan")):
            with pytest.raises(
                ValueError, match=r"the timeout of gather\(\) must be a number of sec"
            ):
                BroadcastRouter([good]).gather(0, timeout=timeout)
        complete = BroadcastRouter([good]).gather(0)
        system.run_until_idle()
        assert complete.result(0).is_complete
        system.advance(3600)


def test_stop_stops_each_actor() -> None:
    for make in ROUTERS:
        with ManualSystem() as system:
            _, refs = keepers(system, 2)
            make(refs).stop()
            system.run_until_idle()
            assert not any(ref.is_alive for ref in refs)


def test_stop_after_the_queue_lets_the_actors_handle_what_waits() -> None:
    with ManualSystem() as system:
        kept, refs = keepers(system, 2)
        router = RoundRobinRouter(refs)
        router.tell_many(range(6))
        router.stop(after_queue=True)
        system.run_until_idle()
        assert not any(ref.is_alive for ref in refs)
        assert system.dead_letters.count == 0
    assert kept == [[0, 2, 4], [1, 3, 5]]


def test_a_recipient_without_stop_cannot_be_stopped(manual: ManualSystem) -> None:
    _, (ref,) = keepers(manual, 1)
    inner = RoundRobinRouter([ref])

    class Only:
        tell, tell_many, ask = inner.tell, inner.tell_many, inner.ask

    recipients: list[Any] = [ref, Only()]
    router: Any = RoundRobinRouter(recipients)
    with pytest.raises(TypeError, match="cannot be stopped"):
        router.stop()
    manual.run_until_idle()
    assert ref.is_alive


def test_a_router_is_a_sink() -> None:
    with ActorSystem() as system:
        kept, refs = keepers(system, 2)
        router = RoundRobinRouter(refs)
        assert is_recipient(router)
        run = system.run(entry("numbers").map(lambda row: row * 2).to(router))
        run.send("numbers", [1, 2, 3])
        run.finish()
        system.drain(LIMIT)
    assert sorted(kept[0] + kept[1]) == [2, 4, 6]


def test_a_router_is_an_entry_of_a_server(tmp_path: Path) -> None:
    with ActorSystem() as system:
        router = RoundRobinRouter([system.spawn(Answer, answer) for answer in "ab"])
        server = Server(system, serve_entries({"router": router}), f"unix:{tmp_path}/s")
        with connect(str(server.address)) as connection:
            ref = connection.ref("router")
            assert [ref.ask(0).result(LIMIT) for _ in range(2)] == ["a", "b"]
        server.drain(LIMIT)


def test_routers_say_what_is_wrong(manual: ManualSystem) -> None:
    _, refs = keepers(manual, 2)
    for make in ROUTERS:
        with pytest.raises(ValueError, match="expects at least one ref"):
            make([])
        with pytest.raises(TypeError, match="expects several refs, got 3"):
            make(3)
        with pytest.raises(TypeError, match="expects refs, got 'x'"):
            make([*refs, "x"])
        with pytest.raises(TypeError, match="got 3"):
            make(refs).tell_many(3)
        with pytest.raises(CallboardError, match="was given its refs"):
            make(refs).resize(3)
        router = make(refs)
        assert router.parent is None
        assert copy.copy(router) is copy.deepcopy(router) is router
        assert "2 refs" in repr(router)
        with pytest.raises(TypeError):
            pickle.dumps(router)
    for wrong in (0, 3):
        with pytest.raises(ValueError, match=f"1 to 2 answers, got {wrong}"):
            BroadcastRouter(refs).ask(0, first=wrong)
    with pytest.raises(TypeError, match="first= expects an int, got True"):
        BroadcastRouter(refs).ask(0, first=True)
    with pytest.raises(ValueError, match="twice"):
        BroadcastRouter([*refs, refs[0]])
    with pytest.raises(ConfigError, match="by= expects"):
        KeyRouter(refs, 3)  # type: ignore[arg-type]
    with pytest.raises(CodecError, match="has no 'k'"):
        KeyRouter(refs, "k").tell({})


def test_an_error_of_the_iterable_leaves_what_was_sent() -> None:
    with ManualSystem() as system:
        kept, refs = keepers(system, 2)
        with pytest.raises(ZeroDivisionError):
            RoundRobinRouter(refs).tell_many(6 // number for number in (3, 2, 0, 1))
        system.run_until_idle()
    assert kept == [[2], [3]]


@pytest.mark.parametrize("cls", [RoundRobinRouter, LeastLoadedRouter, KeyRouter, BroadcastRouter])
def test_a_router_that_was_not_initialised_loses_no_message(cls: Any) -> None:
    router = cls.__new__(cls)
    if cls is KeyRouter:
        with pytest.raises(TypeError):
            router.tell(1)  # there is no function for the key
    else:
        for send in (router.tell, router.ask):
            with pytest.raises(RuntimeError, match="has no refs before its __init__"):
                send(1)
    with pytest.raises(RuntimeError, match="has no refs before its __init__"):
        _ = router.refs
    assert repr(router) == f"<{cls.__name__} over 0 refs>"


def test_a_subclass_may_take_other_arguments() -> None:
    class Named(RoundRobinRouter[Any]):
        def __init__(self, name: str, refs: list[Any]) -> None:
            super().__init__(refs)
            self.name_of_mine = name

    with ActorSystem() as system:
        router = Named("first", [system.spawn(Answer, "a")])
        assert router.ask(0).result(LIMIT) == "a"
