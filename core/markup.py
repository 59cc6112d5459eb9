"""HTML for notebooks. All text is escaped, so markup in a name is shown, not run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from callboard.core.text import sendable


def text_of(value: object) -> str:
    """Return a value's text, escaped."""
    return escape(sendable(str(value)))


def table(header: Sequence[str], rows: Iterable[Sequence[object]], texts: Iterable[int]) -> str:
    """Return a table. The columns numbered in `texts` are words, and the others are figures."""
    words = set(texts)
    aligned = [f"text-align:{'left' if i in words else 'right'}" for i in range(len(header))]
    lines = [_row("th", header, aligned), *(_row("td", row, aligned) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def paragraph(*parts: object) -> str:
    """Return a paragraph with a line for each part."""
    return f"<p>{'<br/>'.join(map(text_of, parts))}</p>"


def block(text: object) -> str:
    """Return a block of preformatted text."""
    return f"<pre>{text_of(text)}</pre>"


def _row(tag: str, cells: Sequence[object], aligned: Sequence[str]) -> str:
    return "".join(
        [
            "<tr>",
            *(
                f'<{tag} style="{style}">{text_of(cell)}</{tag}>'
                for cell, style in zip(cells, aligned, strict=True)
            ),
            "</tr>",
        ]
    )
