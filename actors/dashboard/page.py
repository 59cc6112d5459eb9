"""The page: one file, which needs no build and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib

from callboard.dashboard.script import SCRIPT
from callboard.dashboard.style import STYLE

BODY = """
<svg width="0" height="0"><defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4"
markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs></svg>
<p id="trouble"></p>
<h1 id="system">callboard</h1>
<p><span id="reasons"></span><br><span id="level"></span></p>
<div id="systems"></div>
<div id="servers"></div>
<div id="plots"></div>
<h2>Workers</h2>
<div id="workers"></div>
<div id="runs"></div>
<div id="classes"></div>
<h2>Actors</h2>
<p>
<label>whose path or class has <input id="part" size="16"></label>
<label>at most <input id="most" type="number" value="30" min="1" max="1000"></label>
<label><input id="pause" type="checkbox"> pause all</label>
</p>
<div id="actors"></div>
<details id="forest"><summary>Tree of actors</summary><div id="tree" class="wide"></div></details>
<div id="letters"></div>
<details id="postbox"><summary>Dead letters with their messages</summary><div id="kept"></div>
</details>
<div id="failures"></div>
<div id="stacks"></div>
"""

PAGE = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>callboard</title>'
    f"<style>{STYLE}</style></head><body>{BODY}<script>{SCRIPT}</script></body></html>\n"
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
