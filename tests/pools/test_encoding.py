"""Values that travel to a pool's processes, their encoding, and the arguments of `pool()`."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorSystem,
    CallboardError,
    SpawnError,
)
from callboard.remote.errors import CodecError, RemoteCallError
from callboard.routers import LeastLoadedRouter
from callboard.testing import ManualSystem
from tests.pools.conftest import LIMIT, letters
from tests.pools.workers import Called, Odd, OneWay, Point, Unregistered, Work


def test_types_travel_by_name(system: ActorSystem, tmp_path: Path) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1, types=[Point])
    assert pool.ask(Point(1, 2)).result(LIMIT) == Point(1, 2)
    with pytest.raises(CodecError, match=r"workers\.Unregistered cannot be encoded"):
        pool.ask(Unregistered(1))
    named = system.pool(Work, str(tmp_path), processes=1, types={"P": Point})
    assert named.ask(Point(1, 2)).result(LIMIT) == Point(1, 2)


def test_other_values_are_pickled_only_on_request(system: ActorSystem, tmp_path: Path) -> None:
    with pytest.raises(CodecError, match="cannot be encoded"):
        system.pool(Work, tmp_path, processes=1)  # type: ignore[arg-type]
    pool = system.pool(Work, tmp_path, processes=1, pickle=True)  # type: ignore[arg-type]
    value = {"a": Unregistered(3), "b": [range(5), complex(1, 2), Counter("aab")]}
    assert pool.ask(value).result(LIMIT) == value
    with pytest.raises(CodecError, match="cannot be encoded"):
        pool.ask(lambda: None)
    pool.tell(Unregistered(4))
    system.drain(LIMIT)


def test_an_actors_arguments_are_not_taken_for_the_pools_options(system: ActorSystem) -> None:
    with pytest.raises(SpawnError, match=r"pool\(\) cannot tell whether name='x' is its option"):
        system.pool(Called, processes=1, name="x")  # type: ignore[arg-type]
    pool = system.pool(partial(Called, name="Ada", types=3), processes=1, name="x")
    assert pool.parent is not None
    assert (pool.parent.path, pool.ask("?").result(LIMIT)) == ("/x", ["Ada", 3, "none"])


def test_a_pool_says_what_is_wrong(system: ActorSystem, tmp_path: Path) -> None:
    class Local(Actor[Any]):
        def receive(self, message: Any) -> None: ...

    folder = str(tmp_path)
    with pytest.raises(SpawnError, match="Local is defined in a function: define it in a module"):
        system.pool(Local, processes=1)
    with pytest.raises(SpawnError, match="expects a subclass of Actor, got 3"):
        system.pool(3, processes=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="processes must be a whole number of at least 1, got 0"):
        system.pool(Work, folder, processes=0)
    with pytest.raises(SpawnError, match="did you mean 'factor'"):
        system.pool(Work, folder, facto=2, processes=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="expected a class of routers"):
        system.pool(Work, folder, processes=1, router=3)
    with pytest.raises(TypeError, match="not both"):
        system.pool(Work, folder, processes=1, router=LeastLoadedRouter, by="key")
    with pytest.raises(ValueError, match="pickle must be True or False"):
        system.pool(Work, folder, processes=1, pickle="yes")  # type: ignore[arg-type]
    with pytest.raises(SpawnError, match="expects a BoundedMailbox or a PriorityMailbox"):
        system.pool(Work, folder, processes=1, mailbox=5)  # type: ignore[arg-type]
    with pytest.raises(SpawnError, match="dedicated must be True or False, got 'yes'"):
        system.pool(Work, folder, processes=1, dedicated="yes")  # type: ignore[arg-type]
    with pytest.raises(CallboardError, match="nowhere"):
        system.pool(Work, folder, processes=1, placement="nowhere")
    with pytest.raises(ValueError, match=r"processes=3 is not within elastic=\(1, 2\)"):
        system.pool(Work, folder, processes=3, elastic=(1, 2))
    with ManualSystem() as manual, pytest.raises(CallboardError, match="has no processes"):
        manual.pool(Work, folder, processes=1)
    assert system.actors == []


def test_a_class_that_has_another_name_is_not_found(system: ActorSystem) -> None:
    other = type("Other", (Work,), {"__module__": Work.__module__})
    with pytest.raises(SpawnError, match=r"workers\.Other cannot be found by its name"):
        system.pool(other, "folder", processes=1)


def test_an_answer_that_raises_no_exception_fails_its_ask_alone(system: ActorSystem) -> None:
    pool = system.pool(Odd, processes=1, pickle=True)
    before = pool.ask(1)
    with pytest.raises(RemoteCallError, match="cannot be encoded: not here"):
        pool.ask("unpicklable").result(LIMIT)
    asked = [pool.ask(message) for message in (2, "undecodable", 3)]
    with pytest.raises(CodecError, match="cannot be decoded: SystemExit: not here"):
        asked[1].result(LIMIT)
    assert [one.result(LIMIT) for one in (before, asked[0], asked[2], pool.ask(4))] == [1, 2, 3, 4]


def test_a_dead_letter_that_cannot_be_decoded_here_has_its_text(system: ActorSystem) -> None:
    found = letters(system)
    pool = system.pool(Odd, processes=1, pickle=True)
    pool.tell(OneWay())
    system.drain(LIMIT)
    assert [(letter.message, letter.reason, str(letter.error)) for letter in found] == [
        ("OneWay()", "failed", "ValueError: of one way")
    ]
