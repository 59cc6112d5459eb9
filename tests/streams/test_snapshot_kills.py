"""Processes that are killed at random moments, and resume from their last snapshots."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 6
ROWS = 6_000
PROGRAM = """
import sys
from callboard import ActorSystem
from callboard.streams import SessionWindow, SnapshotStore, entry

ROWS = int(sys.argv[1])

def key_of(row):
    return 0 if row % 3 else row % 101  # most rows have one key

graph = (
    entry("rows")
    .watermarks(lambda row: row, delay_threshold=5, every=7)
    .key_by(key_of, partitions=8)
    .window(SessionWindow(40, by=lambda row: row), sum)
    .key_by(lambda pair: pair[0])
    .scan(0, lambda total, pair: total + pair[1].value)
    .to("out.txt")
)
if __name__ == "__main__":
    with ActorSystem(workers=2) as system:
        run = system.run(graph, restore=SnapshotStore("state", every=0.005), batch_size=16)
        at = run.position["rows"]
        print(at, flush=True)
        while at < ROWS:
            to = min(at + 50, ROWS)  # a snapshot may be behind a part of these rows
            run.send("rows", range(at, to))
            at = to
            if at % 500 < 50:
                run.snapshot()
            print(at, flush=True)
        run.finish()
"""


@pytest.mark.timeout(240)
def test_a_process_that_is_killed_goes_on_and_its_file_is_whole(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py", str(ROWS)]
    positions = []
    for kill in range(KILLS):
        lines = random.Random(kill).randrange(12, 40)
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            positions.append(int(process.stdout.readline()))
            for _ in range(lines):
                process.stdout.readline()
            process.kill()
    last = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert last.returncode == 0, last.stderr
    positions.append(int(last.stdout.split()[0]))
    assert positions[0] == 0
    assert positions == sorted(positions)
    assert positions[-1] >= 500  # a snapshot was there at the first kill
    got = (tmp_path / "out.txt").read_text()
    (tmp_path / "out.txt").unlink()
    program = f"from program import graph; graph.run_sequentially({{'rows': range({ROWS})}})"
    plain = [sys.executable, "-c", program, str(ROWS)]
    subprocess.run(plain, cwd=tmp_path, check=True, timeout=120)
    assert got == (tmp_path / "out.txt").read_text()
