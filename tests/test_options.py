"""The tables of options in the pages are complete."""

import inspect
import re
from pathlib import Path

import pytest

from callboard import ActorSystem, SpawnOptions
from callboard.streams import Graph

DOCS = Path(__file__).parents[1] / "docs"
ONLY_SETTINGS = {"elasticity", "monitored", "cpu_affinity", "streams", "classes", "actors"}
"""The settings that are not keywords of `ActorSystem`."""


def in_table(page: str, heading: str) -> set[str]:
    """Return the names in the first column of the table with this heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    rows = text.partition(f"\n{heading}\n")[2].partition("\n\n")[0].splitlines()[1:]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def parameters(function: object) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "system"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("page", "heading", "options"),
    [
        (
            "policies.md",
            "| setting | default | meaning |",
            parameters(ActorSystem.__init__) - {"config"} | ONLY_SETTINGS,
        ),
        ("actors.md", "| option | default | meaning |", {*SpawnOptions.__annotations__}),
        ("streams-tuning.md", "| option | default | meaning |", parameters(Graph._run_in)),
    ],
)
def test_a_table_has_all_options(page: str, heading: str, options: set[str]) -> None:
    assert in_table(page, heading) == options
