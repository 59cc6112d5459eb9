"""Boxes that change their place, whatever they cost: of `processes="auto"`, and of workers."""

from __future__ import annotations

import pytest

from callboard.nets.running import batch_coordinator, run
from callboard.nets.running.box_choice import BoxChoice, WorkerChoice
from callboard.worker_processes import processes


def have_two_cores(patched: pytest.MonkeyPatch) -> None:
    """Have systems see two cores, on which threads do not run Python side by side."""
    patched.setattr(processes, "usable_cores", lambda: 2)
    patched.setattr(processes, "has_gil", lambda: True)


def share_boxes(patched: pytest.MonkeyPatch) -> None:
    """Have the workers of new systems run Python side by side, and share the boxes of new runs."""
    patched.setattr("callboard.system.has_gil", lambda: False)
    patched.setattr(run, "has_gil", lambda: False)


def change_places(patched: pytest.MonkeyPatch) -> None:
    """Have each box change its place whenever its costs have been looked at twice."""

    def choose(choice: BoxChoice) -> None:
        looks[choice] = looks.get(choice, 0) + 1
        if looks[choice] % 2 == 0:
            choice.is_here = not choice.is_here

    looks: dict[BoxChoice, int] = {}
    patched.setattr(BoxChoice, "_choose", choose)
    patched.setattr(WorkerChoice, "_choose", choose)
    patched.setattr(batch_coordinator, "_UNSEEN", 0)


def always_leave(patched: pytest.MonkeyPatch) -> None:
    """Have each box leave the coordinator after its first turn."""

    def choose(choice: BoxChoice) -> None:
        choice.is_here = False

    patched.setattr(BoxChoice, "_choose", choose)
    patched.setattr(WorkerChoice, "_choose", choose)
    patched.setattr(batch_coordinator, "_UNSEEN", 0)
