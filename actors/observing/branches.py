"""The part of the tree of actors that an observer sees: its open branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from callboard.observing.scan import first_children

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime
    from callboard.observing.wait_report import WaitRecord

MOST_LINES = 400
"""The lines of the longest tree that is shown. Each costs the process some microseconds."""
ROOT = "0"
"""The number of the system among the open branches. Actors count from 1."""


def branches(
    runtime: Runtime, opened: Mapping[str, int], wait_of: Callable[[ActorRef[Any]], WaitRecord]
) -> list[dict[str, Any]]:
    """Return the lines of the tree, for JSON: parents before their children.

    `opened` has the actors whose children are shown, by number, and how many of these. A line is an
    actor with its depth, or says how many `more` there are of which branch. The last one says that
    the tree was `cut`, if it has more than 400 lines.
    """
    lines: list[dict[str, Any]] = []
    refs, count = first_children(runtime, None, min(opened.get(ROOT, 0), MOST_LINES))
    pending: list[Any] = [_more(0, ROOT, len(refs), count)] if len(refs) < count else []
    pending += [(0, ref) for ref in reversed(refs)]
    while pending and len(lines) < MOST_LINES:
        line = pending.pop()
        if isinstance(line, dict):
            lines.append(line)
            continue
        depth, ref = line
        number = str(ref._number)
        refs, count = first_children(runtime, ref, min(opened.get(number, 0), MOST_LINES))
        wait = wait_of(ref)
        lines.append(
            {
                "depth": depth,
                "number": number,
                "name": ref.name,
                "class": ref.actor_class.__name__,
                "children": count,
                "messages": ref.messages,
                "queue": ref._queue_length,
                "reason": wait.reason,
                "words": wait.words,
            }
        )
        if refs and len(refs) < count:
            pending.append(_more(depth + 1, number, len(refs), count))
        pending += [(depth + 1, ref) for ref in reversed(refs)]
    if pending:
        lines.append({"depth": 0, "cut": True})
    return lines


def _more(depth: int, branch: str, shown: int, count: int) -> dict[str, Any]:
    return {"depth": depth, "branch": branch, "shown": shown, "more": count - shown}
