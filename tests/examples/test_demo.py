"""The demo, as a function and as a script, against plain sequential code."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from answers import Answers
from demo import main, track
from tests.examples.sequential import changes_by_file, read_rows, sessions_of

SPARK_IS_SLOW = pytest.mark.timeout(300)  # to start, on a busy machine
Run = Callable[..., subprocess.CompletedProcess[str]]


def assert_is_right(answers: Answers, data: Path) -> None:
    """Compare every session and every file, not only those that are printed."""
    rows = read_rows(data)
    found = Counter(
        (s.author, s.start, s.end, s.commits, s.changes, s.lines) for s in answers.sessions
    )
    assert found == Counter(sessions_of(rows))
    assert answers.files == changes_by_file(rows)


@pytest.mark.parametrize("workers", [1, 3])
def test_an_actor_system_finds_what_sequential_code_finds(data: Path, workers: int) -> None:
    assert_is_right(track(data, workers), data)


@SPARK_IS_SLOW
@pytest.mark.parametrize("partitions", [1, 5])
def test_spark_finds_what_sequential_code_finds(data: Path, partitions: int) -> None:
    pytest.importorskip("pyspark", reason="needs the extra spark")
    from on_spark import running_spark, track_on_spark

    with running_spark(cores=2) as spark:
        assert_is_right(track_on_spark(spark, data, partitions), data)


def test_input_out_of_time_order_fails_the_run(tmp_path: Path) -> None:
    path = tmp_path / "unsorted.csv"
    path.write_text("ts,author,repo,commit,path,added,deleted\n20,1,r,1,a,0,0\n10,1,r,2,a,0,0\n")
    with pytest.raises(ValueError, match="author 1's commit 2 is of 10, after one of 20"):
        track(path, 2)


@pytest.fixture
def run(examples: Path) -> Run:
    """Run the demo as a script; a warning is an error."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", examples / "demo.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    return run


def assert_prints_the_answers(ran: subprocess.CompletedProcess[str], data: Path) -> None:
    assert ran.returncode == 0, ran.stderr
    rows = read_rows(data)
    sessions = sessions_of(rows)
    author, start, end, *_ = max(sessions, key=lambda session: session[2] - session[1])
    minutes = round((end - start) / 60)
    day = datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%d %H:%M")
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert f"{len(rows):,} changes" in ran.stdout
    assert f"{len(sessions):,} sessions" in ran.stdout
    assert f"{author}  {day}  {minutes // 60} h {minutes % 60:02} min" in ran.stdout
    for (repo, path), count in changes_by_file(rows).most_common(5):
        assert [str(count), repo, path] in lines
    assert ran.stdout.endswith(" changes/s\n")


def test_the_script_prints_the_answers(run: Run, sample: Path) -> None:
    assert_prints_the_answers(run("--no-spark", "--workers=2"), sample)


@SPARK_IS_SLOW
def test_the_script_prints_the_same_answers_with_spark(run: Run, sample: Path) -> None:
    pytest.importorskip("pyspark", reason="needs the extra spark")
    assert_prints_the_answers(run("--workers=2", "--partitions=3"), sample)


def test_a_file_without_changes_has_no_sessions(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("ts,author,repo,commit,path,added,deleted\n")
    ran = run("--no-spark", empty)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("0 changes in 0 commits by 0 authors\n0 sessions of work")


def test_a_file_that_does_not_exist_is_named(run: Run) -> None:
    ran = run("--no-spark", "absent.csv")
    assert ran.returncode == 2
    assert ran.stderr == "demo: [Errno 2] No such file or directory: 'absent.csv'\n"


def test_fewer_than_one_worker_is_refused(run: Run) -> None:
    ran = run("--no-spark", "--workers=0")
    assert ran.returncode == 2
    assert "argument --workers: 0 is less than 1" in ran.stderr


def test_without_pyspark_the_script_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "on_spark", raising=False)
    assert main([]) == 2
    assert "pip install 'callboard[spark]', or use --no-spark" in capsys.readouterr().err
