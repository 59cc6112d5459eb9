"""The source of docs/howto/feed-files.md that follows a file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.test_snippets import blocks


@pytest.fixture(scope="module")
def follow(root: Path) -> Callable[..., Iterator[str]]:
    """The function that the page shows."""
    page = (root / "docs/howto/feed-files.md").read_text()
    (shown,) = (each for each in blocks(page) if "def follow(path, done, every=0.2):" in each.lines)
    begin = shown.lines.index("def follow(path, done, every=0.2):")
    end = shown.lines.index("", begin)
    found: dict[str, Any] = {}
    exec("\n".join(shown.lines[begin:end]), found)
    one: Callable[..., Iterator[str]] = found["follow"]
    return one


@pytest.mark.parametrize("text", ["", "a\n", "a\nb", "b"])
def test_all_of_a_file_is_given_with_a_last_line_that_has_no_end(
    follow: Callable[..., Iterator[str]], text: str, tmp_path: Path
) -> None:
    path, done = tmp_path / "lines", threading.Event()
    path.write_text(text)
    done.set()
    assert [*follow(path, done)] == text.splitlines(keepends=True)


def test_an_unfinished_line_waits(follow: Callable[..., Iterator[str]], tmp_path: Path) -> None:
    path, done = tmp_path / "lines", threading.Event()

    class Writing(threading.Event):
        """Writes on while it is waited for."""

        def wait(self, timeout: float | None = None) -> bool:
            with path.open("a") as lines:
                lines.write("rest\nlast")
            self.set()
            return True

    path.write_text("a\npart and ")
    done = Writing()
    assert [*follow(path, done)] == ["a\n", "part and rest\n", "last"]
