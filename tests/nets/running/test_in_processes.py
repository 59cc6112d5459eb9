"""Boxes in worker processes: the same outputs, errors and counts as without."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem, DeadLetter
from callboard.nets import (
    BoxError,
    NetEnded,
    NetError,
    ProcessLost,
    RecordError,
    box,
    ordered,
    split,
    star,
)
from callboard.nets import filter as filtering
from tests.nets.running.gate import TIMEOUT, rows, send_all, values_of

LOCK = threading.Lock()


@pytest.fixture(scope="module")
def shared(root: Path) -> Iterator[ActorSystem]:
    with pytest.MonkeyPatch.context() as patched, ActorSystem(processes=2) as made:
        patched.syspath_prepend(str(root))  # where the processes find this module
        yield made


@pytest.fixture
def system(shared: ActorSystem, monkeypatch: pytest.MonkeyPatch, root: Path) -> ActorSystem:
    """A system with two worker processes."""
    monkeypatch.syspath_prepend(str(root))  # for those that are started later
    return shared


@pytest.fixture
def letters(system: ActorSystem) -> Iterator[list[DeadLetter]]:
    """The dead letters of a test."""
    found: list[DeadLetter] = []
    system.dead_letters.subscribe(subscriber := found.append)
    yield found
    system.dead_letters.unsubscribe(subscriber)


@box("(x) -> (y)")
def locked(x: int) -> int:
    """Use what cannot be pickled, which the module has."""
    with LOCK:
        return x + 1


@box("(x) -> (x, <pid>)")
def where(x: int) -> tuple[int, int]:
    return x, os.getpid()


def same(x: Any) -> Any:
    return x


def refuse_odd(x: int) -> int:
    if x % 2:
        raise ValueError(x)
    return x


def yield_twice(x: int) -> Iterator[int]:
    yield x
    refuse_odd(x)
    yield -x


def leave_at_seven(x: int) -> int:
    if x == 7:
        os._exit(3)
    return x


def meet(x: int, path: str) -> int:
    """Wait for the other record: a pipe opens when both of its ends do."""
    with open(path, "w" if x else "r"):
        return os.getpid()


def wait_for_ever(x: int) -> int:
    select.select([], [], [])
    return x


class Picky:
    """Refuses to be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("this one stays")


class Here:
    """A box with a state."""

    def __call__(self, x: int) -> int:
        return os.getpid()

    def method(self, x: int) -> int:
        return os.getpid()


