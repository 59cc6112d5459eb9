"""The outcomes of asking several recipients, as one future."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from callboard._inside.answers.future import Future
from callboard.recipient import Recipient


@dataclass(frozen=True, slots=True)
class GatheredAnswers:
    """The outcomes of one question to several refs, each by its ref, in the order of the refs."""

    answers: Mapping[Recipient[Any], Any]
    """The answers that came."""
    failures: Mapping[Recipient[Any], BaseException]
    """The errors of the other asks: AskTimeout for an answer that did not come in time."""

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
