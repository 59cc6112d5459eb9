"""The demo's plain logic: sessions, the answers, the reader and the progress bar."""

import gzip
import io
from pathlib import Path

import pytest

from answers import Answers
from changes import read_changes
from progress import Progress
from sessions import Change, FileCount, Session, Sessions
from tests.examples.sequential import changes_by_file, sessions_of

MINUTE = 60


def change(ts: int, author: int = 1, commit: int = 1, path: str = "a.py") -> Change:
    return Change(ts, author, "repo", commit, path, added=2, deleted=1)


def test_a_pause_of_sixty_minutes_ends_a_session() -> None:
    sessions = Sessions()
    assert sessions.add([change(0), change(60 * MINUTE, commit=2)]) == [Session(1, 0, 0, 1, 1, 3)]
    assert sessions.end_all() == [Session(1, 3600, 3600, 1, 1, 3)]


def test_a_pause_of_a_second_less_does_not_end_a_session() -> None:
    sessions = Sessions()
    assert sessions.add([change(0), change(60 * MINUTE - 1, commit=2)]) == []
    assert sessions.end_all() == [Session(1, 0, 3599, 2, 2, 6)]


def test_authors_do_not_share_a_session() -> None:
    sessions = Sessions()
    assert sessions.add([change(0, author=1), change(5, author=2, commit=2)]) == []
    assert [session.author for session in sessions.end_all()] == [1, 2]


def test_a_commit_of_many_files_counts_once() -> None:
    sessions = Sessions()
    sessions.add([change(0, path=name) for name in "abc"])
    assert sessions.end_all() == [Session(1, 0, 0, commits=1, changes=3, lines=9)]


def test_changes_out_of_time_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"author 1's commit 2 is of 9, after one of 10"):
        Sessions().add([change(10), change(9, commit=2)])


def test_sessions_that_ended_are_not_returned_twice() -> None:
    sessions = Sessions()
    sessions.add([change(0)])
    assert len(sessions.end_all()) == 1
    assert sessions.end_all() == []


def test_the_oracle_agrees_with_a_case_counted_by_hand() -> None:
    # Two authors; author 7 pauses 3,600 s after the first two commits; author 8 commits once.
    rows = [
        dict(zip(Change._fields, row.split(","), strict=True))
        for row in (
            "0,7,r,1,a,1,0",
            "0,7,r,1,b,1,1",
            "100,8,s,2,a,5,5",
            "3599,7,s,3,a,0,2",
            "7199,7,r,4,a,1,1",
        )
    ]
    assert sessions_of(rows) == [(7, 0, 3599, 2, 3, 5), (7, 7199, 7199, 1, 1, 2),
                                 (8, 100, 100, 1, 1, 10)]  # fmt: skip
    assert changes_by_file(rows) == {("r", "a"): 2, ("r", "b"): 1, ("s", "a"): 2}


def test_answers_add_up_the_counts_of_one_file_from_several_partitions() -> None:
    answers = Answers()
    answers.add([FileCount("r", "a", 2), FileCount("r", "b", 4)])
    answers.add([FileCount("r", "a", 3)])
    assert answers.hottest(5) == [FileCount("r", "a", 5), FileCount("r", "b", 4)]


def test_answers_do_not_depend_on_the_order_of_records() -> None:
    records: list[Session | FileCount] = [
        Session(1, 0, 60, 2, 2, 9),
        Session(2, 0, 60, 2, 2, 9),
        Session(1, 9000, 9060, 2, 2, 9),
        FileCount("r", "a", 1),
        FileCount("r", "b", 1),
    ]
    forwards, backwards = Answers(), Answers()
    forwards.add(records)
    backwards.add(reversed(records))
    assert forwards.render() == backwards.render()
    assert [s.author for s in forwards.longest(5)] == [1, 2, 1]
    assert [total.author for total in forwards.busiest(5)] == [1, 2]


def test_answers_to_nothing_can_be_printed() -> None:
    assert Answers().render().startswith("0 changes in 0 commits by 0 authors")


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


HEADER = "ts,author,repo,commit,path,added,deleted\r\n"


@pytest.mark.parametrize("name", ["changes.csv", "changes.csv.gz"])
def test_quotes_spaces_and_commas_in_a_path_are_read(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, HEADER + '5,1,r,2,"""a, \\303\\244"" ",3,4\r\n')
    with path.open("rb") as file:
        assert list(read_changes(file)) == [Change(5, 1, "r", 2, '"a, \\303\\244" ', 3, 4)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a,b\n", r"line 1: the columns are \['a', 'b'\], not \['ts'"),
        ("", r"line 0: the columns are \[\]"),
        (HEADER + "1,2,r,3,p,0,0\n1,x,r,3,p,0,0\n", "line 3: .*'x'"),
        (HEADER + "1,2,r\n", "line 2: .*values to unpack"),
        (HEADER + '1,2,r,3,"p,0,0\n', "unexpected end of data"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, text: str, error: str) -> None:
    bad = write(tmp_path / "bad.csv", text)
    with bad.open("rb") as file, pytest.raises(ValueError, match=rf"bad\.csv, .*{error}"):
        list(read_changes(file))


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, sample: Path) -> None:
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(sample.read_bytes()[:10_000])
    with cut.open("rb") as file, pytest.raises(ValueError, match=r"cut\.csv\.gz, line \d+: "):
        list(read_changes(file))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_redraws_one_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock(monkeypatch)
    screen = Terminal()
    with Progress("reading", screen) as progress:
        progress.update(1, 200)  # too soon after the start
        assert screen.getvalue() == ""
        now[0] += 1.0
        progress.update(100, 200)
        assert screen.getvalue() == "\r\x1b[Kreading [" + "#" * 15 + "." * 15 + "]  50%"
    assert screen.getvalue().endswith("\r\x1b[K")


def test_progress_writes_plain_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock(monkeypatch)
    log = io.StringIO()
    with Progress("reading", log) as progress:
        now[0] += 1.0
        progress.update(50, 200)
        now[0] += 9.0
        progress.update(300, 200)  # a file that grows while it is read
    assert log.getvalue() == "reading [" + "#" * 30 + "] 100%\n"


def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("progress.time.monotonic", lambda: now[0])
    return now
