"""`callboard net`: a text as a program."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from callboard.__main__ import main

TEXT = """
net twice ({n} -> {m}) { box double ((n) -> (m)); } connect double;
net counted connect [{<t>} -> {<t=t+1>}];
"""
MODULE = """
from collections import Counter as unused

def double(n):
    return 2 * n
"""


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "boxes_of_a_test", raising=False)
    (tmp_path / "boxes_of_a_test.py").write_text(MODULE)
    file = tmp_path / "some.snet"
    file.write_text(TEXT)
    return file


def given(monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))


def test_records_go_from_standard_input_to_standard_output(
    text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, '{"n": 1}\n{"n": "a"}\n')
    assert main(["net", str(text), "--boxes", "boxes_of_a_test", "--name", "twice"]) == 0
    assert capsys.readouterr().out == '{"m": 2}\n{"m": "aa"}\n'


@pytest.mark.parametrize(
    ("arguments", "lines", "reason"),
    [
        (["none.snet"], "", "none.snet"),
        (["some.snet"], "", "double"),
        (["some.snet", "--boxes", "no_such_module"], "", "no_such_module"),
        (["some.snet", "--boxes", "boxes_of_a_test", "--name", "x"], "", "no net 'x'"),
        (["some.snet", "--boxes", "boxes_of_a_test"], "no JSON", "line 1"),
        (["some.snet", "--boxes", "boxes_of_a_test", "--name", "twice"], '{"n": {}}', "double"),
    ],
)
def test_an_error_is_said_in_one_line(
    text: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    lines: str,
    reason: str,
) -> None:
    given(monkeypatch, lines)
    assert main(["net", *arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith("callboard net: ")
    assert reason in said
