"""Boxes of `processes="auto"` that change their place, whatever they cost."""

from __future__ import annotations

import pytest

from callboard.nets.running import process_coordinator
from callboard.nets.running.box_choice import BoxChoice
from callboard.worker_processes import processes


def have_two_cores(patched: pytest.MonkeyPatch) -> None:
    """Have systems see two cores, on which threads do not run Python side by side."""
    patched.setattr(processes, "usable_cores", lambda: 2)
    patched.setattr(processes, "has_gil", lambda: True)


def change_places(patched: pytest.MonkeyPatch) -> None:
    """Have each box change its place whenever its costs have been looked at twice."""

    def choose(choice: BoxChoice) -> None:
        looks[choice] = looks.get(choice, 0) + 1
        if looks[choice] % 2 == 0:
            choice.is_here = not choice.is_here

    looks: dict[BoxChoice, int] = {}
    patched.setattr(BoxChoice, "_choose", choose)
    patched.setattr(process_coordinator, "_UNSEEN", 0)


def always_leave(patched: pytest.MonkeyPatch) -> None:
    """Have each box go to the processes after its first turn."""

    def choose(choice: BoxChoice) -> None:
        choice.is_here = False

    patched.setattr(BoxChoice, "_choose", choose)
    patched.setattr(process_coordinator, "_UNSEEN", 0)
