"""`processes="auto"` for operators with a state, which moves while rows pass."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem, Future
from callboard.core.threads.interpreter import has_gil
from callboard.streams import Graph, RunEnded, RunTimeout, Snapshot, entry
from callboard.streams.processes.choice import ChosenSegment
from callboard.streams.processes.chosen_states import ChosenStates
from callboard.streams.processes.rate_trial import RateTrial
from callboard.streams.processes.segments import States
from callboard.streams.snapshots.cut import Cut
from callboard.worker_processes import processes as running
from callboard.worker_processes.processes import WorkerProcesses
from tests.streams.in_processes import Picky, options
from tests.streams.process_oracles import (
    check_failures,
    check_graph,
    check_parts,
    of_few,
    with_fixtures,
)
from tests.streams.random_graphs import Case, cases, fragile_chains, rows
from tests.streams.shapes import Chain
from tests.streams.test_process_states import Summing, cuts, remainder

pytestmark = pytest.mark.skipif(not has_gil(), reason="threads run Python side by side here")


@pytest.fixture(scope="module")
def systems(root: Path) -> Iterator[list[ActorSystem]]:
    """Systems with "auto" of two and three cores, and one without processes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(root))
        made = []
        for cores in (2, 3):
            patched.setattr(running, "usable_cores", lambda cores=cores: cores)
            made.append(ActorSystem(processes="auto"))
            made[-1].__enter__()
            made[-1].run(entry("rows", int).map(abs).collect()).finish()  # it notes the cores
        with made[0], made[1], ActorSystem() as none:
            yield [*made, none]


@pytest.fixture
def system(systems: list[ActorSystem]) -> ActorSystem:
    return systems[0]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.syspath_prepend(str(root))
    monkeypatch.setattr(running, "usable_cores", lambda: 2)


