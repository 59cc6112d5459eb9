"""The demo on two executors and two servers finds what the plain program finds."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

EXAMPLE = Path(__file__).parents[2] / "examples" / "on_shards.py"


def changes(file: Path, commits: int) -> int:
    """Make up a stream in time order, with times that several commits share; return its length."""
    chance = random.Random(7)
    lines, time = ["ts,author,repo,commit,path,added,deleted"], 1_600_000_000
    for commit in range(commits):
        time += chance.choice([0, 5, 600, 3600, 9000])
        author = chance.randrange(40)
        for _ in range(chance.randint(1, 6)):
            path = chance.choice(["main.py", '"a, b.txt"', f"part-{chance.randrange(50)}"])
            repo = f"repo-{chance.randrange(3)}"
            lines.append(f"{time},{author},{repo},{commit},{path},{chance.randrange(9)},1")
    file.write_text("\n".join(lines) + "\n")
    return len(lines) - 1


def test_shards_find_what_the_plain_program_finds(tmp_path: Path) -> None:
    made_up = tmp_path / "changes.csv"
    rows = changes(made_up, 1500)
    done = subprocess.run(
        [sys.executable, EXAMPLE, made_up, "--executors", "2", "--servers", "2", "--batches", "3"],
        capture_output=True,
        text=True,
        timeout=290,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "the plain program finds the same" in done.stdout
    assert f"2 executors, 2 servers: {rows:,} changes, each twice" in done.stdout
