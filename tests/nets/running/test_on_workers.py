"""Boxes that several workers call, as without an interpreter lock: the same outputs as by one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from callboard import ActorSystem, DeadLetter
from callboard.core.threads.interpreter import has_gil
from callboard.nets import BoxError, NetEnded, box, ordered, split
from callboard.nets.kernel.process_boxes import ProcessBoxNode
from callboard.nets.running import box_choice
from callboard.nets.running.box_choice import WorkerChoice
from callboard.nets.running.box_workers import BatchCaller
from tests.nets.places import always_leave, change_places, share_boxes
from tests.nets.running.gate import TIMEOUT, Gate, rows, send_all, values_of
from tests.nets.running.test_chosen_places import (
    check_errors_of_replicas,
    look,
    one_by_one,
    yield_three,
)
from tests.nets.running.test_in_processes import refuse_odd, same, yield_twice
from tests.nets.running.test_replicas_in_processes import SINGLE, nets, records


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[ActorSystem]:
    share_boxes(monkeypatch)
    with ActorSystem(workers=2) as made:
        yield made


@pytest.fixture
def leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    always_leave(monkeypatch)


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> None:
    change_places(monkeypatch)


def thread_of(run: Any, path: str) -> str:
    found: str = run.statistics().places[path]["thread"]
    return found


def test_records_of_a_box_are_on_several_workers_at_a_time(
    system: ActorSystem, leaves: None
) -> None:
    both = threading.Barrier(2)

    def meet(x: int) -> int:
        if x:
            both.wait(TIMEOUT)
        return threading.get_ident()

    run = system.run(box(meet, "(x) -> (y)"))
    run.ask({"x": 0}).result(TIMEOUT)
    assert len({*values_of(send_all(run, rows([1, 2])), "y")}) == 2
    place = run.statistics().places["/meet"]
    assert (place["thread"], place["calls"], place["tries"]) == ("workers", 3, 3)


def test_boxes_in_series_that_change_their_places_keep_the_order(
    system: ActorSystem, changes: None
) -> None:
    first = box(same, "(x) -> (x)")
    second = box(refuse_odd, "(x) -> (y)", errors="skip")
    for window in (None, 1, 5):
        run = system.run(first >> second, window=window)
        assert values_of(one_by_one(run, range(200)), "y") == [*range(0, 200, 2)]
        places = run.statistics().places
        assert [places[path]["tries"] for path in ("/same", "/refuse_odd")] == [200, 200]
        assert places["/refuse_odd"]["failures"] == 100


def test_errors_are_handled_by_the_options(system: ActorSystem, leaves: None) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    for function, even in ((refuse_odd, [0, 2, 4]), (yield_twice, [0, 0, 2, -2, 4, -4])):
        skip = box(function, "(x) -> (y)", errors="skip")
        assert values_of(one_by_one(system.run(skip), range(6)), "y") == even
        variant = box(function, "(x) -> (y)", errors="variant")
        outputs = one_by_one(system.run(variant), range(6))
        assert [output["y"] for output in outputs if "y" in output] == even
        assert [output["error"].record["x"] for output in outputs if "y" not in output] == [1, 3, 5]
    assert [letter.message for letter in letters] == [*rows([1, 3, 5]), *rows([1, 3, 5])]


def test_an_error_ends_the_run_and_names_its_record(system: ActorSystem, leaves: None) -> None:
    run = system.run(box(refuse_odd, "(x) -> (y)"))
    run.ask({"x": 0}).result(TIMEOUT)
    with pytest.raises(BoxError, match="/refuse_odd failed: ValueError: 3") as caught:
        send_all(run, rows([2, 3, 4]))
    assert caught.value.record == {"x": 3}
    assert not hasattr(caught.value.__cause__, "__notes__")


def test_errors_name_their_records_wherever_a_box_runs(system: ActorSystem, changes: None) -> None:
    check_errors_of_replicas(system)


class Exclusive:
    """Numbers its records, and gets one at a time."""

    def __init__(self) -> None:
        self.number = 0
        self.lock = threading.Lock()

    def __call__(self, k: int, x: int) -> tuple[int, int, int]:
        assert self.lock.acquire(blocking=False)
        self.number += 1
        self.lock.release()
        return k, x, self.number


@pytest.mark.parametrize("places", [always_leave, change_places])
def test_an_object_gets_one_record_at_a_time_in_order(
    system: ActorSystem, monkeypatch: pytest.MonkeyPatch, places: Any
) -> None:
    places(monkeypatch)
    run = system.run(ordered(split(box(Exclusive, "(k, x) -> (k, x, n)"), "k")))
    sent = [{"k": x % 5, "x": x} for x in range(400)]
    for at in range(0, 400, 8):
        run.send(sent[at : at + 8], timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == [{**each, "n": each["x"] // 5 + 1} for each in sent]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nets, records)
def test_random_nets_with_states_put_out_the_same_as_on_one_worker(
    system: ActorSystem, alone: ActorSystem, changes: None, net: Any, records: list[Any]
) -> None:
    expected = send_all(alone.run(ordered(net)), records)
    run = system.run(ordered(net))
    for record in records:
        run.send([record], timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == expected


@pytest.fixture(scope="module")
def alone() -> Iterator[ActorSystem]:
    with ActorSystem(workers=1) as made:
        yield made


def test_an_object_that_cannot_be_made_is_an_error_of_its_record(
    system: ActorSystem, leaves: None
) -> None:
    class Broken:
        def __init__(self) -> None:
            raise ValueError("no object")

        def __call__(self, x: int) -> int:
            return x

    run = system.run(box(Broken, "(x) -> (y)", errors="variant"))
    assert ["no object" in str(each["error"]) for each in one_by_one(run, range(4))] == [True] * 4


def test_a_generator_leaves_if_its_outputs_are_held_back(system: ActorSystem, leaves: None) -> None:
    free = box(yield_three, "(x) -> (y)")
    held = free.with_options(errors="skip")
    expected = [y for x in range(20) for y in (x, -x, x)]
    for one, thread in ((free, ""), (held, "workers")):
        run = system.run(one)
        assert values_of(one_by_one(run, range(20)), "y") == expected
        assert thread_of(run, "/yield_three") == thread


def test_other_boxes_stay(system: ActorSystem, leaves: None) -> None:
    threads = box(same, "(x) -> (x)", name="threads", threads=True)
    run = system.run(box(abs, "(x) -> (x)") >> threads >> box(Same(), "(x) -> (y)", name="object"))
    assert values_of(one_by_one(run, range(50)), "y") == [*range(50)]
    assert [thread_of(run, f"/{name}") for name in ("abs", "threads", "object")] == [
        "workers",
        "",
        "",
    ]


class Same:
    """An object, which all replicas share."""

    def __call__(self, x: int) -> int:
        return x


def test_a_cancelled_run_stops_its_callers(
    system: ActorSystem, leaves: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_choice, "LONGEST", 10**18)  # batches are as large as can be
    gate, came = Gate(), []

    def pass_gate(x: int) -> int:
        came.append(x)
        return int(gate.wait(x)) if x == 1 else x

    run = system.run(box(pass_gate, "(x) -> (y)"))
    for _ in range(2):
        run.ask({"x": 0}).result(TIMEOUT)
    run.send(rows(range(1, 41)), timeout=TIMEOUT)  # in batches of ten
    assert gate.next() == 1
    run.cancel()
    gate.open(1)
    with pytest.raises(NetEnded, match="cancelled"):
        run.finish(TIMEOUT)
    system.drain()
    assert not {*came} & {*range(2, 11)}
    assert system.find(BatchCaller) == []


def test_a_drain_waits_for_boxes_on_workers(system: ActorSystem, leaves: None) -> None:
    run = system.run(box(same, "(x) -> (x)") >> box(abs, "(x) -> (y)"))
    run.tell_many(rows(range(3000)))
    system.drain()
    statistics = run.statistics()
    assert (statistics.sent, statistics.elsewhere) == (3000, 0)
    assert values_of(run.finish(TIMEOUT), "y") == [*range(3000)]


def test_a_system_that_stops_ends_its_runs(monkeypatch: pytest.MonkeyPatch, leaves: None) -> None:
    share_boxes(monkeypatch)
    with ActorSystem(workers=2) as system:
        run = system.run(box(same, "(x) -> (y)"))
        run.ask({"x": 0}).result(TIMEOUT)
        run.tell_many(rows(range(3000)))
    with pytest.raises(NetEnded):
        run.finish(TIMEOUT)


def test_costs_decide_where_a_box_runs() -> None:
    node = ProcessBoxNode("/f", lambda shape: None, same, None, generates=False, collects=False)
    choice = WorkerChoice(node, 2, 4)
    assert look(choice, work=0.3, encoding=0.4)
    assert not look(choice, work=5, encoding=0.4)
    assert look(choice, work=5, encoding=0.4, records=1)


def test_a_box_whose_calls_take_longer_on_several_workers_comes_back_for_ever_longer() -> None:
    node = ProcessBoxNode("/f", lambda shape: None, same, None, generates=False, collects=False)
    choice = WorkerChoice(node, 2, 4)
    stays: list[int] = []
    for _ in range(3):
        assert not look(choice, work=5, encoding=0.4)
        here = 0
        while not choice.is_here:
            note_work(choice, 50)
        while choice.is_here:
            note_work(choice, 5)
            here += 1
        stays.append(here)
    assert stays[0] < stays[1] < stays[2]


def note_work(choice: WorkerChoice, microseconds: int) -> None:
    choice._note_work(microseconds * 1000 * 100, 100)
    choice._choose()


@pytest.mark.skipif(not has_gil(), reason="several workers call boxes")
def test_with_an_interpreter_lock_boxes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(SINGLE[0])
        assert len(one_by_one(run, range(9))) == 9
        assert run.statistics().places["/Tally"]["reason"] == ""
