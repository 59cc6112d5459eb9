from pathlib import Path
from typing import Any

import pytest

from callboard.core.threads import cores


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine of eight cores, and a process in the control group /a/b."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(cores, "_CGROUPS", tmp_path)
    groups = [tmp_path / "a" / "b", tmp_path / "a", tmp_path]
    groups[0].mkdir(parents=True)
    monkeypatch.setattr(cores, "_control_groups", lambda: groups)
    return groups


def test_without_a_quota_the_affinity_counts(machine: Any) -> None:
    assert cores.usable_cores() == 8


@pytest.mark.parametrize(
    ("limits", "usable"),
    [
        ({0: "max 100000"}, 8),
        ({0: "200000 100000"}, 2),
        ({0: "150000 100000"}, 2),
        ({0: "10000 100000"}, 1),
        ({0: "400000 100000", 1: "300000 100000"}, 3),
        ({0: "nonsense"}, 8),
        ({0: "100000 0"}, 8),
    ],
)
def test_the_least_quota_of_the_groups_counts(machine: Any, limits: Any, usable: int) -> None:
    for number, limit in limits.items():
        (machine[number] / "cpu.max").write_text(limit + "\n")
    assert cores.usable_cores() == usable


def test_the_older_control_groups_count_too(machine: Any) -> None:
    (machine[0] / "cpu.cfs_quota_us").write_text("300000\n")
    (machine[0] / "cpu.cfs_period_us").write_text("100000\n")
    (machine[1] / "cpu.cfs_quota_us").write_text("-1\n")
    (machine[1] / "cpu.cfs_period_us").write_text("100000\n")
    assert cores.usable_cores() == 3


def test_this_process_may_use_a_core() -> None:
    assert cores.usable_cores() >= 1
