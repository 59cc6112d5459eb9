"""Run every Python snippet of README.md and docs/, as its reader would.

The Python blocks of a page make one program, in order. It runs in a separate process, in an empty
folder. The words of fences, and comments, describe the page's program:

    ```python                           a part of the page's program
    ```output                           what the program prints, after the block before
    ```toml callboard.toml              a file that the program finds in its folder
    <!-- snippet: new program -->       the next block starts a new program
    <!-- snippet: needs pyspark -->     the program is skipped where that is not installed
    <!-- snippet: not run: REASON -->   the next block is only shown

The output of a page without output blocks is not checked; otherwise all of it is compared.
"""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

# A reader should see no warning, except for those that Spark and pandas give about their future.
WARNINGS = ["-W", "error", "-W", "default::FutureWarning"]
ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^(`{3,}|~{3,})\s*(\S*)\s*(\S*)")
COMMENT = re.compile(r"^<!-- snippet: (.*?) -->$")


@dataclass
class Program:
    """The snippets of a page that run together; its lines have the page's line numbers."""

    page: str
    first_line: int
    lines: list[str] = field(default_factory=list)
    output: str = ""
    files: dict[str, str] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)

    def add(self, line_number: int, block: list[str]) -> None:
        self.lines += [""] * (line_number - 1 - len(self.lines)) + block

    @property
    def source(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass
class Block:
    line_number: int
    """Of the block's first line after the fence."""
    language: str
    file_name: str
    lines: list[str]
    comments: list[str]
    """The snippet comments above it."""


def blocks(text: str) -> Iterator[Block]:
    comments: list[str] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if comment := COMMENT.match(line):
            comments.append(comment[1])
        elif line.startswith("<!-- snippet"):
            raise ValueError(f"line {number}: not a snippet comment: {line!r}")
        elif fence := FENCE.match(line):
            body = []
            for _, inner in lines:
                if inner.rstrip() == fence[1]:
                    break
                body.append(inner)
            else:
                raise ValueError(f"line {number}: the block has no end")
            yield Block(number + 1, fence[2], fence[3], body, comments)
            comments = []


def programs(page: str, text: str) -> list[Program]:
    """Return the page's programs. Raises ValueError for invalid markup."""
    found: list[Program] = []
    files: dict[str, str] = {}
    for block in blocks(text):
        body = "\n".join([*block.lines, ""])
        needs = [c.removeprefix("needs ") for c in block.comments if c.startswith("needs ")]
        starts = "new program" in block.comments
        hidden = any(re.match(r"not run: \S", comment) for comment in block.comments)
        if len(block.comments) > len(needs) + starts + hidden:
            raise ValueError(f"line {block.line_number}: cannot read {block.comments}")
        if block.file_name:
            files[block.file_name] = body
        elif block.language == "python" and not hidden:
            if starts or not found:
                found.append(Program(page, block.line_number, files=files))
            found[-1].add(block.line_number, block.lines)
            found[-1].needs += needs
        elif block.language == "output":
            if not found:
                raise ValueError(f"line {block.line_number}: output of no program")
            found[-1].output += body
        elif block.language in {"py", "Python", "python3"}:
            raise ValueError(f"line {block.line_number}: write python, not {block.language}")
    return found


def all_programs() -> Iterator[Program]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        page = str(path.relative_to(ROOT))
        yield from programs(page, path.read_text(encoding="utf-8"))


@pytest.mark.timeout(300)  # Spark starts slowly on a busy machine
@pytest.mark.parametrize("program", list(all_programs()), ids=lambda p: f"{p.page}:{p.first_line}")
def test_a_page_prints_its_output_blocks(program: Program, tmp_path: Path) -> None:
    for module in program.needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}, which is not installed")
    for name, text in program.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    script = tmp_path / Path(program.page).with_suffix(".py").name
    script.write_text(program.source, encoding="utf-8")
    command = [sys.executable, *WARNINGS, str(script)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, f"{program.page}:\n{ran.stderr}"
    if program.output:
        assert ran.stdout == program.output


def test_the_blocks_of_a_page_make_one_program_with_its_line_numbers() -> None:
    page = "# Title\n\n```python\na = 1\n```\ntext\n```sh\nls\n```\n```python\nassert a == 2\n```\n"
    (program,) = programs("page.md", page)
    assert program.lines == ["", "", "", "a = 1", "", "", "", "", "", "", "assert a == 2"]


def test_a_comment_starts_a_new_program() -> None:
    page = "```python\na = 1\n```\n<!-- snippet: new program -->\n```python\nb = 1\n```\n"
    assert [p.first_line for p in programs("page.md", page)] == [2, 6]


def test_output_blocks_and_needs_belong_to_the_program_before() -> None:
    page = "<!-- snippet: needs x -->\n```python\nprint(1)\n```\n\n```output\n1\n```\n"
    (program,) = programs("page.md", page)
    assert (program.output, program.needs) == ("1\n", ["x"])


def test_a_named_block_is_a_file_and_a_block_may_be_only_shown() -> None:
    page = "```toml a.toml\nx = 1\n```\n<!-- snippet: not run: a sketch -->\n```python\n?\n```\n"
    assert programs("page.md", page) == []
    (program,) = programs("page.md", page + "```python\npass\n```\n")
    assert program.files == {"a.toml": "x = 1\n"}


@pytest.mark.parametrize(
    ("page", "error"),
    [
        ("```python\n", "line 1: the block has no end"),
        ("<!-- snippet: skip -->\n```python\n```\n", "line 3: cannot read"),
        ("<!-- snippet: not run: -->\n```python\n```\n", "line 3: cannot read"),
        ("<!-- snippet new program -->\n", "line 1: not a snippet comment"),
        ("```output\n1\n```\n", "line 2: output of no program"),
        ("```py\n```\n", "line 2: write python, not py"),
    ],
)
def test_invalid_markup_is_an_error(page: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        programs("page.md", page)