@pytest.fixture
def may_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let states move at once, whatever that costs."""
    monkeypatch.setattr(ChosenStates, "_may_go", lambda states: True)
    monkeypatch.setattr(ChosenStates, "_least", lambda states: 0)


Choose = Callable[[Callable[[Any, int], bool]], None]


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch, may_move: None) -> Choose:
    """Let a function of the segment and the number of its round choose where further rounds run."""

    def choose_by(is_here: Callable[[Any, int], bool]) -> None:
        def chosen(segment: Any, *_: int) -> None:
            seen[segment] = seen.get(segment, 0) + 1
            segment.is_here = is_here(segment, seen[segment])

        seen: dict[Any, int] = {}
        monkeypatch.setattr(ChosenStates, "_compare", chosen)
        monkeypatch.setattr(ChosenSegment, "_choose", chosen)

    return choose_by


@pytest.fixture
def changes(choose: Choose) -> None:
    """Have segments change their place after each second round that they see."""
    choose(lambda segment, number: segment.is_here ^ (number % 2 == 0))


def move_and_name(state: Any, row: int) -> tuple[int, int]:
    return (state[0] if state else 0) + row, os.getpid()


@with_fixtures
@given(cases(awaits=True), options)
def test_random_graphs_whose_states_move_equal_a_sequential_run(
    system: ActorSystem, changes: None, case: Case, options: dict[str, Any]
) -> None:
    check_graph(system, case, options)


@with_fixtures
@given(fragile_chains(), rows, options)
def test_random_failures_come_where_a_sequential_run_has_them(
    system: ActorSystem, changes: None, chain: Chain, rows: list[Any], options: dict[str, Any]
) -> None:
    check_failures(system, chain, rows, options)


@of_few
@given(cases(awaits=True), cuts, st.lists(options, min_size=2, max_size=2), st.integers(0, 2))
def test_random_graphs_go_on_from_snapshots_taken_between_moves(
    systems: list[ActorSystem],
    changes: None,
    case: Case,
    cuts: list[int],
    options: list[dict[str, Any]],
    first: int,
) -> None:
    check_parts(systems, first, case, cuts, options)


def graph_of(keyed: bool, function: Any = move_and_name) -> Graph[Any]:
    source: Any = entry("rows", int)
    if keyed:
        return source.key_by(remainder).scan(None, function, name="moving").collect()  # type: ignore[no-any-return]
    return source.scan(None, function, name="moving").collect()  # type: ignore[no-any-return]


def len_of(row: tuple[int, list[int]]) -> int:
    return len(row[1])


def totals(rows: int, keyed: bool) -> list[int]:
    return [sum(range(row % 7, row + 1, 7) if keyed else range(row + 1)) for row in range(rows)]


def places_of(found: list[Any], keyed: bool) -> list[bool]:
    return [(row[1][1] if keyed else row[1]) == os.getpid() for row in found]


@pytest.mark.parametrize("keyed", [False, True])
def test_a_state_moves_and_returns_with_each_row(
    system: ActorSystem, choose: Choose, keyed: bool
) -> None:
    choose(lambda segment, number: number % 2 == 0)
    made = system.run(graph_of(keyed), batch_size=1, window=1)  # no round ahead of its turn
    made.send("rows", range(100), timeout=60)
    found = made.finish(timeout=60)
    places = places_of(found, keyed)
    assert places == [row % 2 == 0 for row in range(100)]
    assert [row[1][0] if keyed else row[0] for row in found] == totals(100, keyed)
    assert "a state of " in made.statistics().operators[0].reason


@pytest.mark.parametrize("keyed", [False, True])
def test_processes_that_are_killed_lose_and_double_nothing(
    system: ActorSystem, choose: Choose, keyed: bool
) -> None:
    choose(lambda segment, number: number // 25 % 3 == 2)
    rows = 1000
    made = system.run(graph_of(keyed), batch_size=4, window=4)
    results = made.results(limit=64)
    sending = threading.Thread(target=made.send, args=("rows", range(rows)))
    sending.start()
    found: list[Any] = []
    killed = set()
    while len(found) < rows:
        found.append(next(results))
        process = found[-1][1][1] if keyed else found[-1][1]
        if len(found) % 200 == 0 and process != os.getpid():
            os.kill(process, signal.SIGKILL)
            killed.add(process)
    sending.join()
    made.finish(timeout=60)
    assert [row[1][0] if keyed else row[0] for row in found] == totals(rows, keyed)
    assert killed


def test_hot_keys_are_counted_in_both_places(system: ActorSystem, changes: None) -> None:
    made = system.run(graph_of(keyed=True), batch_size=2, hot_keys=2)
    made.send("rows", [3] * 20 + [4] * 10 + [5])
    made.finish(timeout=60)
    (moving, _) = made.statistics().operators
    assert [(one.key, one.count) for one in moving.hot_keys] == [(3, 20), (4, 10)]


def appended(rows: list[int], row: int) -> list[int]:
    rows.append(row)
    return rows


@pytest.mark.parametrize("moves", [False, True])
def test_a_snapshot_that_is_encoded_while_states_change_is_the_one_of_its_cut(
    system: ActorSystem, choose: Choose, monkeypatch: pytest.MonkeyPatch, moves: bool
) -> None:
    if not moves:  # for a move that is given up because it would cost too much
        monkeypatch.setattr(ChosenStates, "_least", lambda states: 1e18)
    choose(lambda segment, number: number == 1)
    none: list[int] = []
    graph = entry("rows", int).key_by(remainder).scan(none, appended).map(len_of).collect()
    made = system.run(graph, batch_size=7, window=1)
    results = made.results()
    made.send("rows", range(7))
    for _ in range(7):
        next(results)
    encoded = Cut.encoded

    def later(cut: Cut, pause: float) -> Snapshot:
        made.send("rows", [0])  # a move begins behind it
        assert next(results) == 2
        for total in (2, 3):
            made.send("rows", range(1, 7))
            assert [next(results) for _ in range(6)] == [total] * 6
        return encoded(cut, pause)

    monkeypatch.setattr(Cut, "encoded", later)
    taken = made.snapshot()
    monkeypatch.setattr(Cut, "encoded", encoded)
    made.cancel()
    resumed = system.run(graph, restore=taken)
    resumed.send("rows", range(7))
    assert resumed.finish(timeout=60) == [2] * 7


def last(_: Any, row: Any) -> Any:
    return getattr(row, "value", row)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_row_that_cannot_be_pickled_brings_the_state_back(
    system: ActorSystem, choose: Choose, keyed: bool
) -> None:
    choose(lambda segment, number: False)
    source: Any = entry("rows")
    if keyed:
        source = source.key_by(lambda row: last(None, row) % 7)
    graph = source.scan(None, last, name="last").collect()
    made = system.run(graph, batch_size=3)
    sent = [*range(40), Picky(40), *range(41, 60)]
    made.send("rows", sent)
    assert [row[1] if keyed else row for row in made.finish(timeout=60)] == [*range(60)]
    found = made.statistics().operators[0]
    assert (found.thread, found.reason) == ("", "a row or a key cannot be pickled")


@pytest.mark.parametrize("keyed", [False, True])
def test_a_state_that_cannot_be_pickled_stays(
    system: ActorSystem, choose: Choose, keyed: bool
) -> None:
    class Locked:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def receive(self, row: int) -> list[int]:
            return [os.getpid()]

    choose(lambda segment, number: False)
    source: Any = entry("rows", int)
    if keyed:
        source = source.key_by(remainder)
    made = system.run(source.stateful(Locked, name="locked").collect(), batch_size=2)
    made.send("rows", range(20))
    assert set(made.finish(timeout=60)) == {os.getpid()}
    assert made.statistics().operators[0].reason.startswith("the state cannot be pickled: ")


@pytest.mark.parametrize("keyed", [False, True])
def test_a_state_that_a_process_refuses_stays(
    system: ActorSystem, choose: Choose, keyed: bool
) -> None:
    program = os.getpid()

    class Homesick(Summing):
        def restore(self, state: int) -> None:
            if os.getpid() != program:
                raise ValueError("not here")
            super().restore(state)

    choose(lambda segment, number: False)
    source: Any = entry("rows", int)
    if keyed:
        source = source.key_by(lambda row: 0)
    made = system.run(source.stateful(Homesick, name="homesick").collect(), batch_size=1)
    made.send("rows", [1] * 5)
    assert made.finish(timeout=60) == [1, 2, 3, 4, 5, "5 at the end"]
    found = made.statistics().operators[0]
    assert found.thread == ""
    assert found.reason.startswith("a process cannot begin with the state: not here")


@pytest.mark.parametrize("keyed", [False, True])
def test_a_state_that_the_program_refuses_stays_away(
    system: ActorSystem, choose: Choose, keyed: bool
) -> None:
    program = os.getpid()

    class Settled(Summing):
        def restore(self, state: int) -> None:
            if os.getpid() == program:
                raise ValueError("not there")
            super().restore(state)

    choose(lambda segment, number: number > 3)
    source: Any = entry("rows", int)
    if keyed:
        source = source.key_by(lambda row: 0)
    stream = source.stateful(Settled, name="settled", errors="skip")
    made = system.run(stream.collect(), batch_size=1)
    made.send("rows", [1, 1, 1, 1, 1, 1, 1, Picky(1), 1])
    assert made.finish(timeout=60) == [1, 2, 3, 4, 5, 6, 7, 8, "8 at the end"]
    found = made.statistics().operators[0]
    assert found.thread == "worker processes"
    assert found.reason == "the state cannot return: not there"
    (failure,) = made.row_counts.failures
    assert failure.serial == 7


@pytest.mark.parametrize("name", ["go", "fetch"])
def test_a_run_can_be_cancelled_while_a_state_moves(
    system: ActorSystem, choose: Choose, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    choose(lambda segment, number: number > 3)
    monkeypatch.setattr(ChosenStates, name, lambda *_: [Future()])
    made = system.run(graph_of(keyed=False), batch_size=1, window=4)
    made.send("rows", range(4))
    with pytest.raises(RunTimeout):
        made.send("rows", range(100), timeout=0.2)
    made.cancel()
    with pytest.raises(RunEnded):
        made.finish(timeout=60)


def spend(total: int, row: int) -> int:
    for _ in range(row):
        total += 1
    return total


def send_until(made: Any, rows: list[int], thread: str) -> int:
    """Send rows, again and again, until the first operator has this thread. Returns how often."""
    for times in range(1, 20_000):
        made.send("rows", rows, timeout=60)
        if made.statistics().operators[0].thread == thread:
            return times
    raise AssertionError(made.statistics().operators[0].reason)


def test_a_state_goes_when_rows_are_dear_and_returns_when_they_are_cheap(
    system: ActorSystem,
) -> None:
    graph = (
        entry("rows", int)
        .key_by(lambda row: row % 64)
        .scan(0, spend, name="spend")
        .fold(0, lambda total, row: max(total, row[1]))
    )
    made = system.run(graph.collect())
    dear, cheap = [*range(6400, 6464)], [*range(64)]
    largest = send_until(made, dear, "worker processes") * dear[-1]
    largest += send_until(made, cheap * 50, "") * 50 * cheap[-1]
    assert made.finish(timeout=60) == [largest]
    reason = made.statistics().operators[0].reason
    assert "us in the program, " in reason
    assert reason.endswith("bytes has moved 2 times")


# --- the rule -------------------------------------------------------------------------------------


class Measured(ChosenStates):
    """With given measurements, for rows in rounds of a thousand."""

    def __init__(self, *, share: float) -> None:
        super().__init__(lambda: States(WorkerProcesses("none", 2, 1 << 20), b"", 2), 2, 2)
        self.note_share(int(1000 * share), 1000)

    def see(self, work: float, hand_over: float, others: float = 100) -> None:
        """Take nanoseconds of a row, for the function, its hand-over, and the program's rest."""
        program = others + (hand_over if self._is_away else work)
        for mean, nanoseconds in (
            (self._work, work),
            (self._encoding, hand_over - 120),  # and the requests of a round
            (self._program, program),
            (self._clock, program),
        ):
            mean.total, mean.count = nanoseconds * 1000, 1000
        self._size.total, self._size.count = 1000, 1
        self.choose(1000)

    def wants_processes(self, rounds: int = 1000, **given: float) -> bool:
        for _ in range(rounds):
            self.see(**given)
        return not self.is_here


