"""`python -m callboard` itself; its commands are tested with what they do."""

import pytest

import callboard
from callboard.__main__ import main


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"callboard {callboard.__version__}\n"


def test_an_unknown_command_is_answered_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["srve"]) == 2
    assert "[--version] {serve,health,info,top,tree,dump}" in capsys.readouterr().err
