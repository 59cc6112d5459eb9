"""Folders of snapshots: for their user alone, without links, and with files that are broken."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from callboard.streams import Snapshot, SnapshotStore
from callboard.testing import ManualSystem
from tests.streams.test_snapshot_files import changed, counts, go_on, snapshot_of, two_snapshots


def test_a_newest_snapshot_that_cannot_be_read_gives_way_to_the_one_before(tmp_path: Path) -> None:
    snapshots, newest, _ = two_snapshots(tmp_path)
    whole = newest.read_bytes()
    for make in (
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.write_bytes(changed(11, 9)(whole)),
    ):
        newest.unlink()
        make(newest)
        assert go_on(counts, snapshots, ["b", "c"]) == [1, 2, 3]
        if newest.is_dir():
            with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
                Snapshot.load(newest)
            newest.rmdir()
            newest.touch()
        elif newest.is_fifo():
            with pytest.raises(OSError, match="is not a regular file"):
                Snapshot.load(newest)


def test_snapshots_are_for_their_user_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        _, newest, _ = two_snapshots(tmp_path / "state")
        snapshot_of(counts, ["a"]).save(tmp_path / "one")
    finally:
        os.umask(mask)
    modes = {path.stat().st_mode & 0o777 for path in (newest, newest.with_name("lock"))}
    assert modes == {0o600} == {(tmp_path / "one").stat().st_mode & 0o777}
    assert newest.parent.stat().st_mode & 0o777 == 0o700


def test_links_in_the_place_of_a_draft_or_a_lock_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    (tmp_path / "one.new").symlink_to(precious)
    snapshot_of(counts, ["a"]).save(tmp_path / "one")
    assert Snapshot.load(tmp_path / "one").position == {"rows": 1}
    assert precious.read_text() == "as it was"
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "lock").symlink_to(tmp_path / "new")
    with ManualSystem() as system, pytest.raises(OSError, match="symbolic links"):
        system.run(counts, restore=SnapshotStore(folder))
    assert not (tmp_path / "new").exists()


def test_a_full_disk_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    snapshot = snapshot_of(counts, ["a"])
    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(OSError, match="No space left"):
        snapshot.save(tmp_path / "one")
    assert [*tmp_path.iterdir()] == []
