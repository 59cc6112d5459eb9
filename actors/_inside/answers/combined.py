"""Futures that are made of others."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Literal, TypeVar, overload

from callboard._inside.answers.foreign import future_of_awaitable
from callboard._inside.answers.future import Future, register_combinators
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core import checks
from callboard.core.text import safe_repr

T = TypeVar("T")


class CombinedFuture(Future[T]):
    """A future whose outcome is made of others'."""

    __slots__ = ("_sources",)

    _sources: list[tuple[Future[Any], Callable[[Future[Any]], object]]]

    def __init__(self) -> None:
        super().__init__()
        self._sources = []

    def _listen(self, futures: tuple[Future[Any], ...], note: Callable[[int, Any], object]) -> None:
        """Have `note(i, future)` called when the i-th future is done."""
        self._sources = [
            (future, lambda done, i=i: note(i, done))  # type: ignore[misc]
            for i, future in enumerate(futures)
        ]
        for future, callback in list(self._sources):
            if self._sources:  # else it is done
                future.add_done_callback(callback)

    def _let_go(self) -> None:
        """Have the others call back no more."""
        sources, self._sources = self._sources, []
        for future, callback in sources:
            future.remove_done_callback(callback)

    def _follow(self, future: Future[Any]) -> None:
        """Have another's outcome."""
        error = future.exception()
        if error is None:
            self.set_result(future.result())
        else:
            self._fail(error)
        self._let_go()

    def _fail(self, error: BaseException) -> None:
        try:
            self.set_exception(error)
        except TypeError as refused:  # such as StopIteration, by which no future can fail
            refused.__cause__ = error
            self.set_exception(refused)
        self._let_go()

    def cancel(self) -> bool:
        """Complete with AskCancelled. False if it was complete already."""
        sources = self._sources
        if not super().cancel():
            return False
        self._sources = []
        for future, callback in sources:
            future._abandon(callback)
        return True

    @property
    def _ends_unwanted(self) -> bool:
        return True

    @property
    def _system(self) -> Any:
        systems = (future._system for future, _ in self._sources)
        return next((system for system in systems if system is not None), None)

    @property
    def _wait_cause(self) -> WaitCause | None:
        waiting = [future for future, _ in self._sources if not future.done()]
        return waiting[0]._wait_cause if waiting else WaitCause(WaitTarget.ANSWER)


class DerivedFuture(CombinedFuture[T]):
    """The value that a function makes of another future's answer, or of its error."""

    __slots__ = ()

    def _note(self, function: Callable[[Any], Any], recovers: bool, source: Future[Any]) -> None:
        if self.done():
            return
        error = source.exception()
        if (error is not None) is not recovers:
            self._follow(source)
            return
        try:
            made = function(source.result() if error is None else error)
        except BaseException as raised:
            self._fail(raised)
            return
        if isinstance(made, Future):
            self._defer_to(made)
            self._listen((made,), lambda _, future: self._follow(future))
        else:
            self.set_result(made)
            self._let_go()


class GatheredFuture(CombinedFuture[list[Any]]):
    """The answers of several futures, in their order."""

    __slots__ = ("_answers", "_errors_too", "_left", "_lock")

    def _begin(self, futures: tuple[Future[Any], ...], errors_too: bool) -> None:
        self._answers: list[Any] = [None] * len(futures)
        self._errors_too = errors_too
        self._left = len(futures)
        self._lock = Lock()
        self._listen(futures, self._note)
        if not futures:
            self.set_result([])

    def _note(self, i: int, future: Future[Any]) -> None:
        error = future.exception()
        if error is not None and not self._errors_too:
            self._fail(error)
            return
        self._answers[i] = future.result() if error is None else error
        with self._lock:
            self._left -= 1
            if self._left:
                return
        self.set_result(self._answers)
        self._let_go()


class FirstFuture(CombinedFuture[T]):
    """The outcome of the first of several futures that is done."""

    __slots__ = ()

    def _begin(self, futures: tuple[Future[T], ...]) -> None:
        self._listen(futures, lambda _, future: self._follow(future))


def checked(what: str, future: Any) -> Future[Any]:
    """Return a callboard future for any future or awaitable. Raises TypeError."""
    found = future_of_awaitable(future)
    if found is None:
        raise TypeError(f"{what} expects futures, got {safe_repr(future)}")
    return found


@overload
def gather(*futures: Future[T], return_exceptions: Literal[False] = False) -> Future[list[T]]: ...


@overload
def gather(
    *futures: Future[T], return_exceptions: Literal[True]
) -> Future[list[T | BaseException]]: ...


@overload
def gather(*futures: Any, return_exceptions: bool = False) -> Future[list[Any]]: ...


def gather(*futures: Any, return_exceptions: bool = False) -> Future[Any]:
    """Return a future of all answers, in the order of `futures`.

    Cancelling it cancels those that nothing else waits for.

    Args:
        *futures: Anything that `Future.of()` takes, except plain values, which raise TypeError.
        return_exceptions: Put errors among the answers. Otherwise the future fails with the first
            error, and the other answers are dropped.
    """
    checks.flag("return_exceptions", return_exceptions)
    gathered = GatheredFuture()
    gathered._begin(tuple(checked("gather()", future) for future in futures), return_exceptions)
    return gathered


def first(*futures: Future[T]) -> Future[T]:
    """Return a future of the first outcome of `futures`, an answer or an error.

    The others continue: cancel them if nothing needs them. Cancelling the returned future cancels
    those that nothing else waits for. Raises ValueError without a future, and TypeError for plain
    values.
    """
    if not futures:
        raise ValueError("first() expects at least one future")
    found: FirstFuture[T] = FirstFuture()
    found._begin(tuple(checked("first()", future) for future in futures))
    return found


def derive(source: Future[Any], function: Callable[[Any], Any], recovers: bool) -> Future[Any]:
    """Return a future of what `function` makes of the answer, or of the error if it recovers."""
    if not callable(function):
        raise TypeError(
            f"{'recover' if recovers else 'map'}() expects a function, got {safe_repr(function)}"
        )
    derived: DerivedFuture[Any] = DerivedFuture()
    derived._defer_to(source)
    derived._listen((source,), lambda _, done: derived._note(function, recovers, done))
    return derived


def future_of_any(value: Any) -> Future[Any]:
    """Return a future of what a future or another awaitable brings, or of the value itself."""
    future = future_of_awaitable(value)
    if future is None:
        future = Future()
        future.set_result(value)
    return future


register_combinators(derive, future_of_any)
