"""The command that answers one of TPCx-BB's queries."""

import subprocess
import sys
from pathlib import Path

import pytest

from tpcxbb.command import main


def test_the_script_prints_the_answer_and_the_rate(examples: Path) -> None:
    script = examples / "tpcxbb" / "run.py"
    command: list[str | Path] = [
        sys.executable,
        "-W",
        "error",
        script,
        "--query=4",
        "--scale=0.001",
    ]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    title, header, row, _, rate = ran.stdout.splitlines()
    assert title == "Carts left behind"
    assert header.split() == ["sessions", "pages", "average"]
    sessions, pages, average = map(float, row.split())
    assert average == pytest.approx(pages / sessions, abs=0.001)
    assert rate.endswith(" rows/s")


def test_a_long_answer_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--query=2", "--scale=0.001", "--top=3"]) == 0
    title, header, *rows, more, _, _ = capsys.readouterr().out.splitlines()
    assert title == "Products viewed together in a session"
    assert header.split() == ["first", "second", "sessions"]
    assert len(rows) == 3
    assert more == "  and 27 more"


@pytest.mark.parametrize("query", [3, 15])
def test_questions_about_file_changes(capsys: pytest.CaptureFixture[str], query: int) -> None:
    assert main([f"--query={query}", "--changes"]) == 0
    output = capsys.readouterr().out
    assert "actor-framework" in output
    assert "42,445 rows in " in output


def test_an_empty_answer_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("ts,author,repo,commit,path,added,deleted\n")
    assert main(["--query=2", "--changes", str(empty)]) == 0
    assert capsys.readouterr().out.startswith("Files seen together in a session\n  first")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--scale=0"], "run: the scale is 0.0, which is not more than 0\n"),
        (["--changes=absent.csv"], "run: [Errno 2] No such file or directory: 'absent.csv'\n"),
    ],
)
def test_an_error_of_the_input_is_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], error: str
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == error


def test_spark_is_not_asked_about_file_changes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--program=spark", "--changes"])
    assert "the SQL is about the shop, not about file changes" in capsys.readouterr().err
