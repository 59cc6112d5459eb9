"""The measured use of the processors."""

import threading
import time
from pathlib import Path

import pytest

from callboard.scheduling.elasticity import processors
from callboard.scheduling.elasticity.processors import Processors, queued_ns


@pytest.fixture(autouse=True)
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "limiting_group", lambda: None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    times = {"monotonic": 0.0, "process_time": 0.0}
    for name in times:
        monkeypatch.setattr(time, name, lambda name=name: times[name])
    return times


def test_the_machines_part_is_what_was_not_idle(tmp_path: Path, clock: dict[str, float]) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 2 3\n")
    reading = Processors(stat)
    stat.write_text("cpu  40 0 20 100 30 5 5 0 25 0\n")
    clock["monotonic"] = 2.0
    assert reading.read()[0] == pytest.approx(50 / 100)


def test_a_process_may_use_several_processors(tmp_path: Path, clock: dict[str, float]) -> None:
    reading = Processors(tmp_path / "none")
    clock.update(monotonic=2.0, process_time=5.0)
    assert reading.read() == (0.0, 2.5)
    assert reading.read() == (0.0, 0.0)  # no time has passed


@pytest.mark.parametrize("text", ["", "cpu 1 2", "cpu a b c d e", "intr 1 2 3 4 5 6"])
def test_unreadable_figures_are_unknown(text: str, tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(text)
    reading = Processors(stat)
    assert reading.read()[0] == 0.0


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("cpu.stat", "usage_usec 1000000\nuser_usec 5\n", "usage_usec 4000000\nuser_usec 5\n"),
        ("cpuacct.usage", "1000000000\n", "4000000000\n"),
    ],
)
def test_a_quota_that_is_used_up_counts_as_a_full_machine(
    name: str,
    before: str,
    after: str,
    tmp_path: Path,
    clock: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processors, "limiting_group", lambda: (tmp_path, 2.0))
    (tmp_path / name).write_text(before)
    reading = Processors(tmp_path / "none")
    (tmp_path / name).write_text(after)
    clock["monotonic"] = 2.0
    assert reading.read()[0] == pytest.approx(3 / 2 / 2)


def test_this_machine_can_be_read() -> None:
    reading = Processors()
    sum(range(3_000_000))
    machine, process = reading.read()
    assert 0 <= machine <= 1
    assert process > 0


def test_the_wait_of_a_thread_for_a_processor_is_known_or_0() -> None:
    assert queued_ns(threading.get_native_id()) >= 0
    assert queued_ns(2**30) == 0
