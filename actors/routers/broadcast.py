"""Routers that send each message to all refs, and the outcomes of an ask of all as one future."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

from callboard._inside.answers.future import Future
from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.recipient import Recipient, atell_many_to, atell_to, together
from callboard.routers.router import Router
from callboard.rows.batches import iterator_over


@dataclass(frozen=True, slots=True)
class GatheredAnswers:
    """The outcomes of asking several refs, each by its ref, in the order of the refs."""

    answers: Mapping[Recipient[Any], Any]
    """The answers, by ref."""
    failures: Mapping[Recipient[Any], BaseException]
    """The errors of the other asks: AskTimeout for an answer that was not in time."""

    @property
    def is_complete(self) -> bool:
        """Whether all have answered."""
        return not self.failures


def gathered(
    refs: Sequence[Recipient[Any]], asked: Sequence[Future[Any]]
) -> Future[GatheredAnswers]:
    """Return a future of the outcomes of all asks. It does not fail."""
    future: Future[GatheredAnswers] = Future()

    def finish() -> None:
        answers, failures = {}, {}
        for ref, answer in zip(refs, asked, strict=True):
            error = answer.exception()
            if error is None:
                answers[ref] = answer.result()
            else:
                failures[ref] = error
        future.set_result(GatheredAnswers(answers, failures))

    count_down(asked, finish)
    return future


def count_down(futures: Sequence[Future[Any]], finish: Callable[[], object]) -> None:
    """Call `finish()` when all futures are done, in the thread that completes the last one."""
    left = len(futures)
    lock = Lock()

    def note(_: object) -> None:
        nonlocal left
        with lock:
            left -= 1
            if left:
                return
        finish()

    for future in futures:
        future.add_done_callback(note)


def first_answers(asked: Sequence[Future[Any]], wanted: int) -> Future[list[Any]]:
    """Return a future of the first answers, as they come. It fails when too few can come."""
    future: Future[list[Any]] = Future()
    answers: list[Any] = []
    failures = 0
    lock = Lock()

    def note(answer: Future[Any]) -> None:
        nonlocal failures
        error = answer.exception()
        with lock:
            if error is not None:
                failures += 1
                if failures != len(asked) - wanted + 1:
                    return
            else:
                if len(answers) < wanted:
                    answers.append(answer.result())
                if len(answers) < wanted:
                    return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(list(answers))

    for answer in asked:
        answer.add_done_callback(note)
    return future


def all_answers(asked: Sequence[Future[Any]]) -> Future[list[Any]]:
    """Return a future of all answers, in the order of the asks. It fails as the first does."""
    future: Future[list[Any]] = Future()

    def note(answer: Future[Any]) -> None:
        error = answer.exception()
        if error is not None:
            future.set_exception(error)

    for answer in asked:
        answer.add_done_callback(note)
    count_down(asked, lambda: future.done() or future.set_result([a.result() for a in asked]))
    return future


M = TypeVar("M", contravariant=True)
T = TypeVar("T")


class BroadcastRouter(Router[M, Any], Generic[M]):
    """Sends each message to all of its refs. Thread-safe.

    Each ref handles the messages of one sender in the order in which they were sent. If a ref
    raises, the others still get the message, and then the first error is raised.
    """

    def __init__(self, refs: Iterable[Recipient[M]]) -> None:
        super().__init__(refs)
        refs = self.refs
        for at, ref in enumerate(refs):
            if ref in refs[:at]:
                raise ValueError(f"BroadcastRouter has {safe_repr(ref)} twice")

    def tell(self, message: M) -> None:
        """Send `message` to each ref, in order."""
        self._of_each(lambda ref: ref.tell(message))

    def tell_many(self, messages: Iterable[M]) -> None:
        """Send all of `messages` to each ref, after reading the whole iterable."""
        rows = list(iterator_over("tell_many()", messages, "messages"))
        self._of_each(lambda ref: ref.tell_many(rows))

    def atell(self, message: M) -> Future[None]:
        """Send `message` to each ref as soon as that accepts it. Return one future for all."""
        return together(self._of_each(lambda ref: atell_to(ref, message)))

    def atell_many(self, messages: Iterable[M]) -> Future[None]:
        """Send all of `messages` to each ref as soon as that accepts them. Return one future."""
        rows = list(iterator_over("atell_many()", messages, "messages"))
        return together(self._of_each(lambda ref: atell_many_to(ref, rows)))

    def ask(
        self, message: M, timeout: float | None = None, *, first: int | None = None
    ) -> Future[list[Any]]:
        """Ask each ref. Return a future of the list of all answers, in the order of the refs.

        It fails with the first ask that fails. With `first`, it is done after that many answers, in
        their order of arrival, and fails when too few can still arrive.
        """
        count = len(self.refs)
        if first is not None and (isinstance(first, bool) or not isinstance(first, int)):
            raise TypeError(f"first= expects an int, got {first!r}")
        if first is not None and not 1 <= first <= count:
            raise ValueError(f"first= expects 1 to {count} answers, got {first}")
        asked = self._of_each(lambda ref: ref.ask(message, timeout))
        return all_answers(asked) if first is None else first_answers(asked, first)

    def gather(self, message: M, timeout: float | None = None) -> Future[GatheredAnswers]:
        """Ask each ref. Return a future of a GatheredAnswers, with the answers and the failures.

        With a `timeout` in seconds it is done by then, with the answers so far. It never fails
        because an ask does. Raises ValueError for a timeout that is not a number from 0 to 1e9.
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
