"""Each message to all refs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from callboard._inside.answers.future import Future
from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.recipient import Recipient, atell_many_to, atell_to, together
from callboard.routers.gathered import GatheredAnswers, all_answers, first_answers, gathered
from callboard.routers.router import Router
from callboard.rows.batches import iterator_over

M = TypeVar("M", contravariant=True)
T = TypeVar("T")


class BroadcastRouter(Router[M, Any], Generic[M]):
    """Sends each message to all of its refs. Safe in every thread.

    Each ref handles the messages of one sender in the order of sending. If a ref raises, the others
    are told all the same, and then the first error is raised.
    """

    def __init__(self, refs: Iterable[Recipient[M]]) -> None:
        super().__init__(refs)
        refs = self.refs
        for at, ref in enumerate(refs):
            if ref in refs[:at]:
                raise ValueError(f"BroadcastRouter has {safe_repr(ref)} twice")

    def tell(self, message: M) -> None:
        """Send `message` to each ref, in their order."""
        self._of_each(lambda ref: ref.tell(message))

    def tell_many(self, messages: Iterable[M]) -> None:
        """Send all of `messages` to each ref. They are taken from the iterable first."""
        rows = list(iterator_over("tell_many()", messages, "messages"))
        self._of_each(lambda ref: ref.tell_many(rows))

    def atell(self, message: M) -> Future[None]:
        """Send `message` to each ref as soon as it takes it. Return one future, of all."""
        return together(self._of_each(lambda ref: atell_to(ref, message)))

    def atell_many(self, messages: Iterable[M]) -> Future[None]:
        """Send all of `messages` to each ref as soon as it takes them. Return one future."""
        rows = list(iterator_over("atell_many()", messages, "messages"))
        return together(self._of_each(lambda ref: atell_many_to(ref, rows)))

    def ask(
        self, message: M, timeout: float | None = None, *, first: int | None = None
    ) -> Future[list[Any]]:
        """Ask each ref; return a future of the list of all answers, in the order of the refs.

        It fails with the first ask that fails. With `first`, a number, it is done with so many
        answers, in the order in which they came, and fails when too few can still come.
        """
        count = len(self.refs)
        if first is not None and (isinstance(first, bool) or not isinstance(first, int)):
            raise TypeError(f"first wants an int, not {first!r}")
        if first is not None and not 1 <= first <= count:
            raise ValueError(f"first wants 1 to {count} answers, not {first}")
        asked = self._of_each(lambda ref: ref.ask(message, timeout))
        return all_answers(asked) if first is None else first_answers(asked, first)

    def gather(self, message: M, timeout: float | None = None) -> Future[GatheredAnswers]:
        """Ask each ref; return a future of a GatheredAnswers, with the answers and the failures.

        With a `timeout` in seconds it is done by then, with the answers that came. It never fails
        because an ask does. Raises ValueError for a timeout that is no number from 0 to 1e9.
        """
        checks.timeout("the timeout of gather()", timeout)
        asked: list[tuple[Recipient[Any], Future[Any]]] = self._of_each(
            lambda ref: (ref, _ask(ref, message, timeout))
        )
        return gathered([ref for ref, _ in asked], [answer for _, answer in asked])

    def _of_each(self, act: Callable[[Recipient[M]], T]) -> list[T]:
        """Return what `act(ref)` returns, of each ref. Raises the first error, after the last."""
        error: Exception | None = None
        outcomes = []
        routees = self._enter_all()
        try:
            for routee in routees:
                try:
                    outcomes.append(act(routee.recipient))
                except Exception as raised:
                    error = error or raised
        finally:
            self._leave_all(routees)
        if error is not None:
            raise error
        return outcomes


def _ask(ref: Recipient[Any], message: Any, timeout: float | None) -> Future[Any]:
    try:
        return ref.ask(message, timeout)
    except Exception as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed
