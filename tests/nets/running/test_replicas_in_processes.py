"""Classes as boxes: each replica has its object in one process, and that outlives the process."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.nets import (
    BoxError,
    NetEnded,
    NetError,
    ProcessLost,
    Tag,
    box,
    feedback,
    ordered,
    split,
    star,
)
from callboard.nets import filter as filtering
from callboard.nets.terms.network import Net
from callboard.worker_processes import place
from callboard.worker_processes.processes import processes_of
from tests.nets.running.gate import TIMEOUT, rows, send_all, values_of
from tests.nets.running.test_in_processes import Picky


@pytest.fixture(scope="module")
def shared(root: Path) -> Iterator[ActorSystem]:
    with pytest.MonkeyPatch.context() as patched, ActorSystem(processes=2) as made:
        patched.syspath_prepend(str(root))
        yield made


@pytest.fixture
def system(shared: ActorSystem, monkeypatch: pytest.MonkeyPatch, root: Path) -> ActorSystem:
    """A system with two worker processes."""
    monkeypatch.syspath_prepend(str(root))
    return shared


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch, root: Path) -> Iterator[ActorSystem]:
    """A system whose processes the test kills: the program may notice it later."""
    monkeypatch.syspath_prepend(str(root))
    with ActorSystem(processes=2) as made:
        yield made


@pytest.fixture(scope="module")
def alone() -> Iterator[ActorSystem]:
    with ActorSystem() as made:
        yield made


@box("(x) -> (x, <count>, <pid>)")
class Counting:
    """Count the records."""

    def __init__(self, first: int = 0) -> None:
        self.count = first

    def __call__(self, x: Any) -> tuple[Any, int, int]:
        self.count += 1
        return x, self.count, os.getpid()


COUNTING: Any = Counting  # to type checkers, a decorated class is a class


class Tally:
    """Mix each value with those before."""

    def __init__(self, factor: Any = 3) -> None:
        self.total = 1
        self.factor = factor

    def __call__(self, x: int) -> int:
        self.total = (self.total * self.factor + x) % 1009
        return self.total


class Repeating(Tally):
    """Give no output, one, or two."""

    def __call__(self, x: int) -> Iterator[int]:  # type: ignore[override]
        total = super().__call__(x)
        for at in range(total % 3):
            yield total + at


def triple(x: int) -> int:
    return 3 * x % 1009


SINGLE = [  # boxes with one output
    box(Tally, "(x) -> (x)"),
    box(partial(Tally, 5), "(x) -> (x)", name="partial"),
    box(triple, "(x) -> (x)"),
]
REPEATING = box(Repeating, "(x) -> (x)")
SET = filtering("{<m>} -> {<m>, <n=m>}")
LESS = filtering("{<n>} -> {<n=n-1>}")


def larger(inner: st.SearchStrategy[Net]) -> st.SearchStrategy[Net]:
    return st.one_of(
        st.builds(lambda one, two: one >> two, inner, inner),
        st.builds(lambda body: split(body, "<k>"), inner),
        st.builds(lambda body: SET >> star(body >> LESS, "{<n>} if <n <= 0>"), inner),
    )


def loop(body: Net) -> Net:
    return SET >> feedback(body >> LESS, "{<n>} if <n > 0>")


# In a loop, a record's second output meets the states before or after what comes of the first.
loops = st.recursive(st.sampled_from(SINGLE), larger, max_leaves=3).map(loop)
nets = st.recursive(st.sampled_from([*SINGLE, REPEATING]) | loops, larger, max_leaves=4)
numbers = st.integers(0, 2)
records = st.lists(
    st.builds(lambda x, m, k: {"x": x, "<m>": m, "<k>": k}, st.integers(0, 99), numbers, numbers),
    max_size=12,
)
with_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@with_fixtures
@given(nets, records)
def test_random_nets_put_out_the_same_as_without_processes(
    system: ActorSystem, alone: ActorSystem, net: Net, records: list[Any]
) -> None:
    expected = send_all(alone.run(ordered(net)), records)
    assert send_all(system.run(ordered(net)), records) == expected


def kill_one(system: ActorSystem, number: int) -> None:
    pid = processes_of(system).figures()[number].pid
    if pid is not None:
        os.kill(pid, signal.SIGKILL)


@settings(with_fixtures, max_examples=15)
@given(nets, records, st.data())
def test_random_nets_put_out_the_same_though_processes_are_killed(
    mortal: ActorSystem, alone: ActorSystem, net: Net, records: list[Any], data: st.DataObject
) -> None:
    expected = send_all(alone.run(ordered(net)), records)
    kills = data.draw(st.dictionaries(st.integers(0, 11), st.integers(0, 1), max_size=3))
    run = mortal.run(ordered(net))
    for at, record in enumerate(records):
        run.send([record], timeout=TIMEOUT)
        if at in kills:
            kill_one(mortal, kills[at])
    assert run.finish(TIMEOUT) == expected


def test_replicas_are_divided_and_each_stays_in_its_process(system: ActorSystem) -> None:
    run = system.run(split(COUNTING, "<k>"))
    run.send([{"x": x, "<k>": x % 7} for x in range(700)], timeout=TIMEOUT)
    counts, pids = defaultdict(list), defaultdict(set)
    for output in run.finish(TIMEOUT):
        counts[output["<k>"]].append(output["<count>"])
        pids[output["<k>"]].add(output["<pid>"])
    assert counts == {k: [*range(1, 101)] for k in range(7)}
    assert all(len(found) == 1 for found in pids.values())
    assert len({*(pid for found in pids.values() for pid in found), os.getpid()}) == 3


def test_levels_of_a_star_are_replicas(system: ActorSystem) -> None:
    net = star(
        COUNTING >> filtering("{<n>, <pid>, <count>} -> {<n=n-1>, <c=count>}"), "{<n>} if <n == 0>"
    )
    run = system.run(net)
    run.send([{"x": x, "<n>": 1 + x % 3} for x in range(9)], timeout=TIMEOUT)
    found = sorted((output["x"] % 3, output["<c>"]) for output in run.finish(TIMEOUT))
    by_level = [[count for level, count in found if level == at] for at in range(3)]
    assert by_level[2] == [1, 2, 3]  # only every third record comes to the third replica
    assert run.statistics().places["/Counting"]["made"] == 3


def test_a_loop_has_one_replica(system: ActorSystem) -> None:
    net = feedback(COUNTING >> filtering("{<n>, <pid>} -> {<n=n-1>}"), "{<n>} if <n > 0>")
    outputs = send_all(system.run(net), [{"x": x, "<n>": 3} for x in range(5)])
    assert max(output["<count>"] for output in outputs) == 15


def test_a_killed_process_loses_no_state_and_doubles_no_output(mortal: ActorSystem) -> None:
    number, found, killed = 4000, defaultdict(list), 0
    run = mortal.run(split(COUNTING, "<k>"))
    sent = ({"x": x, "<k>": x % 5} for x in range(number))
    for at, output in enumerate(run.results(sent)):
        found[output["<k>"]].append((output["x"], output["<count>"]))
        if at % 900 == 899:
            try:
                os.kill(output["<pid>"], signal.SIGKILL)
            except ProcessLookupError:  # killed before
                continue
            killed += 1
    assert killed >= 2
    assert found == {k: [(k + 5 * at, at + 1) for at in range(number // 5)] for k in range(5)}


@pytest.mark.parametrize("errors", ["fail", "skip"])
def test_a_state_with_whose_record_nine_processes_end_is_lost(
    mortal: ActorSystem, errors: Any
) -> None:
    run = mortal.run(box(Leaving, "(x) -> (x)", errors=errors))
    run.send(rows(range(40)), timeout=TIMEOUT)
    with pytest.raises(BoxError, match=r"/Leaving failed.*9 processes ended.*status 3") as caught:
        run.finish(TIMEOUT)
    assert isinstance(caught.value.__cause__, ProcessLost)


class Leaving(Tally):
    """End the process at a record."""

    def __call__(self, x: int) -> int:
        if x == 7:
            os._exit(3)
        return super().__call__(x)


def test_a_state_of_too_many_records_is_lost_with_its_process(
    mortal: ActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "_MOST_KEPT", 2000)
    run = mortal.run(COUNTING)
    [first] = run.ask({"x": "y" * 2000}).result(TIMEOUT)
    os.kill(first["<pid>"], signal.SIGKILL)
    answers = [run.ask({"x": 1}) for _ in range(9)]
    with pytest.raises(BoxError, match=r"ounting failed: .*signal 9; a state was in it") as caught:
        run.finish(TIMEOUT)
    assert isinstance(caught.value.__cause__, ProcessLost)
    for answer in answers:  # all have one
        assert answer.exception(TIMEOUT) is None or isinstance(answer.exception(), NetError)


class Refusing:
    """Fail to be made, until a file is there."""

    def __init__(self, path: str) -> None:
        with open(path):
            self.count = 0

    def __call__(self, x: int) -> int:
        self.count += x
        return self.count


def test_a_failed_construction_is_an_error_of_its_record(
    system: ActorSystem, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    run = system.run(box(partial(Refusing, str(made)), "(x) -> (y)", name="refusing"))
    with pytest.raises(BoxError, match="FileNotFoundError"):
        run.ask({"x": 1}).result(TIMEOUT)
    made.touch()
    assert [run.ask({"x": x}).result(TIMEOUT) for x in (2, 3)] == [[{"y": 2}], [{"y": 5}]]
    run.cancel()


def test_a_class_that_cannot_be_pickled_is_an_error_that_names_it(system: ActorSystem) -> None:
    lock = threading.Lock()
    with pytest.raises(NetError, match=r"box /guarded cannot .*\(lock\) cannot be pickled"):
        system.run(box(partial(Tally, lock), "(x) -> (x)", name="guarded"))

    class Closure:
        def __call__(self, x: int) -> int:
            with lock:
                return x

    with pytest.raises(NetError, match=r"box /Closure cannot .*\(lock\) cannot be pickled"):
        system.run(box(Closure, "(x) -> (x)"))


class Unreadable:
    """Can be pickled, but not read elsewhere."""

    def __reduce__(self) -> Any:
        return stay_in, (os.getpid(),)


def stay_in(pid: int) -> Any:
    if os.getpid() != pid:
        raise ValueError("not here")


@pytest.mark.parametrize("bad", [Picky(), Unreadable()], ids=["pickled", "read"])
def test_values_that_cannot_be_pickled_are_errors_of_their_records(
    system: ActorSystem, bad: Any
) -> None:
    class Locking(Tally):
        def __call__(self, x: Any) -> Any:
            super().__call__(1)
            return threading.Lock() if x == 9 else self.total

    sent: list[Any] = [bad if x in (3, 40) else x for x in range(50)]
    run = system.run(box(Locking, "(x) -> (y)", errors="variant"))
    assert run.ask({"x": 0}).result(TIMEOUT) == [{"y": 4}]  # then the others are sent together
    outputs = send_all(run, rows(sent))
    assert [at for at, output in enumerate(outputs) if "error" in output] == [3, 9, 40]
    expected, tally = [], Tally()
    tally(1)
    for x in range(50):
        if x not in (3, 40):  # those did not come to it
            expected.append(tally(1))
    del expected[8]  # that of 9, which it had counted
    assert values_of([output for output in outputs if "y" in output], "y") == expected


@dataclass
class Line:
    text: str
    n: Tag


@box
class Numbering:
    """Take a dataclass."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, line: Line) -> Line:
        self.n += line.n
        return Line(line.text, self.n)


NUMBERING: Any = Numbering


def test_an_object_takes_dataclasses(system: ActorSystem) -> None:
    outputs = send_all(system.run(NUMBERING), [{"text": "a", "<n>": 2}] * 3)
    assert values_of(outputs, "<n>") == [2, 4, 6]


class Endless(Tally):
    """Never return."""

    def __call__(self, x: int) -> int:
        select.select([], [], [])
        return x


def test_a_run_can_be_cancelled_though_an_object_never_returns(system: ActorSystem) -> None:
    run = system.run(split(box(Endless, "(x) -> (y)"), "x"))
    run.send(rows(range(9)), timeout=TIMEOUT)
    run.cancel()
    with pytest.raises(NetEnded, match="cancelled"):
        run.finish(TIMEOUT)
    assert values_of(send_all(system.run(COUNTING), rows(range(3))), "<count>") == [1, 2, 3]


def test_states_do_not_outlive_their_run(system: ActorSystem) -> None:
    for _ in range(3):
        run = system.run(COUNTING)
        assert values_of(send_all(run, rows(range(5))), "<count>") == [1, 2, 3, 4, 5]
        place = run.statistics().places["/Counting"]
        assert (place["thread"], place["calls"]) == ("worker processes", 5)
