"""Random programs, under seeded replay and on real threads."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.testing import ManualSystem
from tests.actors.laws import check_at_end, check_idle
from tests.actors.programs import TICK, Outsider, Program, Script, World
from tests.actors.strategies import programs
from tests.tokenless import tokenless

pytestmark = pytest.mark.usefixtures("quiet")


def run_under_seed(program: Program, seed: int) -> World:
    """Run a program on a manual system; the outside threads take turns as the seed says."""
    turns = random.Random(seed)
    system = ManualSystem(seed, max_steps=100_000)
    world = World(system)
    for kind in program.actors:
        world.spawn(system, kind)
    waiting = [(Outsider(world), list(script)) for script in program.outside]
    while waiting:
        outsider, script = turns.choice(waiting)
        if script:
            outsider.play(script.pop(0))
        else:
            waiting.remove((outsider, script))
        for _ in range(turns.choice([0, 1, 2, 5, 20])):
            system.step()
        if turns.random() < 0.1:
            system.advance(TICK)
    system.advance(1_000 * TICK)
    check_idle(world)
    system.stop()
    check_at_end(world)
    return world


@given(program=programs(threads=2, dedicated=True), seed=st.integers(0, 2**64 - 1))
def test_the_laws_hold_under_every_seed(program: Program, seed: int) -> None:
    run_under_seed(program, seed)


@given(program=programs(threads=2, dedicated=True), seed=st.integers(0, 2**64 - 1))
def test_two_runs_of_a_program_under_one_seed_agree(program: Program, seed: int) -> None:
    first, second = run_under_seed(program, seed), run_under_seed(program, seed)
    assert isinstance(first.system, ManualSystem)
    assert isinstance(second.system, ManualSystem)
    assert first.system.trace == second.system.trace


@pytest.mark.parametrize("threading_model", ["dynamic", "assigned"])
@pytest.mark.parametrize(
    ("workers", "make"),
    [(1, ActorSystem), (2, ActorSystem), (2, tokenless), (4, ActorSystem), (4, tokenless)],
)
@given(program=programs(threads=3, dedicated=True))
@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])  # threads do nothing twice alike
def test_the_laws_hold_on_threads(
    workers: int, make: Callable[..., ActorSystem], threading_model: str, program: Program
) -> None:
    system = make(workers=workers, threading=threading_model, quantum=4)
    world = World(system)
    for kind in program.actors:
        world.spawn(system, kind)
    threads = [
        threading.Thread(target=play_all, args=(Outsider(world), script))
        for script in program.outside
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    system.drain(timeout=30.0)
    if not any(message.late for message in world.sent):  # timers may still fire
        check_idle(world)
    system.stop()
    if (timers := system._runtime.timers._thread) is not None:
        timers.join(30)  # it may be in the middle of a late message
    check_at_end(world)


def play_all(outsider: Outsider, script: Script) -> None:
    for deed in script:
        outsider.play(deed)
