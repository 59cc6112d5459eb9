"""The number of workers in a task: an elastic one is never above the task's CPUs."""

from __future__ import annotations

from typing import Any

import pytest

from callboard.scheduling.config import Config
from callboard.spark.tasks.settings import SystemSettings


@pytest.mark.parametrize(
    ("workers", "cpus", "wanted"),
    [
        (None, 2, 2),
        (5, 2, 5),
        ("elastic", 2, (1, 2)),
        ((1, 8), 2, (1, 2)),
        ((4, 8), 2, (2, 2)),
        ((1, 2), 4, (1, 2)),
    ],
)
def test_a_level_is_within_the_tasks_cpus(workers: Any, cpus: int, wanted: Any) -> None:
    assert SystemSettings.read(None, workers).for_task(cpus).workers == wanted
    if workers is not None:
        settings = SystemSettings.read({"workers": workers}, None).for_task(cpus)
        assert settings.config == {"workers": wanted}


def test_the_level_in_a_loaded_configuration_is_limited_too() -> None:
    settings = SystemSettings.read(Config.load({"workers": (3, 8)}), None).for_task(2)
    assert (settings.config.least_workers, settings.config.workers) == (2, 2)
    assert settings.config.elasticity is not None
    fixed = SystemSettings.read(Config.load({"workers": 8}), None).for_task(2)
    assert fixed.config.workers == 8
