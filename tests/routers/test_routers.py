"""Routers: which ref a message goes to, in which order, and that none is lost."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, AskTimeout
from callboard.recipient import is_recipient
from callboard.remote import Server, connect, serve_entries
from callboard.remote.sharding.keys import shard_of
from callboard.routers import BroadcastRouter, KeyRouter, RoundRobinRouter
from callboard.streams import entry
from callboard.testing import ManualSystem

LIMIT = 30


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


def test_a_key_has_the_ref_that_shards_would_give_it() -> None:
    with ManualSystem() as system:
        kept, refs = keepers(system, 3)
        router = KeyRouter(refs, "user")
        rows = [{"user": f"u{number % 7}", "n": number} for number in range(50)]
        router.tell_many(rows)
        system.run_until_idle()
    for place, part in enumerate(kept):
        assert part == [row for row in rows if shard_of(row["user"], 3) == place]


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
        assert KeyRouter(refs, lambda row: row).ask("k").result(LIMIT) == "ab"[shard_of("k", 2)]


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


@pytest.mark.parametrize("make", [RoundRobinRouter, lambda refs: KeyRouter(refs, lambda row: row)])
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
def test_what_a_stopped_actor_leaves_is_a_dead_letter(seed: int) -> None:
    with ManualSystem(seed=seed) as system:
        kept, refs = keepers(system, 3)
        router = RoundRobinRouter(refs)
        router.tell_many(range(30))
        for _ in range(seed):
            system.step()
        refs[0].stop()
        router.tell_many(range(30, 60))
        system.run_until_idle()
        dead = system.dead_letters.count
    assert sum(map(len, kept)) + dead == 60
    assert len(kept[1]) == len(kept[2]) == 20
    assert dead > 0


def test_stop_stops_each_actor() -> None:
    for make in (RoundRobinRouter, BroadcastRouter, lambda refs: KeyRouter(refs, "k")):
        with ManualSystem() as system:
            _, refs = keepers(system, 2)
            make(refs).stop()
            system.run_until_idle()
            assert not any(ref.is_alive for ref in refs)


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


def test_routers_say_what_is_wrong() -> None:
    with ManualSystem() as system:
        _, refs = keepers(system, 2)
        for make in (RoundRobinRouter, BroadcastRouter, lambda refs: KeyRouter(refs, "k")):
            with pytest.raises(ValueError, match="wants at least one ref"):
                make([])
            with pytest.raises(TypeError, match="wants several refs, not 3"):
                make(3)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="wants refs, not 'x'"):
                make([*refs, "x"])
            with pytest.raises(TypeError, match="not 3"):
                make(refs).tell_many(3)
            router = make(refs)
            assert copy.copy(router) is copy.deepcopy(router) is router
            assert "2 refs" in repr(router)
            with pytest.raises(TypeError):
                pickle.dumps(router)
        for wrong in (0, 3):
            with pytest.raises(ValueError, match=f"1 to 2 answers, not {wrong}"):
                BroadcastRouter(refs).ask(0, first=wrong)
        with pytest.raises(TypeError, match="first wants an int, not True"):
            BroadcastRouter(refs).ask(0, first=True)


def test_an_error_of_the_iterable_leaves_what_was_sent() -> None:
    with ManualSystem() as system:
        kept, refs = keepers(system, 2)
        with pytest.raises(ZeroDivisionError):
            RoundRobinRouter(refs).tell_many(6 // number for number in (3, 2, 0, 1))
        system.run_until_idle()
    assert kept == [[2], [3]]
