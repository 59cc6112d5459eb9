"""Numbers, times and switches that are out of range raise an error with the value.

One value for each call: `tests/core/test_checks.py` has the kinds of values that a check refuses.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorSystem,
    BoundedMailbox,
    ConfigError,
    PriorityMailbox,
    SpawnError,
    Supervision,
)
from callboard.native import Tagged
from callboard.policies import (
    Blocks,
    Fixed,
    LeastLoaded,
    LongestQueue,
    ShortestFirst,
    TwoLevel,
    Weighted,
)
from callboard.scheduling.flow.heuristics import CurrentThroughput, QueueSizeThrottling
from callboard.testing import ManualSystem, Probe, replay


class Scripted(Actor[Callable[[Any], Any]]):
    """Does what a message says."""

    def receive(self, message: Callable[[Any], Any]) -> Any:
        return message(self)


# The times: seconds from 0 to 1e9.
TIMES: dict[str, Callable[[ActorSystem, Any], object]] = {
    "drain": lambda system, time: system.drain(timeout=time),
    "join": lambda system, time: system.join(timeout=time),
    "stop": lambda system, time: system.stop(timeout=time),
    "drain_timeout": lambda system, time: ActorSystem(drain_timeout=time),
    "ask": lambda system, time: system.spawn(Scripted).ask(str, timeout=time),
    "after": lambda system, time: act(system, lambda actor: actor.after(time, "x")),
    "every": lambda system, time: act(system, lambda actor: actor.every(time, "x")),
    "sleep": lambda system, time: act(system, lambda actor: actor.sleep(time)),
    "BoundedMailbox": lambda system, time: BoundedMailbox(1, timeout=time),
    "PriorityMailbox": lambda system, time: PriorityMailbox(abs, 1, timeout=time),
    "window": lambda system, time: Supervision("restart", window=time),
    "backoff": lambda system, time: Supervision("restart", backoff=time),
    "max_backoff": lambda system, time: Supervision("restart", max_backoff=time),
    "LeastLoaded": lambda system, time: LeastLoaded(time),
    "CurrentThroughput": lambda system, time: CurrentThroughput(time),
    "ManualSystem": lambda system, time: ManualSystem(drain_timeout=time),
    "manual drain": lambda system, time: ManualSystem().drain(time),
    "manual join": lambda system, time: ManualSystem().join(time),
    "advance": lambda system, time: ManualSystem().advance(time),
    "run_until": lambda system, time: ManualSystem().run_until(lambda: False, time),
    "Probe": lambda system, time: Probe(system).receive_one(timeout=time),
    "manual probe": lambda system, time: ManualSystem().probe().receive_one(timeout=time),
}


def act(system: ActorSystem, action: Callable[[Any], Any]) -> object:
    return system.spawn(Scripted).ask(action).result(timeout=30)


@pytest.mark.parametrize("use", TIMES.values(), ids=TIMES)
def test_a_time_is_a_finite_number_of_seconds(use: Callable[[ActorSystem, Any], object]) -> None:
    wrong = r"must be a number of seconds .*got nan"
    with ActorSystem() as system, pytest.raises(ValueError, match=wrong):
        use(system, math.nan)


COUNTS: dict[str, Callable[[ActorSystem, Any], object]] = {
    "workers": lambda system, count: ActorSystem(workers=count),
    "quantum": lambda system, count: ActorSystem(quantum=count),
    "BoundedMailbox": lambda system, count: BoundedMailbox(count),
    "PriorityMailbox": lambda system, count: PriorityMailbox(abs, count),
    "limit": lambda system, count: Supervision("restart", limit=count),
    "priority": lambda system, count: system.spawn(Scripted, priority=count),
    "Blocks": lambda system, count: Blocks(count),
    "Fixed": lambda system, count: Fixed(count),
    "TwoLevel": lambda system, count: TwoLevel(count),
    "Weighted": lambda system, count: Weighted(count),
    "ShortestFirst": lambda system, count: ShortestFirst(count),
    "LongestQueue": lambda system, count: LongestQueue(count),
    "QueueSizeThrottling": lambda system, count: QueueSizeThrottling(count),
    "max_steps": lambda system, count: ManualSystem(max_steps=count),
    "run_until_idle": lambda system, count: ManualSystem().run_until_idle(count),
    "seed": lambda system, count: ManualSystem(count),
    "Tagged": lambda system, count: Tagged(count, 1),
    "replay": lambda system, count: replay(count),
}


@pytest.mark.parametrize("use", COUNTS.values(), ids=COUNTS)
def test_a_count_is_a_whole_number_in_range(use: Callable[[ActorSystem, Any], object]) -> None:
    with ActorSystem() as system:
        with pytest.raises((ValueError, SpawnError), match=r"must be a whole number .*, got -10"):
            use(system, -(10**30))
        assert system.actors == []


SWITCHES: dict[str, Callable[[ActorSystem, Any], object]] = {
    "dedicated": lambda system, value: system.spawn(Scripted, dedicated=value),
    "trace": lambda system, value: ManualSystem(trace=value),
}


@pytest.mark.parametrize("use", SWITCHES.values(), ids=SWITCHES)
def test_a_switch_is_true_or_false(use: Callable[[ActorSystem, Any], object]) -> None:
    with ActorSystem() as system:
        with pytest.raises((ValueError, SpawnError), match="must be True or False, got 'no'"):
            use(system, "no")
        assert system.actors == []


def test_more_than_1024_workers_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="workers must be a whole number from 1 to 1024, got 1025"
    ):
        ActorSystem(workers=1025)
