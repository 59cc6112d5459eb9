"""The latest committed frames are kept in memory once, up to a limit."""

from pathlib import Path

from callboard.remote.protocol.requests import BatchName, Begin, Layout, UploadRows
from callboard.remote.storage.parts import FreshFrames, JournalFrame, StagedPart


def part(folder: Path, entry: str, *payloads: bytes, to_file: bool = False) -> StagedPart:
    begun = Begin(0, 0, BatchName("job", 1), 5, 1)
    made = StagedPart(begun, entry, folder / entry, 0.0)
    for number, payload in enumerate(payloads):
        rows = UploadRows(0, number, Layout.ROWS, len(payload), memoryview(payload))
        made.add(rows, to_file and number > 0)
    return made


def test_rows_are_kept_by_batch_and_entry_and_taken_once(tmp_path: Path) -> None:
    fresh = FreshFrames(100)
    fresh.keep(1, [part(tmp_path, "a", b"12", b"345"), part(tmp_path, "b", b"6")])
    fresh.keep(2, [part(tmp_path, "a", b"7")])
    assert fresh.take(1, "a") == [
        JournalFrame(5, 0, Layout.ROWS, b"12"),
        JournalFrame(5, 2, Layout.ROWS, b"345"),
    ]
    assert fresh.take(1, "a") is None
    assert fresh.take(1, "b") == [JournalFrame(5, 0, Layout.ROWS, b"6")]
    assert fresh.take(2, "a") == [JournalFrame(5, 0, Layout.ROWS, b"7")]
    assert fresh.take(3, "a") is None


def test_frames_beyond_the_limit_are_not_kept(tmp_path: Path) -> None:
    fresh = FreshFrames(4)
    fresh.keep(1, [part(tmp_path, "a", b"123")])
    fresh.keep(2, [part(tmp_path, "a", b"4"), part(tmp_path, "b", b"5")])
    assert fresh.take(2, "a") is fresh.take(2, "b") is None
    fresh.keep(3, [part(tmp_path, "a", b"6")])
    assert fresh.take(1, "a")
    fresh.keep(4, [part(tmp_path, "a", b"789")])
    assert fresh.take(3, "a")
    assert fresh.take(4, "a")


def test_frames_staged_in_a_file_are_not_kept(tmp_path: Path) -> None:
    fresh = FreshFrames(100)
    fresh.keep(1, [part(tmp_path, "a", b"12", b"3", to_file=True), part(tmp_path, "b", b"4")])
    assert fresh.take(1, "a") is fresh.take(1, "b") is None