def test_a_state_moves_if_that_is_clearly_faster() -> None:
    assert not Measured(share=0.5).wants_processes(work=500, hand_over=300)
    assert Measured(share=0.5).wants_processes(work=5000, hand_over=300)
    assert not Measured(share=0.9).wants_processes(work=5000, hand_over=300)  # of one key


def test_one_state_moves_only_out_of_a_program_that_has_other_work() -> None:
    assert not Measured(share=1).wants_processes(work=5000, hand_over=300)
    assert Measured(share=1).wants_processes(work=5000, hand_over=300, others=5000)


def test_a_state_returns_if_its_rows_come_no_faster_from_the_processes() -> None:
    states, now = Measured(share=0.5), 0
    states._trial = RateTrial(lambda: now)
    close = {"work": 1000.0, "hand_over": 200.0}

    def run(is_away: bool, microseconds: int) -> bool:
        """Have rounds that take so long each. Returns whether the states are to go, or to stay."""
        nonlocal now
        for _ in range(1000):
            now += 1000 * microseconds
            states._trial.note(is_away, 1000)
            states.see(**close)
        return not states.is_here

    assert run(False, 1000)
    states._is_away = True
    assert run(True, 800)
    assert not run(True, 1000)
    states._is_away = False
    assert not run(False, 1000)  # it waits for the next trial
    assert run(False, 3000)


