"""The dashboard as an ASGI application."""

from __future__ import annotations

import secrets

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from callboard.core.errors import CallboardError
from callboard.dashboard.page import HEADERS, PAGE
from callboard.dashboard.viewers import Viewers
from callboard.observing.branches import MOST_LINES
from callboard.observing.watching import MOST_ACTORS

SHOWN_LETTERS = 30
"""Dead letters with their messages, the latest."""


def application(viewers: Viewers, token: str) -> Starlette:
    """Return the application: the page for anybody, and pictures for those that have the token."""

    def page(request: Request) -> Response:
        return HTMLResponse(PAGE, headers=HEADERS)

    def picture(request: Request) -> Response:  # on a thread of Starlette's: a look takes a while
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), token.encode()):
            return _refusal(401, "the token is wrong: open the address that was printed")
        asked = request.query_params
        most = asked.get("most", "")
        if not (most.isascii() and most.isdigit() and int(most[:9]) <= MOST_ACTORS):
            return _refusal(400, f"`most` is 0 to {MOST_ACTORS}")
        try:
            values = viewers.picture(
                asked.get("viewer", "")[:64],
                asked.get("system", "")[:64],
                sort=asked.get("sort", "load"),
                most=int(most),
                part=asked.get("part", "")[:1000],
                branches=_branches(asked.get("branches", "")),
                letters=SHOWN_LETTERS if asked.get("letters") == "1" else 0,
            )
        except ConnectionError:
            return _refusal(503, "the system has ended")
        except (CallboardError, OSError, ValueError) as error:
            return _refusal(400, str(error))
        return JSONResponse(values, headers=HEADERS)

    return Starlette(routes=[Route("/", page), Route("/picture", picture)])


def _branches(text: str) -> dict[str, int]:
    """Read the open branches of the tree: `0:50,17:100`. Raises ValueError."""
    found = {}
    for pair in filter(None, text.split(",")):
        number, _, most = pair.partition(":")
        if not (most.isascii() and most.isdigit() and int(most[:9]) <= MOST_LINES):
            raise ValueError(f"a branch is a number and 0 to {MOST_LINES}, not {pair[:40]!r}")
        found[number] = int(most)
    return found


def _refusal(status: int, text: str) -> Response:
    return PlainTextResponse(text, status_code=status, headers=HEADERS)
