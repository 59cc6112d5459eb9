"""The line of progress in a notebook."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from callboard.observing.progress_line import ProgressLine


class Line(ProgressLine):
    """Says how often it was asked."""

    def __init__(self) -> None:
        super().__init__(1000.0, None)
        self.asked = 0

    def _line(self, seconds: float) -> str:
        self.asked += 1
        return f"<b>{self.asked}"


class Cell:
    """The output of a notebook's cell."""

    def __init__(self, shown: Any) -> None:
        self.shown = [shown]

    def update(self, shown: Any) -> None:
        self.shown.append(shown)


def kernel(monkeypatch: pytest.MonkeyPatch, shell: object) -> list[Cell]:
    """Be a program in which IPython is imported, with that shell; return the outputs."""
    cells: list[Cell] = []

    def display(shown: Any, *, display_id: bool) -> Cell:
        assert display_id
        cells.append(Cell(shown))
        return cells[-1]

    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    ipython.display = types.SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    return cells


def test_a_notebook_has_one_output_that_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = kernel(monkeypatch, types.SimpleNamespace(kernel=object()))
    with Line():
        (cell,) = cells
        assert repr(cell.shown[0]) == ""
    assert [repr(one) for one in cell.shown] == ["", "<b>1"]
    assert cell.shown[1]._repr_html_() == "<p>&lt;b&gt;1</p>"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", [None, object()])
def test_a_program_that_is_no_kernel_has_lines(
    shell: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = kernel(monkeypatch, shell)
    with Line():
        pass
    assert cells == []
    assert capsys.readouterr().err == "<b>1\n"
