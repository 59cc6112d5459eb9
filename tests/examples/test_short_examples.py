"""Each short example prints what its docstring says."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTS = "Prints:\n\n"


def promised_output(path: Path) -> str | None:
    """Return the indented text after 'Prints:' at the end of the module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    _, found, output = docstring.partition(PRINTS)
    return textwrap.dedent(output) + "\n" if found else None


SHORT = {path.name: path for path in sorted(EXAMPLES.glob("*.py")) if promised_output(path)}


@pytest.mark.parametrize("name", SHORT)
def test_an_example_prints_what_it_promises(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", SHORT[name]], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == promised_output(SHORT[name])


@pytest.mark.parametrize("name", SHORT)
def test_a_short_example_stays_short(name: str) -> None:
    assert len(SHORT[name].read_text(encoding="utf-8").splitlines()) < 60


def test_the_examples_that_the_documentation_names_are_there() -> None:
    assert {"hello.py", "asyncio_ask.py", "supervision.py", "timers.py"} <= SHORT.keys()
    assert {"policies.py", "dead_letters.py", "back_pressure.py", "priorities.py"} <= SHORT.keys()
