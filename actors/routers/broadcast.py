"""Each message to all refs."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.core.batches import iterator_over
from callboard.core.handles import CopiedAsItself
from callboard.routers.checks import checked_refs

if TYPE_CHECKING:
    from callboard.recipient import Recipient


class BroadcastRouter(CopiedAsItself):
    """Sends each message to all of its refs. Safe in every thread.

    Each ref handles what one sender sent in the order of sending.
    """

    def __init__(self, refs: Iterable[Recipient[Any]]) -> None:
        self.refs = checked_refs("BroadcastRouter", refs)

    def tell(self, message: Any) -> None:
        """Send `message` to each ref, in their order. An error ends it; later refs get nothing."""
        for ref in self.refs:
            ref.tell(message)

    def tell_many(self, messages: Iterable[Any]) -> None:
        """Send all of `messages` to each ref. They are taken from the iterable first."""
        rows = list(iterator_over("tell_many()", messages, "messages"))
        for ref in self.refs:
            ref.tell_many(rows)

    def ask(
        self, message: Any, timeout: float | None = None, *, first: int | None = None
    ) -> Future[list[Any]]:
        """Ask each ref; return a future of the list of all answers, in the order of the refs.

        With `first`, a number, it is done with so many answers, in the order in which they came.
        It fails when too many asks have failed for that, as the latest of them did.
        """
        if first is not None and (isinstance(first, bool) or not isinstance(first, int)):
            raise TypeError(f"first wants an int, not {first!r}")
        if first is not None and not 1 <= first <= len(self.refs):
            raise ValueError(f"first wants 1 to {len(self.refs)} answers, not {first}")
        asked = [ref.ask(message, timeout) for ref in self.refs]
        return _gathered(asked, first)

    def stop(self) -> None:
        """Stop each actor behind the refs, after the message in work."""
        for ref in self.refs:
            ref.stop()  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<BroadcastRouter to {len(self.refs)} refs>"


def _gathered(asked: list[Future[Any]], first: int | None) -> Future[list[Any]]:
    gathered: Future[list[Any]] = Future()
    wanted = len(asked) if first is None else first
    answers: dict[int, Any] = {}
    failures = 0
    lock = Lock()

    def note(place: int, future: Future[Any]) -> None:
        nonlocal failures
        error = future.exception()
        with lock:
            if error is not None:
                failures += 1
                if failures != len(asked) - wanted + 1:
                    return
            else:
                if len(answers) == wanted:
                    return
                answers[place] = future.result()
                if len(answers) < wanted:
                    return
        if error is not None:
            gathered.set_exception(error)
        elif first is None:
            gathered.set_result([answers[place] for place in range(wanted)])
        else:
            gathered.set_result(list(answers.values()))

    for place, future in enumerate(asked):
        future.add_done_callback(lambda done, place=place: note(place, done))
    return gathered
