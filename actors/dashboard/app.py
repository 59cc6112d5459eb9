"""The dashboard as an ASGI application. Its page is the files in `static`, joined into one."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from asyncio import Transport
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from callboard.core.errors import CallboardError
from callboard.dashboard.viewers import Viewers
from callboard.observing.branches import MOST_LINES
from callboard.observing.watching import MOST_ACTORS

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

SHOWN_LETTERS = 30
"""The number of dead letters with their messages that are shown."""

FIRST_REQUEST = 5.0
"""Seconds in which a new connection has to send its first request."""


def limited(most: int) -> type[H11Protocol]:
    """Return a protocol for uvicorn with at most this number of connections.

    One more closes the one that has waited longest for its first request, which may be itself. So
    the observed program keeps its descriptors.
    """

    class Limited(H11Protocol):
        """One connection."""

        made_at = 0.0

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            """Begin, if there is room."""
            is_full = len(self.connections) >= most
            super().connection_made(transport)
            self.made_at = time.monotonic()
            if is_full:
                others: set[Any] = self.connections
                silent = [other for other in others if other.cycle is None]
                min(silent, key=lambda other: other.made_at).give_up()
            self.loop.call_later(FIRST_REQUEST, self._close_if_silent)

        def give_up(self) -> None:
            """Close the connection, which no longer counts."""
            self.connections.discard(self)
            self.transport.abort()

        def _close_if_silent(self) -> None:
            if self.cycle is None:
                self.give_up()

    return Limited


def application(viewers: Viewers, token: str) -> Starlette:
    """Return the application: the page for all, and pictures for those with the token."""

    def page(request: Request) -> Response:
        return HTMLResponse(PAGE, headers=HEADERS)

    def picture(request: Request) -> Response:  # on a thread of Starlette's: a look takes a while
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), token.encode()):
            return _refusal(401, "the token is wrong: open the address that was printed")
        asked = request.query_params
        most = _number(asked.get("most", ""), MOST_ACTORS)
        if most is None:
            return _refusal(400, f"`most` expects 0 to {MOST_ACTORS}")
        try:
            values = viewers.picture(
                asked.get("viewer", "")[:64],
                asked.get("system", "")[:64],
                sort=asked.get("sort", "load"),
                most=most,
                part=asked.get("part", "")[:1000],
                branches=_branches(asked.get("branches", "")),
                letters=SHOWN_LETTERS if asked.get("letters") == "1" else 0,
            )
        except ConnectionError:
            return _refusal(503, "the system has ended")
        except (CallboardError, OSError, ValueError) as error:
            return _refusal(400, str(error))
        text = json.dumps(values)  # a name may have what UTF-8 cannot encode
        return Response(text, media_type="application/json", headers=HEADERS)

    return Starlette(routes=[Route("/", page), Route("/picture", picture)])


def _branches(text: str) -> dict[str, int]:
    """Read the open branches of the tree: `0:50,17:100`. Raises ValueError."""
    found = {}
    for pair in filter(None, text.split(",")):
        number, _, text = pair.partition(":")
        most = _number(text, MOST_LINES)
        if most is None:
            raise ValueError(f"a branch expects a number and 0 to {MOST_LINES}, got {pair[:40]!r}")
        found[number] = most
    return found


def _number(text: str, most: int) -> int | None:
    """Return a question's number from 0 to `most`, or None."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        return None
    return number if (number := int(text)) <= most else None


def _refusal(status: int, text: str) -> Response:
    return PlainTextResponse(text, status_code=status, headers=HEADERS)
