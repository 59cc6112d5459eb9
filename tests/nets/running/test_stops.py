"""Runs that end at any moment, with boxes of all kinds: nothing hangs, and no record is lost.

Threads send, tell and ask, and another takes outputs. At a call of a box that is drawn beforehand,
the run or its system ends in one of many ways. Then each record is an output, a dead letter, in an
error, or was swallowed by a box.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from callboard import ActorStopped, ActorSystem, CallboardError, DeadLetter
from callboard.nets import (
    BoxError,
    Net,
    NetEnded,
    NetError,
    NetRun,
    NetTimeout,
    box,
    choice,
    ordered,
    split,
    star,
    sync,
)
from callboard.nets import filter as filtering
from tests.nets.running.gate import TIMEOUT, values_of, within

KINDS = ["plain", "generator", "async", "async generator", "object"]
OPTIONS: list[dict[str, Any]] = [
    {},
    {},
    {"threads": True},
    {"threads": True, "concurrency": 3},
    {"dedicated": True},
    {"concurrency": 2},
    {"retries": 1, "backoff": 0.0},
    {"timeout": 60.0},
]
NOT_SHRUNK = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])  # threads differ
EACH = 12  # records of each feeder
FEEDERS = ["send", "tell", "tell_many", "ask"]
ENDS = ["cancel", "stop", "leave", "leave the system", "fail", "finish", "give up", "exit"]


class Ended(Exception):
    """The test leaves a block by this."""


@dataclass
class World:
    """What the boxes of an example do, and have done."""

    calls_until_end: int
    fails: bool
    calls: int = 0
    is_due: threading.Event = field(default_factory=threading.Event)
    swallowed: list[int] = field(default_factory=list)
    tried: Counter[tuple[str, int]] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pass_on(self, name: str, retries: int, x: int) -> int | None:
        """Do a box's work: hand a record on, or swallow it, skip it, or fail the run."""
        with self.lock:
            self.calls += 1
            calls = self.calls
            self.tried[name, x] += 1
            tried = self.tried[name, x]
        if calls >= self.calls_until_end:
            self.is_due.set()
            if self.fails:
                self.fails = False
                raise SystemExit(x)  # which is not skipped
        if x % 11 == 3:
            self.swallowed.append(x)
            return None
        if x % 5 == 4 and tried <= retries:
            raise ConnectionError(x)
        if x % 13 == 5:
            raise ValueError(x)
        return x

    def box(self, kind: str, options: dict[str, Any], name: str) -> Net:
        """Make a box."""
        retries = options.get("retries", 0)
        if "async" in kind:
            options = {key: options[key] for key in options if key not in ("threads", "dedicated")}

        def plain(x: int) -> int | None:
            return self.pass_on(name, retries, x)

        def generator(x: int) -> Iterator[int | None]:
            yield self.pass_on(name, retries, x)

        async def coroutine(x: int) -> int | None:
            await asyncio.sleep(0)
            return self.pass_on(name, retries, x)

        async def async_generator(x: int) -> AsyncIterator[int | None]:
            await asyncio.sleep(0)
            yield self.pass_on(name, retries, x)

        class Object:
            def __call__(self, x: int) -> int | None:
                return plain(x)

        functions: dict[str, Any] = {
            "plain": plain,
            "generator": generator,
            "async": coroutine,
            "async generator": async_generator,
            "object": Object,
        }
        return box(functions[kind], "(x) -> (x)", name=name, errors="skip", **options)


@st.composite
def recipes(draw: st.DrawFn) -> Any:
    """Draw how a net is made, as nested lists."""
    boxes = st.tuples(st.just("box"), st.sampled_from(KINDS), st.sampled_from(OPTIONS))
    return draw(
        st.recursive(
            boxes,
            lambda inner: st.one_of(
                st.tuples(st.just("serial"), inner, inner),
                st.tuples(st.just("choice"), inner, inner, st.booleans()),
                st.tuples(st.just("star"), inner, st.booleans()),
                st.tuples(st.just("split"), inner, st.booleans()),
                st.tuples(st.just("ordered"), inner),
                st.tuples(st.just("cell"), inner),
                st.tuples(st.just("placed"), inner),
            ),
            max_leaves=4,
        )
    )