def test_records_of_a_box_are_in_several_processes_at_a_time(
    system: ActorSystem, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    run = system.run(box(meet, "(x, path) -> (pid)"))
    run.send([{"x": x, "path": str(tmp_path / "pipe")} for x in range(2)], timeout=TIMEOUT)
    pids = values_of(run.finish(TIMEOUT), "pid")
    assert len({*pids, os.getpid()}) == 3


@pytest.mark.parametrize("window", [None, 1, 3])
def test_outputs_of_boxes_in_series_keep_the_order(system: ActorSystem, window: Any) -> None:
    run = system.run(where >> box(refuse_odd, "(x) -> (y)", errors="skip"), window=window)
    run.send(rows(range(3000 if window is None else 60)), timeout=TIMEOUT)
    found = values_of(run.finish(TIMEOUT), "y")
    assert found == [*range(0, 3000 if window is None else 60, 2)]


def test_a_decorated_box_is_found_by_its_name(system: ActorSystem) -> None:
    assert values_of(send_all(system.run(locked), rows(range(3))), "y") == [1, 2, 3]
    skipping = locked.with_options(errors="skip")
    assert values_of(send_all(system.run(skipping), rows(["a", 1])), "y") == [2]


@pytest.mark.parametrize(
    "one",
    [
        box(Here(), "(x) -> (y)", name="object"),
        box(Here().method, "(x) -> (y)"),
        box(lambda x: os.getpid(), "(x) -> (y)", name="thread", threads=True),
        box(lambda x: os.getpid(), "(x) -> (y)", name="late", timeout=TIMEOUT),
    ],
    ids=["object", "method", "threads", "timeout"],
)
def test_other_boxes_stay_in_the_program(system: ActorSystem, one: Any) -> None:
    run = system.run(where >> filtering("{x, <pid>} -> {x}") >> one)
    assert send_all(run, rows([1])) == [{"y": os.getpid()}]


@pytest.mark.parametrize("function", [refuse_odd, yield_twice])
def test_an_error_has_the_traceback_of_the_process(system: ActorSystem, function: Any) -> None:
    run = system.run(box(function, "(x) -> (y)"))
    with pytest.raises(BoxError, match=f"/{function.__name__} failed: ValueError: 3") as caught:
        send_all(run, rows([2, 3, 4]))
    assert caught.value.record == {"x": 3}
    [note] = caught.value.__cause__.__notes__  # type: ignore[union-attr]
    assert note.startswith("In a worker process:")
    assert "in refuse_odd" in note
    found: list[Any] = []
    with pytest.raises(BoxError, match="ValueError: 3"):
        found.extend(run.results())
    assert values_of(found, "y") == ([2] if function is refuse_odd else [2, -2, 3])


def test_errors_are_handled_by_the_options(system: ActorSystem, letters: list[DeadLetter]) -> None:
    for function, even in ((refuse_odd, [0, 2, 4]), (yield_twice, [0, 0, 2, -2, 4, -4])):
        skip = box(function, "(x) -> (y)", errors="skip")
        assert values_of(send_all(system.run(skip), rows(range(6))), "y") == even
        variant = box(function, "(x) -> (y)", errors="variant")
        outputs = send_all(system.run(variant), rows(range(2)))
        assert [output.get("y") for output in outputs] == [*[0] * (len(even) // 3), None]
    assert [letter.message for letter in letters] == [*rows([1, 3, 5]), *rows([1, 3, 5])]
    assert {letter.reason for letter in letters} == {"skipped"}


def test_a_box_reads_the_cause_of_an_error_in_a_process(system: ActorSystem) -> None:
    def explain(error: BoxError) -> str:
        return f"{os.getpid()} {error.path} {error.record} {error.__cause__!r}"

    net = box(refuse_odd, "(x) -> (y)", errors="variant") >> box(explain, "(error) -> (text)")
    pid, _, text = send_all(system.run(net), rows([1]))[0]["text"].partition(" ")
    assert int(pid) != os.getpid()
    assert text == "/refuse_odd {'x': 1} ValueError(1)"


def test_an_error_fails_its_ask_alone(system: ActorSystem) -> None:
    run = system.run(box(refuse_odd, "(x) -> (y)"))
    answers = [run.ask({"x": x}) for x in range(6)]
    for x, answer in enumerate(answers):
        if x % 2:
            with pytest.raises(BoxError, match=f"ValueError: {x}"):
                answer.result(TIMEOUT)
        else:
            assert answer.result(TIMEOUT) == [{"y": x}]
    assert run.finish(TIMEOUT) == []


def test_an_invalid_output_is_the_same_error_as_without_processes(system: ActorSystem) -> None:
    net = box(lambda x: {"z": x}, "(x) -> (y)", name="wrong")
    texts = []
    with ActorSystem() as other:
        for each in (system, other):
            with pytest.raises(RecordError) as caught:
                send_all(each.run(net), rows([1]))
            texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_a_function_that_cannot_be_pickled_is_an_error_that_names_it(system: ActorSystem) -> None:
    lock = threading.Lock()

    def guarded(x: int) -> int:
        with lock:
            return x

    with pytest.raises(NetError, match=r"box /guarded cannot .*/guarded -> lock \(lock\) cannot"):
        system.run(box(guarded, "(x) -> (y)"))
    run = system.run(box(guarded, "(x) -> (y)", threads=True))
    assert send_all(run, rows([1])) == [{"y": 1}]


def test_a_record_that_cannot_be_pickled_is_an_error_of_that_record(system: ActorSystem) -> None:
    one = box(same, "(x) -> (y)")
    with pytest.raises(BoxError, match="this one stays"):
        system.run(one).ask({"x": Picky()}).result(TIMEOUT)
    sent = [Picky() if x in (3, 40) else x for x in range(50)]
    outputs = send_all(system.run(box(same, "(x) -> (y)", errors="variant")), rows(sent))
    assert [output.get("y") for output in outputs] == [
        None if x in (3, 40) else x for x in range(50)
    ]
    cause = outputs[3]["error"].__cause__
    assert isinstance(cause, TypeError)
    assert cause.__notes__ == ["A record that a worker process receives must be picklable."]


def test_an_output_that_cannot_be_pickled_is_an_error_of_its_record(system: ActorSystem) -> None:
    def one(x: int) -> Any:
        return threading.Lock() if x == 3 else x

    def many(x: int) -> Any:
        yield x
        yield one(x)

    outputs = send_all(system.run(box(one, "(x) -> (y)", errors="variant")), rows(range(9)))
    assert [output.get("y") for output in outputs] == [None if x == 3 else x for x in range(9)]
    assert "must be picklable" in outputs[3]["error"].__cause__.__notes__[0]
    run = system.run(box(many, "(x) -> (y)"))
    run.send(rows(range(9)), timeout=TIMEOUT)
    with pytest.raises(BoxError, match="cannot pickle") as caught:
        run.finish(TIMEOUT)
    assert caught.value.record == {"x": 3}


@pytest.mark.parametrize("errors", ["fail", "variant"])
def test_a_record_with_which_nine_processes_end_is_an_error(
    system: ActorSystem, errors: Any
) -> None:
    run = system.run(box(leave_at_seven, "(x) -> (y)", errors=errors))
    run.send(rows(range(40)), timeout=TIMEOUT)
    if errors == "fail":
        with pytest.raises(BoxError, match=r"sent to 9 worker processes, .*status 3") as caught:
            run.finish(TIMEOUT)
        assert caught.value.record == {"x": 7}
        assert isinstance(caught.value.__cause__, ProcessLost)
    else:
        outputs = run.finish(TIMEOUT)
        assert isinstance(outputs.pop(7)["error"].__cause__, ProcessLost)
        assert values_of(outputs, "y") == [x for x in range(40) if x != 7]


@pytest.mark.parametrize("in_order", [False, True])
def test_a_killed_process_loses_no_record_and_doubles_none(
    system: ActorSystem, in_order: bool
) -> None:
    again = filtering("{x, <pid>, <n>} -> {x, <n=n-1>, <last=pid>}")
    net = split(star(where >> again, "{<n>} if <n == 0>"), "<k>")
    run = system.run(ordered(net) if in_order else net)
    number = 4000
    sent = ({"x": x, "<n>": 1 + x % 3, "<k>": x % 5} for x in range(number))
    found, killed = [], 0
    for output in run.results(sent):
        found.append(output["x"])
        if len(found) % 900 == 0:
            try:
                os.kill(output["<last>"], signal.SIGKILL)
            except ProcessLookupError:  # killed before
                continue
            killed += 1
    assert killed >= 2
    assert (found if in_order else sorted(found)) == [*range(number)]


def test_a_run_can_be_cancelled_though_a_box_never_returns(
    system: ActorSystem, letters: list[DeadLetter]
) -> None:
    [output] = send_all(system.run(where), rows([0]))
    process = os.pidfd_open(output["<pid>"])
    try:
        run = system.run(box(wait_for_ever, "(x) -> (y)"))
        run.send(rows(range(9)), timeout=TIMEOUT)
        run.cancel()
        with pytest.raises(NetEnded, match="cancelled"):
            run.finish(TIMEOUT)
        assert sorted(letter.message["x"] for letter in letters) == [*range(9)]
        assert {letter.reason for letter in letters} == {"stopped"}
        assert select.select([process], [], [], TIMEOUT)[0], "the process is still there"
    finally:
        os.close(process)
    outputs = send_all(system.run(where), rows(range(20)))
    assert values_of(outputs, "x") == [*range(20)]


def test_a_stopped_system_ends_a_run_whose_box_never_returns(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(root))
    with ActorSystem(processes=1) as system:
        run = system.run(box(wait_for_ever, "(x) -> (y)"))
        run.send(rows(range(3)), timeout=TIMEOUT)
        system.stop()
        with pytest.raises(NetEnded):
            run.finish(TIMEOUT)


def test_calls_are_counted_and_timed(system: ActorSystem) -> None:
    run = system.run(box(refuse_odd, "(x) -> (y)", errors="skip"))
    run.send(rows(range(100)), timeout=TIMEOUT)
    run.finish(TIMEOUT)
    seen = run.statistics()
    place = seen.places["/refuse_odd"]
    assert [place[name] for name in ("records", "calls", "tries")] == [100] * 3
    assert place["failures"] == 50
    assert (place["waiting"], seen.elsewhere, seen.calls) == (0, 0, {})
    assert 0 < place["worst"] <= place["busy"]


def test_a_box_without_inputs_begins_in_a_process(system: ActorSystem) -> None:
    first = box(os.getpid, "-> (y)", name="first")
    outputs = system.run(first | box(same, "(x) -> (y)")).finish(TIMEOUT)
    assert values_of(outputs, "y") != [os.getpid()]
    assert len(outputs) == 1


def test_a_main_program_needs_no_guard(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import os
            from callboard import ActorSystem
            from callboard.nets import box, star

            print("begun")

            @box("(n) -> (n) | (done)")
            def halve(n):
                return {"done": os.getpid()} if n <= 1 else {"n": n // 2}

            with ActorSystem(processes=2) as system, system.run(star(halve, "{done}")) as run:
                run.send([{"n": 20}])
                print(run.finish()[0]["done"] != os.getpid())
            """
        )
    )
    ended = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert (ended.stdout, ended.stderr) == ("begun\nTrue\n", "")


def test_a_net_without_processes_loads_nothing_of_them() -> None:
    program = (
        "import sys\n"
        "from callboard import ActorSystem\n"
        "from callboard.nets import box\n"
        "with ActorSystem() as system, system.run(box(abs, '(x) -> (y)')) as run:\n"
        "    run.send([{'x': -1}])\n"
        "    assert run.finish() == [{'y': 1}]\n"
        "print('callboard.worker_processes.processes' in sys.modules, 'cloudpickle' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "False False\n"
