"""The checks of `.ci/run`: one runs each target of the Makefile, and CONTRIBUTING has them all."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = (ROOT / ".ci/run").read_text()


def names(pattern: str) -> set[str]:
    found = re.search(pattern, SCRIPT, re.MULTILINE)
    assert found
    return set(found[1].split())


EVERY, IN_TURN = names(r'^every="(.+)"$'), names(r"^in_turn=\((.+)\)$")


def test_every_target_of_the_makefile_is_run_by_a_check() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    checks = "\n".join((ROOT / ".ci" / check).read_text() for check in EVERY | IN_TURN)
    commands = re.findall(r"^ *(?:\S+=\S+ )*make ([a-z ]+)", checks, re.MULTILINE)
    assert set(phony[1].split()) == {word for words in commands for word in words.split()}


def test_contributing_has_a_row_for_each_check() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\| (every run|in turn) \|$", text, re.MULTILINE)
    assert dict(rows) == dict.fromkeys(EVERY, "every run") | dict.fromkeys(IN_TURN, "in turn")
