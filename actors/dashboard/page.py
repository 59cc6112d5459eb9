"""The dashboard's page: the files in `static` joined into one, without a build step."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

_STATIC = files("callboard.dashboard") / "static"
STYLE, SCRIPT, _HTML = (
    (_STATIC / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
)

PAGE = _HTML.replace('<link rel="stylesheet" href="page.css">', f"<style>{STYLE}</style>").replace(
    '<script src="page.js"></script>', f"<script>{SCRIPT}</script>"
)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_hash(SCRIPT)}; style-src {_hash(STYLE)}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of each answer: no other script can run in the page, even if a name were markup."""
