"""Requests to a dashboard."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


def get(url: str, path: str = "", token: str | None = None) -> tuple[int, str, Any]:
    """Return the status, the text and the headers of an answer."""
    base, _, good = url.partition("#")
    authorization = {"Authorization": f"Bearer {good if token is None else token}"}
    request = urllib.request.Request(base + path, headers=authorization)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def picture(url: str, **asked: Any) -> dict[str, Any]:
    query = "&".join(f"{key}={value}" for key, value in ({"most": 10} | asked).items())
    status, text, _ = get(url, f"picture?{query}")
    assert status == 200, text
    found: dict[str, Any] = json.loads(text)
    return found
