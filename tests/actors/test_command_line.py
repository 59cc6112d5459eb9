"""`python -m callboard` itself; each command's own tests are elsewhere."""

import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import callboard
from callboard.__main__ import COMMANDS, main


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"callboard {callboard.__version__}\n"


def test_an_unknown_command_lists_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tpo"]) == 2
    error = capsys.readouterr().err
    assert "callboard: expected a command, got 'tpo'; did you mean 'top'?\n" in error
    assert main(["--help"]) == 0
    usage = capsys.readouterr().out
    assert error.endswith(usage)
    lines = {line.split()[0]: line.split()[1:] for line in usage.splitlines()[2:]}
    assert lines.keys() == COMMANDS.keys()
    assert all(lines.values())


def test_the_program_is_found_where_the_package_says(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    program = EntryPoint("callboard", scripts["callboard"], "console_scripts").load()
    monkeypatch.setattr(sys, "argv", ["callboard", "--version"])
    assert program() == 0
    assert capsys.readouterr().out == f"callboard {callboard.__version__}\n"


def test_each_command_has_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as exit_of:
            main([command, "--help"])
        assert exit_of.value.code == 0
        assert f"callboard {command}" in capsys.readouterr().out


def test_the_demo_runs_a_system_that_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seconds", "0"]) == 0
    out = capsys.readouterr().out
    assert "callboard top demo" in out
    assert "orders" in out
    with pytest.raises(SystemExit):
        main(["demo", "--seconds", "-1"])


def test_the_bench_says_how_much_this_machine_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--seconds", "0"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert "processors, Python 3." in first
    assert [line.split()[-1] for line in lines] == ["messages/s", "messages/s", "rows/s"]
    assert all(int(line.split()[-2].replace(",", "")) > 0 for line in lines)
    with pytest.raises(SystemExit):
        main(["bench", "--seconds", "-1"])


def test_a_wrong_result_of_the_bench_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ("rows through nothing", "rows", lambda seconds: (1, 1.0, False))
    monkeypatch.setattr("callboard.demo.bench._MEASUREMENTS", (wrong,))
    assert main(["bench"]) == 1
    assert "1 rows/s  wrong result" in capsys.readouterr().out
