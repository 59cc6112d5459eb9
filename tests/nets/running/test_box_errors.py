"""Errors of boxes: retries, timeouts, and the fate of a record that fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from callboard import ActorSystem, DeadLetter
from callboard.core.errors import ConfigError
from callboard.nets import BoxError, Net, NetOperator, RecordError, box, split, star
from callboard.nets import filter as filtering
from callboard.testing import ManualSystem
from tests.nets.running.gate import TIMEOUT, Gate, box_of, rows, send_all, values_of

KINDS = ["here", "threads", "dedicated", "async", "generator", "async generator"]


def failing(kind: str, **options: Any) -> Any:
    """Return a box that fails at odd values."""

    def check(x: int) -> int:
        if x % 2:
            raise ValueError(f"{x} is odd")
        return x

    return box_of(kind, check, name="check", **options)


@pytest.mark.parametrize("kind", KINDS)
def test_skips_are_dead_letters(system: ActorSystem, letters: list[DeadLetter], kind: str) -> None:
    run = system.run(failing(kind, errors="skip"))
    run.send([{"x": x, "more": x} for x in range(6)], timeout=TIMEOUT)
    outputs = run.finish(TIMEOUT)
    assert sorted(values_of(outputs, "y")) == [0, 2, 4]
    assert run.statistics().skipped == 3
    assert {letter.reason for letter in letters} == {"skipped"}
    assert sorted(letter.message["x"] for letter in letters) == [1, 3, 5]
    for letter in letters:
        assert isinstance(letter.error, BoxError)
        assert str(letter.error.__cause__) == f"{letter.message['x']} is odd"
        assert letter.error.path == "/check"


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_a_variant(system: ActorSystem, kind: str) -> None:
    run = system.run(failing(kind, errors="variant"))
    run.send([{"x": x, "more": x} for x in range(4)], timeout=TIMEOUT)
    outputs = run.finish(TIMEOUT)
    failed = [row for row in outputs if "error" in row]
    assert sorted(row["more"] for row in failed) == [1, 3]
    assert all(set(row) == {"error", "more"} for row in failed)
    assert all(isinstance(row["error"], BoxError) for row in failed)
    assert sorted(row["y"] for row in outputs if "y" in row) == [0, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_fails_the_run(system: ActorSystem, letters: list[DeadLetter], kind: str) -> None:
    run = system.run(failing(kind))
    with pytest.raises(BoxError) as caught:
        send_all(run, {"x": 1})
    text = "/check failed: ValueError: 1 is odd (the record was {'x': 1})"
    assert (str(caught.value), repr(caught.value)) == (text, f"BoxError({text!r})")
    assert isinstance(caught.value.__cause__, ValueError)
    assert [(letter.message, letter.reason) for letter in letters] == [({"x": 1}, "failed")]


@pytest.mark.parametrize("kind", KINDS)
def test_an_ask_fails_alone(system: ActorSystem, letters: list[DeadLetter], kind: str) -> None:
    run = system.run(filtering("{x} -> {x}; {x}") >> failing(kind))
    asked = [run.ask({"x": x}) for x in range(4)]
    for x, answer in enumerate(asked):
        if x % 2:
            with pytest.raises(BoxError, match=f"{x} is odd"):
                answer.result(TIMEOUT)
        else:
            assert answer.result(TIMEOUT) == [{"y": x}, {"y": x}]
    assert run.finish(TIMEOUT) == []
    assert not letters


@pytest.mark.parametrize("kind", ["here", "threads", "async", "generator", "async generator"])
def test_outputs_of_failed_calls_do_not_show(system: ActorSystem, kind: str) -> None:
    calls: Counter[int] = Counter()

    def third_time(x: int) -> int:
        calls[x] += 1
        if calls[x] < 3:
            raise ConnectionError(x)
        return x

    run = system.run(box_of(kind, lambda x: -1, third_time, retries=2, backoff=0.0))
    run.send(rows(range(5)), timeout=TIMEOUT)
    expected = list(range(5)) + ([-1] * 5 if "generator" in kind else [])
    assert sorted(values_of(run.finish(TIMEOUT), "y")) == sorted(expected)
    assert set(calls.values()) == {3}


def test_backoff_doubles(manual: ManualSystem) -> None:
    at: list[float] = []

    def never(x: int) -> int:
        at.append(manual.now)
        raise ConnectionError(x)

    run = manual.run(box(never, "(x) -> (y)", retries=3, backoff=1.0))
    answer = run.ask({"x": 1})
    assert manual.run_until(answer.done, 100)
    with pytest.raises(BoxError):
        answer.result(TIMEOUT)
    assert at == [0.0, 1.0, 3.0, 7.0]


@pytest.mark.parametrize("kind", ["async", "dedicated"])
def test_a_call_that_takes_too_long_has_failed(system: ActorSystem, kind: str) -> None:
    gate = Gate()
    wait: Any = gate.wait_here if kind == "async" else gate.wait
    dedicated = kind == "dedicated"
    run = system.run(box(wait, "(x) -> (y)", timeout=0.02, errors="variant", dedicated=dedicated))
    [output] = run.ask({"x": 1}).result(TIMEOUT)
    assert isinstance(output["error"].__cause__, TimeoutError)
    gate.open(1, 2)  # what comes of the first call now is not heeded
    while "error" in output:  # a busy machine may want more than that for an open gate
        [output] = run.ask({"x": 2}).result(TIMEOUT)
    assert output == {"y": 2}
    assert run.finish(TIMEOUT) == []


@pytest.mark.parametrize("kind", ["here", "async"])
def test_a_box_is_tried_any_number_of_times(system: ActorSystem, kind: str) -> None:
    tries: list[int] = []

    def at_last(x: int) -> int:
        tries.append(x)
        if len(tries) < 2000:
            raise ConnectionError(x)
        return x

    net = box_of(kind, at_last, retries=5000, backoff=0.0)
    assert system.run(net).ask({"x": 1}).result(TIMEOUT) == [{"y": 1}]
    assert len(tries) == 2000
    tries.clear()
    assert NetOperator(net).receive({"x": 1}) == [{"y": 1}]
    assert len(tries) == 2000


def test_a_backoff_is_31_years_at_most() -> None:
    options = failing("here", retries=2**40, backoff=1e-9).options
    assert [options.pause(tries) for tries in (0, 1, 100, 2000, 2**40)] == [1e-9, 2e-9] + [1e9] * 3


def test_a_downstream_error_in_a_stream_does_not_repeat_the_box_before_it() -> None:
    calls: list[int] = []

    def counted(x: int) -> int:
        calls.append(x)
        return x

    def never(y: int) -> int:
        raise ValueError(y)

    first = box(counted, "(x) -> (y)", retries=3)
    operator = NetOperator(first >> box(never, "(y) -> (z)"))
    with pytest.raises(BoxError, match="never"):
        operator.receive({"x": 1})
    assert calls == [1]


@pytest.mark.parametrize("kind", ["here", "threads"])
@pytest.mark.parametrize(
    ("result", "fact"),
    [({"z": 1}, "z"), ({"y": 1, "z": 1}, "z"), ({}, "y"), ({3: 1}, "3")],
    ids=repr,
)
def test_a_wrong_result_is_an_error(system: ActorSystem, kind: str, result: Any, fact: str) -> None:
    run = system.run(box(lambda x: result, "(x) -> (y)", name="odd", threads=kind == "threads"))
    with pytest.raises((RecordError, BoxError), match=fact) as caught:
        run.ask({"x": 1}).result(TIMEOUT)
    assert "/odd" in str(caught.value)
    with pytest.raises((RecordError, BoxError), match=fact):
        send_all(run, {"x": 1})


@pytest.mark.parametrize("result", [1, (1,), (1, 2, 3), "text", None.__class__], ids=str)
@pytest.mark.parametrize("signature", ["(x) -> (y, z)", "(x) -> (y) | (z)"])
def test_a_wrong_length_is_an_error(system: ActorSystem, result: Any, signature: str) -> None:
    run = system.run(box(lambda x: result, signature, name="odd"))
    with pytest.raises((RecordError, BoxError), match="/odd"):
        run.ask({"x": 1}).result(TIMEOUT)


@pytest.mark.parametrize("kind", ["here", "threads"])
def test_a_tag_is_an_integer(system: ActorSystem, kind: str) -> None:
    run = system.run(box(lambda x: "7", "(x) -> (<n>)", name="odd", threads=kind == "threads"))
    with pytest.raises((RecordError, BoxError), match="'7'"):
        run.ask({"x": 1}).result(TIMEOUT)
    assert run.finish(TIMEOUT) == []


def test_an_error_without_a_text_is_told_by_its_class(system: ActorSystem) -> None:
    @box("(x) -> (y)")
    def fail(x: int) -> None:
        raise KeyError

    with pytest.raises(BoxError, match=r"^/fail failed: KeyError \(the record"):
        system.run(fail).ask({"x": 1}).result(TIMEOUT)


CLASSES: dict[str, dict[str, Any]] = {"here": {}, "threads": {"threads": True}, "async": {}}


def starting(kind: str, starts: list[bool], **options: Any) -> Any:
    """Return a box of a class whose objects cannot be made while `starts` says so."""

    class Starts:
        def __init__(self) -> None:
            if not starts.pop(0):
                raise OSError("no licence")

        def __call__(self, x: int) -> int:
            return x

    class StartsAsync(Starts):
        async def __call__(self, x: int) -> int:  # type: ignore[override]
            return x

    cls = StartsAsync if kind == "async" else Starts
    return box(cls, "(x) -> (y)", name="starts", **CLASSES[kind], **options)


@pytest.mark.parametrize("around", ["alone", "split", "star"])
@pytest.mark.parametrize("kind", CLASSES)
def test_an_object_that_cannot_be_made_is_an_error_at_the_record_that_it_is_for(
    system: ActorSystem, letters: list[DeadLetter], kind: str, around: str
) -> None:
    def net(starts: list[bool], **options: Any) -> Net:
        made: Net = starting(kind, starts, **options)
        nets = {"alone": made, "split": split(made, "<k>"), "star": star(made, "{y}, {error}")}
        return nets[around]

    records = [{"x": x, "<k>": 0} for x in range(3)]
    run = system.run(net([False, True], errors="skip"))
    run.send(records, timeout=TIMEOUT)
    assert values_of(run.finish(TIMEOUT), "y") == [1, 2]
    assert [(letter.message["x"], letter.reason) for letter in letters] == [(0, "skipped")]
    run = system.run(net([False, True], errors="variant") >> filtering("{} -> {}"))
    run.send(records[0], timeout=TIMEOUT)
    [output] = run.finish(TIMEOUT)
    assert isinstance(output["error"].__cause__, OSError)
    run = system.run(net([False, True]))
    with pytest.raises(BoxError, match=r"starts failed: OSError: no licence .*'x': 0"):
        run.ask(records[0]).result(TIMEOUT)
    assert run.ask(records[1]).result(TIMEOUT) == [{"y": 1, "<k>": 0}]
    run = system.run(net([False]))
    with pytest.raises(BoxError, match=r"starts failed: OSError: no licence .*'x': 0"):
        send_all(run, records[0])


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("kind", KINDS)
def test_a_base_exception_fails_the_run_with_any_options(
    system: ActorSystem, letters: list[DeadLetter], kind: str, error: type[BaseException]
) -> None:
    calls: list[int] = []

    def leave(x: int) -> int:
        calls.append(x)
        raise error(3)

    retries = 0 if kind in ("here", "generator") else 2  # retries would have it run elsewhere
    run = system.run(box_of(kind, leave, name="leave", errors="skip", retries=retries))
    with pytest.raises(BoxError, match="/leave failed") as caught:
        run.ask({"x": 1}).result(TIMEOUT)
    assert isinstance(caught.value.__cause__, error)
    with pytest.raises(BoxError, match="/leave failed"):
        send_all(run, {"x": 2})
    assert [(letter.message, letter.reason) for letter in letters] == [({"x": 2}, "failed")]
    assert calls == [1, 2]
    other = system.run(failing(kind))
    assert other.ask({"x": 4}).result(TIMEOUT) == [{"y": 4}]


class Unreadable(Mapping[str, Any]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise ConnectionError(key)

    def __iter__(self) -> Iterator[str]:
        raise ConnectionError("it is gone")

    def __len__(self) -> int:
        return 1


def test_an_unreadable_row_is_refused(system: ActorSystem, letters: list[DeadLetter]) -> None:
    run = system.run(box(lambda x: x, "(x) -> (y)", name="echo"))
    with pytest.raises(RecordError, match="it is gone") as caught:
        run.send([{"x": 1}, Unreadable(), {"x": 2}], timeout=TIMEOUT)
    assert caught.value.sent == 1  # type: ignore[attr-defined]
    with pytest.raises(RecordError, match="it is gone"):
        run.ask(Unreadable()).result(TIMEOUT)
    bad = Unreadable()
    run.tell_many([bad, {"x": 3}])
    assert values_of(run.finish(TIMEOUT), "y") == [1, 3]
    assert [(letter.message, letter.reason) for letter in letters] == [(bad, "refused")]


@pytest.mark.parametrize("kind", ["here", "threads", "generator", "async generator"])
def test_a_wrong_output_is_an_error_by_the_options(
    system: ActorSystem, letters: list[DeadLetter], kind: str
) -> None:
    def odd(x: int) -> Any:
        return Unreadable() if x == 1 else {"z": 1} if x == 2 else x

    functions = (lambda x: odd(x) if x else 7), odd
    good = [7, 0] if "generator" in kind else [0]
    run = system.run(box_of(kind, *functions, errors="variant"))
    run.send([{"x": x, "k": x} for x in range(3)], timeout=TIMEOUT)
    outputs = run.finish(TIMEOUT)
    assert [row["y"] for row in outputs if "y" in row] == good
    assert sorted(row["k"] for row in outputs if "error" in row) == [1, 2]
    run = system.run(box_of(kind, *functions, errors="skip"))
    run.send([{"x": x, "k": x} for x in range(3)], timeout=TIMEOUT)
    assert values_of(run.finish(TIMEOUT), "y") == good
    assert sorted(letter.message["k"] for letter in letters) == [1, 2]
    assert {letter.reason for letter in letters} == {"skipped"}


def test_a_hint_that_names_no_policy_is_refused_at_the_start(system: ActorSystem) -> None:
    with pytest.raises(ConfigError, match="no policy 'anywhere'"):
        system.run(box(len, "(x) -> (y)", threads=True).at("anywhere"))