def made(world: World, recipe: Any, names: Iterator[int]) -> Net:
    """Make the net of a recipe. It takes and puts out records {x, <k>}."""
    match recipe:
        case "box", kind, options:
            return world.box(kind, options, f"box{next(names)}")
        case "serial", first, second:
            return made(world, first, names) >> made(world, second, names)
        case "choice", first, second, keeps_order:
            branches = made(world, first, names), made(world, second, names)
            return choice(*branches, ties="fair", ordered=keeps_order)
        case "star", inner, keeps_order:
            stage = made(world, inner, names) >> filtering("{x} -> {y=x}")
            return star(stage, "{y}", ordered=keeps_order) >> filtering("{y} -> {x=y}")
        case "split", inner, keeps_order:
            return split(made(world, inner, names), "<k>", ordered=keeps_order)
        case "ordered", inner:
            return ordered(made(world, inner, names))
        case "cell", inner:
            return split(sync("{x}", "{never}"), "<k>") >> made(world, inner, names)
        case "placed", inner:
            return made(world, inner, names).at(1)
    raise AssertionError(recipe)


class Feeder:
    """A thread that feeds a run, and what became of its records as far as it was told."""

    def __init__(self, how: str, run: NetRun, first: int) -> None:
        self.ids = range(first, first + EACH)
        self.refused: list[int] = []  # named in an error of send()
        self.asked: list[tuple[int, Any]] = []
        self.ended = within(getattr(self, how), run)

    def rows(self) -> list[dict[str, Any]]:
        """Return the feeder's records."""
        return [{"x": x, "<k>": x % 3} for x in self.ids]

    def send(self, run: NetRun) -> None:
        """Send a few records at a time."""
        left = self.rows()
        try:
            while left:
                rows, left = left[:5], left[5:]
                run.send(rows, timeout=TIMEOUT)
        except NetError as error:
            self.refused = values_of(error.unsent + left, "x")  # type: ignore[attr-defined]

    def tell(self, run: NetRun) -> None:
        """Tell the run one record after the other."""
        for row in self.rows():
            run.tell(row)

    def tell_many(self, run: NetRun) -> None:
        """Tell the run all records."""
        run.tell_many(self.rows())

    def ask(self, run: NetRun) -> None:
        """Ask for the outputs of each record."""
        for row in self.rows():
            self.asked.append((row["x"], run.ask(row)))


def wait_for(feeding: list[Feeder], world: World) -> None:
    """Wait until all is fed; then it is time for the end, too."""
    for each in feeding:
        each.ended.result(TIMEOUT)
    world.is_due.set()


def take(run: NetRun, most: int, into: list[Any]) -> None:
    """Take outputs, so many at most."""
    with suppress(NetError):
        for record in run.results(limit=3):
            into.append(record)
            if len(into) >= most:
                return


def end_it(end: str, system: ActorSystem, run: NetRun, outputs: list[Any]) -> None:
    """End a run, or its system."""
    match end:
        case "cancel":
            run.cancel(TIMEOUT)
        case "stop":
            system.stop(TIMEOUT)
        case "leave":
            with pytest.raises(Ended), run:
                raise Ended
        case "leave the system":
            with system:
                pass
        case "exit":
            with pytest.raises(Ended), system:
                raise Ended
        case "finish" | "fail":
            with suppress(NetError):
                outputs += run.finish(TIMEOUT)
        case "give up":
            try:
                outputs += run.finish(0.0)
            except NetTimeout:
                with suppress(NetError):
                    outputs += run.finish(TIMEOUT)


