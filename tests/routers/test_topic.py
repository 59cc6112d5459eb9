"""Topics: publish and subscribe."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.routers import Subscribe, Topic, Unsubscribe
from callboard.testing import ManualSystem
from tests.routers.test_routers import LIMIT, keepers


@pytest.mark.parametrize("seed", range(10))
def test_subscribers_get_the_classes_that_they_want_once(seed: int) -> None:
    with ManualSystem(seed=seed) as system:
        kept, (texts, numbers, everything) = keepers(system, 3)
        topic = system.spawn(Topic)
        topic.tell_many([Subscribe(texts, str), Subscribe(numbers, int), Subscribe(numbers, bool)])
        topic.tell(Subscribe(everything))
        topic.tell_many(["a", 1, True, 2.5, "b"])
        system.run_until_idle()
    assert kept == [["a", "b"], [1, True], ["a", 1, True, 2.5, "b"]]


def test_no_more_messages_after_unsubscribing_or_the_end() -> None:
    with ManualSystem() as system:
        kept, (first, second) = keepers(system, 2)
        topic = system.spawn(Topic)
        topic.tell_many([Subscribe(first), Subscribe(second), 1, Unsubscribe(first), 2])
        topic.tell(Unsubscribe(first))
        system.run_until_idle()
        second.stop()
        system.run_until_idle()
        topic.tell(3)
        system.run_until_idle()
        assert system.dead_letters.count == 0
    assert kept == [[1], [1, 2]]


def test_each_publisher_has_its_order() -> None:
    with ActorSystem() as system:
        kept, refs = keepers(system, 2)
        topic = system.spawn(Topic)
        topic.tell_many([Subscribe(ref) for ref in refs])

        def publish(thread: int) -> None:
            for number in range(500):
                topic.tell((thread, number))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(publish, range(4)))
        system.drain(LIMIT)
    for part in kept:
        assert len(part) == 2_000
        for thread in range(4):
            assert [number for sender, number in part if sender == thread] == list(range(500))


def test_subscriptions_say_what_is_wrong() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="wants a ref, not 3"):
        Subscribe(wrong)
    with ManualSystem() as system:
        _, refs = keepers(system, 1)
        with pytest.raises(TypeError, match="wants a class, not 3"):
            Subscribe(refs[0], wrong)