def test_a_move_has_to_pay_for_itself_and_each_return_doubles_its_price() -> None:
    states = Measured(share=0.5)
    saved_each = 5000 + 100 - (5000 + 100 + 2 * 300) / 2  # nanoseconds for a row
    rounds = int(20_000_000 / (1000 * saved_each))
    assert not states.wants_processes(rounds, work=5000, hand_over=300)
    assert states.wants_processes(1, work=5000, hand_over=300)
    states._note_move(True)
    states._returns += 1
    states._note_move(False)
    states.is_here = True
    assert not states.wants_processes(2 * rounds - 1, work=5000, hand_over=300)
    assert states.wants_processes(3, work=5000, hand_over=300)


def test_a_state_returns_if_the_work_no_longer_pays() -> None:
    states = Measured(share=0.5)
    assert states.wants_processes(work=5000, hand_over=300)
    states._note_move(True)
    assert states.wants_processes(work=5000, hand_over=300)
    assert not states.wants_processes(work=100, hand_over=300)


def test_a_large_state_needs_more_to_move() -> None:
    states = Measured(share=0.5)
    states._has_tried = True
    assert states.wants_processes(work=5000, hand_over=300)

    def give() -> None:
        begun = time.thread_time_ns()
        while time.thread_time_ns() < begun + 20_000_000:
            pass
        states.restore([((), [[1, 2, 3]])])

    assert states.go(give) == []
    assert states.is_here
    assert not states.wants_processes(1, work=5000, hand_over=300)
