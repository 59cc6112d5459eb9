"""Streams of actors that feed one summary."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from callboard import ActorStopped, ActorSystem, BoundedMailbox
from callboard.frequency import FrequencyActors
from callboard.frequency.space_saving import DESIGNS
from callboard.testing import ManualSystem, replay
from tests.frequency.test_bounds import hold


@pytest.fixture(params=[1, 2, 4])
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    with ActorSystem(workers=request.param) as system:
        yield system


@pytest.mark.parametrize("design", ["auto", *DESIGNS])
def test_arrays_of_all_streams_are_counted_while_the_summary_is_asked(
    system: ActorSystem, design: str
) -> None:
    actors = FrequencyActors(system, 0.001, streams=5, design=design)
    exact: Counter[int] = Counter()
    for index in range(50):
        keys = np.random.default_rng(index).integers(0, 3000, 2000) ** 2 // 3000
        exact.update(keys.tolist())
        actors.tell(keys, stream=index % 5)
        assert len(actors.summary.top(10)) <= 10
    actors.flush(60)
    hold(actors.summary, exact, adds_up=False)


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ("a", {"a": 1}),
        (7, {7: 1}),
        (["a", b"a", ("a", 1)], {"a": 1, b"a": 1, ("a", 1): 1}),
        ([5, 5, -(2**63)], {5: 2, -(2**63): 1}),
        ({"a": 3, "b": 0}, {"a": 3}),
        (lambda: (key for key in "abca"), {"a": 2, "b": 1, "c": 1}),
        (np.array([3, 3], dtype=np.int8), {3: 2}),
        (np.array([2.5], dtype=object), {2.5: 1}),
        ([0.5, "a"], {0.5: 1, "a": 1}),
        ([], {}),
        (["x" * 100_000, "ä漢"], {"x" * 100_000: 1, "ä漢": 1}),
    ],
)
def test_actors_count_all_that_a_summary_takes(
    system: ActorSystem, told: Any, counts: dict[Any, int]
) -> None:
    actors = FrequencyActors(system, 0.1, streams=2)
    actors.tell(told() if callable(told) else told, stream=1)
    actors.flush(60)
    assert {each.key: each.count for each in actors.summary} == counts


def test_keys_of_all_sorts_may_follow_each_other(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.01, streams=3)
    exact: Counter[Any] = Counter()
    for keys in ([1, 2], np.array([2, 3]), ["a", 2], [("a", 2)], [0.5, 2], [2, "a"], np.array([2])):
        for stream in range(3):
            actors.tell(keys, stream=stream)
            exact.update(keys.tolist() if isinstance(keys, np.ndarray) else keys)
    actors.flush(60)
    hold(actors.summary, exact)
    assert actors.summary.estimate(2).count == 18


def test_weights_come_along(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.1, streams=1)
    actors.tell(["a", "b", "c"], [3, 0, 2**40])
    actors.tell([1, 2], [5, 6])
    actors.tell("a", 4)
    actors.flush(60)
    assert {each.key: each.count for each in actors.summary} == {"a": 7, "c": 2**40, 1: 5, 2: 6}


def test_refs_take_integers_and_memory(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.1, streams=1)
    [ref] = actors.refs
    ref.tell(5)
    ref.tell(np.array([5, 6]))
    assert ref.ask(np.array([7, 7])).result(60) == 2
    assert {each.key: each.count for each in actors.summary} == {5: 2, 6: 1, 7: 2}


@pytest.mark.parametrize("wrong", [1.5, np.array([1.5]), memoryview(b"abcd").cast("f")])
def test_a_value_that_is_not_a_key_is_refused_and_the_next_one_counted(
    system: ActorSystem, wrong: Any
) -> None:
    actors = FrequencyActors(system, 0.1, streams=1)
    [ref] = actors.refs
    with pytest.raises(TypeError, match="keys expect"):
        ref.ask(wrong).result(60)
    actors.tell("a")
    actors.flush(60)
    assert actors.summary.top(5) == [("a", 1, 0)]
    assert actors.summary.total == 1


def test_more_than_63_bits_are_refused(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.1, streams=1)
    actors.tell(["a"], [2**63 - 1])
    actors.flush(60)
    with pytest.raises(ValueError, match=r"counts are at most 2\*\*63 - 1"):
        actors.refs[0].ask(1).result(60)
    assert actors.summary.total == 2**63 - 1


@pytest.mark.parametrize("stream", [-1, 2, 0.5, "a"])
def test_a_stream_that_there_is_not_is_refused(system: ActorSystem, stream: Any) -> None:
    actors = FrequencyActors(system, 0.1, streams=2)
    with pytest.raises(ValueError, match="a stream must be a whole number from 0 to 1"):
        actors.tell("a", stream=stream)


@pytest.mark.parametrize("streams", [0, -1, 10**9, 1.5])
def test_a_number_of_streams_has_bounds(system: ActorSystem, streams: Any) -> None:
    with pytest.raises(ValueError, match="streams must be a whole number from 1 to 100000"):
        FrequencyActors(system, 0.1, streams=streams)


def test_a_value_that_cannot_be_counted_is_refused_where_it_is_told(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.1, streams=1)
    for wrong, error in ((["a", []], TypeError), ([float("nan")], ValueError)):
        with pytest.raises(error):
            actors.tell(wrong)
    actors.flush(60)
    assert actors.summary.total == 0


def test_a_group_stops_and_leaves_the_summary(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.01, streams=4, name="counting")
    for index in range(100):
        actors.tell([index % 7], stream=index % 4)
    actors.flush(60)
    actors.stop()
    system.drain(60)
    assert actors.summary.total == 100
    with pytest.raises(ActorStopped):
        actors.flush(60)


def test_a_full_mailbox_holds_the_sender_up_and_loses_nothing(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.01, streams=2, mailbox=BoundedMailbox(2, overflow="block"))
    for index in range(500):
        actors.tell([index % 11] * 3, stream=index % 2)
    actors.flush(60)
    assert actors.summary.total == 1500


@replay(20)
def test_counts_do_not_depend_on_the_order_of_dispatches(seed: int) -> None:
    with ManualSystem(seed=seed, quantum=1) as system:
        actors = FrequencyActors(system, 0.05, streams=4)
        for index in range(12):
            actors.tell([index % 5, "a"], stream=index % 4)
        system.run_until_idle()
        assert {each.key: each.count for each in actors.summary} == {
            "a": 12,
            0: 3,
            1: 3,
            2: 2,
            3: 2,
            4: 2,
        }


def test_weights_beyond_63_bits_are_refused_where_they_are_told(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.1, streams=1)
    with pytest.raises(ValueError, match=r"counts are at most 2\*\*63 - 1"):
        actors.tell({"a": 2**63 - 1, "b": 2**63 - 1, "c": 3})
    actors.flush(60)
    assert actors.summary.total == 0


def test_an_ask_is_answered_with_how_many_keys_there_were(system: ActorSystem) -> None:
    actors = FrequencyActors(system, 0.1, streams=1)
    [ref] = actors.refs
    assert ref.ask(np.array([1, 2, 3])).result(60) == 3
    assert ref.ask(np.array([1, 2], dtype=np.int32)).result(60) == 2
    assert ref.ask(7).result(60) == 1


def test_a_column_of_codes_is_counted_by_its_dictionary(system: ActorSystem) -> None:
    pa = pytest.importorskip("pyarrow")
    actors = FrequencyActors(system, 0.1, streams=1)
    [ref] = actors.refs
    assert ref.ask(pa.array(["a", "b", "a"]).dictionary_encode()).result(60) == 3
    assert ref.ask(pa.array(["a", "c"])).result(60) == 2
    assert {each.key: each.count for each in actors.summary} == {"a": 3, "b": 1, "c": 1}