@NOT_SHRUNK
@given(
    recipe=recipes(),
    end=st.sampled_from(ENDS),
    calls=st.integers(0, 120),
    window=st.sampled_from([1, 2, 256]),
    feeders=st.lists(st.sampled_from(FEEDERS), min_size=1, max_size=3),
    taken=st.sampled_from([0, 0, 1, 5, 1000]),
    workers=st.integers(1, 2),
)
def test_no_record_is_lost_and_nothing_hangs_when_a_run_ends(
    recipe: Any, end: str, calls: int, window: int, feeders: list[str], taken: int, workers: int
) -> None:
    world = World(calls, end == "fail")
    letters: list[DeadLetter] = []
    outputs: list[Any] = []
    finished: list[Any] = []
    system = ActorSystem(workers=workers, drain_timeout=TIMEOUT)
    system.dead_letters.subscribe(letters.append)
    run = system.run(made(world, recipe, iter(range(100))), window=window)
    feeding = [Feeder(how, run, 1000 * number) for number, how in enumerate(feeders)]
    taking = within(take, run, taken, outputs) if taken else None
    all_fed = within(wait_for, feeding, world)
    assert world.is_due.wait(TIMEOUT)
    end_it(end, system, run, finished)
    all_fed.result(TIMEOUT)
    with suppress(CallboardError):
        run.cancel(TIMEOUT)
    if taking is not None:
        taking.result(TIMEOUT)
    system.stop(TIMEOUT)
    check(feeding, [*outputs, *finished], letters, world)
    assert_others_run(workers)


def check(
    feeding: list[Feeder], outputs: list[Any], letters: list[DeadLetter], world: World
) -> None:
    """Check that each record is somewhere, and in one place."""
    assert {letter.reason for letter in letters} <= {
        "skipped",
        "stopped",
        "failed",
        "unpaired",
        "uncollected",
    }
    found = Counter(values_of(outputs, "x"))
    found.update(letter.message["x"] for letter in letters)
    lost = Counter[int]()
    for feeder in feeding:
        lost.update(feeder.ids)
        lost.subtract(feeder.refused)
        for x, answer in feeder.asked:
            found[x] += answered(answer, x, found[x])
    lost.subtract(found)
    assert set(lost.values()) <= {0, 1}, (lost, letters)
    assert set(lost.elements()) <= set(world.swallowed)


def answered(answer: Any, x: int, in_letters: int) -> int:
    """Look at the future of an ask; count its record, unless that is a dead letter, too."""
    error = answer.exception(TIMEOUT)
    if error is not None:
        assert isinstance(error, (BoxError, NetEnded, ActorStopped))
        return 1 - in_letters
    records = answer.result()
    assert values_of(records, "x") in ([], [x])
    return len(records)


def assert_others_run(workers: int) -> None:
    """Check that a second system works as if there had been no other."""

    async def double(x: int) -> int:
        return 2 * x

    with ActorSystem(workers=workers) as system:
        net = box(double, "(x) -> (y)") >> box(lambda y: y, "(y) -> (z)", threads=True)
        run = system.run(net)
        assert run.ask({"x": 4}).result(TIMEOUT) == [{"z": 8}]
        assert run.finish(TIMEOUT) == []


@NOT_SHRUNK
@given(recipe=recipes(), feeders=st.lists(st.sampled_from(FEEDERS), min_size=1, max_size=2))
def test_a_run_that_everybody_has_dropped_comes_to_its_end(recipe: Any, feeders: list[str]) -> None:
    world = World(1_000_000, False)
    letters: list[DeadLetter] = []
    with ActorSystem(workers=2) as system:
        system.dead_letters.subscribe(letters.append)

        def feed() -> list[Feeder]:
            run = system.run(made(world, recipe, iter(range(100))))
            feeding = [Feeder(how, run, 1000 * number) for number, how in enumerate(feeders)]
            for each in feeding:
                each.ended.result(TIMEOUT)
            return feeding

        feeding = feed()
        deadline = time.monotonic() + 60
        while not system.join(0.05):  # a thread may keep the run a little longer
            assert time.monotonic() < deadline
            gc.collect()
        check(feeding, [], letters, world)
        assert {letter.reason for letter in letters} <= {"skipped", "unpaired", "uncollected"}
