"""Throughputs are remembered, by program and load, across runs."""

import json
import logging
from pathlib import Path

import pytest

from callboard.core.errors import ConfigError
from callboard.scheduling.elasticity.rates import Rates
from callboard.scheduling.elasticity.remembered_loads import Remembered, program_of
from tests.scheduling.elasticity.model import System, lock, plateau


def test_a_load_is_known_again_by_its_throughput_at_a_level() -> None:
    memory = Remembered()
    memory.learn("a", {1: 100.0, 8: 800.0})
    memory.learn("a", {1: 10.0, 4: 40.0})
    assert memory.recall("a", 1, 108.0) == {1: 100.0, 8: 800.0}
    assert memory.recall("a", 1, 9.5) == {1: 10.0, 4: 40.0}
    assert memory.recall("a", 4, 38.0) == {1: 10.0, 4: 40.0}
    assert memory.recall("a", 1, 50.0) is None
    assert memory.recall("a", 2, 100.0) is None
    assert memory.recall("b", 1, 100.0) is None
    assert memory.recall("a", 1, 0.0) is None


def test_new_measurements_replace_old_ones() -> None:
    memory = Remembered()
    memory.learn("a", {1: 100.0, 8: 800.0})
    memory.learn("a", {1: 101.0, 8: 500.0})
    assert memory.recall("a", 1, 100.0) == {1: 101.0, 8: 500.0}


def test_a_file_keeps_it_across_runs(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    Remembered(path).learn("a", {1: 100.0, 8: 800.0})
    assert Remembered(path).recall("a", 1, 100.0) == {1: 100.0, 8: 800.0}
    assert [each.name for each in tmp_path.iterdir()] == ["levels.json"]


def test_a_file_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    memory = Remembered(path)
    for program in range(70):
        memory.learn(f"{program}", {1: 1.0})
    for load in range(20):
        memory.learn("a", {1: 2.0**load})
    kept = json.loads(path.read_text())["programs"]
    assert len(kept) == 64
    assert list(kept)[-1] == "a"
    assert len(kept["a"]) == 16
    assert Remembered(path).recall("a", 1, 2.0**19) == {1: 2.0**19}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        '{"format": "another"}',
        '{"format": "callboard elasticity 1", "programs": {"a": [{"x": 1}]}}',
        '{"format": "callboard elasticity 1", "programs": {"a": [{"0": 1}]}}',
        '{"format": "callboard elasticity 1", "programs": {"a": [{"1": -1}]}}',
        '{"format": "callboard elasticity 1", "programs": {"a": [{"1": NaN}]}}',
        '{"format": "callboard elasticity 1", "programs": [1]}',
    ],
)
def test_a_file_of_something_else_is_an_error_and_stays_as_it_is(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.json is not a file of elasticity"):
        Remembered(path)
    assert path.read_text() == text


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such folder"):
        Remembered(tmp_path / "no" / "levels.json")
    with pytest.raises(ConfigError, match="cannot read"):
        Remembered(tmp_path)


def test_an_unwritable_file_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "folder").mkdir()
    memory = Remembered(tmp_path / "folder" / "levels.json")
    (tmp_path / "folder").rmdir()
    with caplog.at_level(logging.WARNING, "callboard"):
        memory.learn("a", {1: 1.0})
    assert "elasticity could not be remembered" in caplog.text
    assert memory.recall("a", 1, 1.0) == {1: 1.0}


def test_programs_are_told_apart_by_their_stages() -> None:
    assert program_of(["a", "b"]) == program_of(iter(["a", "b"]))
    assert len({program_of(each) for each in ([], ["a"], ["b"], ["a", "b"], ["b", "a"])}) == 5


def test_a_remembered_load_takes_two_periods(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    capacity = lock(8, 0.1)
    System(Rates(1, 64, memory=Remembered(path)), capacity).run(6)
    again = System(Rates(1, 64, memory=Remembered(path)), capacity).run(10)
    assert again.levels == [8] * 10
    assert again.reasons[0] == (
        "1 worker did 1,000 a second, as once before: then 8 did 8,000 a second."
    )
    assert again.reasons[1] == "8 workers did 8,000 a second, as it did before."


def test_a_remembered_level_that_does_less_now_is_not_believed() -> None:
    memory = Remembered()
    System(Rates(1, 64, memory=memory), plateau(40)).run(6)
    other = System(Rates(1, 64, memory=memory), lock(8, 0.1)).run(6)
    assert other.share(64) >= 0.95
