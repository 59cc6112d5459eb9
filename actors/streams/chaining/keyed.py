"""Operators with a state for each key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from callboard.streams.chaining import recipes
from callboard.streams.chaining.place import Place
from callboard.streams.chaining.protocols import Receives
from callboard.streams.chaining.recipes import itself
from callboard.streams.planning.operator import Errors, Late
from callboard.streams.programs.windows import Session, Sliding, Tumbling, Window

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", covariant=True)
U = TypeVar("U")
A = TypeVar("A")


class KeyedStream(Generic[K, T]):
    """A stream that is divided by keys, for the operator that follows.

    Its outputs come in the order of the rows that they are for, whichever key these have. At a
    watermark and at the end, keys have their say in the order of their first arrival. One that was
    forgotten, because no window of it is open or its object is idle, arrives anew when it comes
    again. A key is there when a row of it has been handled: one whose rows have all raised is not.
    """

    __slots__ = ("_place", "_key", "_partitions")

    def __init__(self, place: Place[T], key: Callable[[T], K], partitions: int) -> None:
        self._place = place
        self._key = key
        self._partitions = partitions

    def __repr__(self) -> str:
        return f"<KeyedStream: {self._partitions} partitions of {self._place!r}>"

    def _then(
        self, recipe: recipes.Recipe, name: str | None, errors: Errors = "fail"
    ) -> Stream[Any]:
        by_key = {"key": self._key, "partitions": self._partitions}
        recipe["options"] = recipe.get("options", {}) | by_key
        return self._place._then(**recipe, name=name, errors=errors, partitions=self._partitions)

    def stateful(
        self,
        cls: Callable[..., Receives[T, U]],
        *args: Any,
        name: str | None = None,
        errors: Errors = "fail",
        sides: Iterable[str] = (),
        releases_gil: bool = False,
        **kwargs: Any,
    ) -> Stream[U]:
        """Give the outputs of objects, one for each key, made by `cls(*args, **kwargs)`.

        An object is made when its key first comes. An output that is `Side(name, value)` goes to
        the side output of that name in `sides`. `releases_gil` says that `receive` lets the
        interpreter lock go while it works, so that several partitions get further than one.
        """
        recipe = recipes.stateful(cls, args, kwargs, sides, keyed=True)
        return self._then(recipe | {"releases_gil": releases_gil}, name, errors)

    def scan(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, A]]:
        """Give the key and `function(accumulator, row)`, its next accumulator, for each row."""
        return self._then(recipes.scan(initial, function), name, errors)

    def fold(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, A]]:
        """Give each key and its last accumulator, at the end of the stream."""
        return self._then(recipes.fold(initial, function), name, errors)

    def count(self, *, name: str | None = None, errors: Errors = "fail") -> Stream[tuple[K, int]]:
        """Give for each row its key, and how many rows with it have come."""
        return self._then(recipes.count(), name, errors)

    def reduce(
        self,
        function: Callable[[list[T]], U],
        *,
        every: int,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, U]]:
        """Give a key and `function(rows)` for `every` rows of it, and for those left at the end."""
        return self._then(recipes.reduce(function, every), name, errors)

    def batch(
        self, size: int, *, name: str | None = None, errors: Errors = "fail"
    ) -> Stream[tuple[K, list[T]]]:
        """Give a key and a list of `size` rows of it, and of those left at the end."""
        return self._then(recipes.batch(size), name, errors)

    @overload
    def window(
        self,
        windows: Tumbling | Sliding | Session,
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, Window[list[T]]]]: ...
    @overload
    def window(
        self,
        windows: Tumbling | Sliding | Session,
        function: Callable[[list[T]], U],
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, Window[U]]]: ...
    def window(
        self,
        windows: Tumbling | Sliding | Session,
        function: Callable[[list[T]], Any] = itself,
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]:
        """Give a key and a Window of `function(rows)` when one closes. See Stream.window()."""
        return self._then(recipes.window(windows, function, late), name, errors)

    def top_k(
        self,
        k: int,
        by: Callable[[T], Any] = itself,
        *,
        every: int | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, list[T]]]:
        """Give each key and its `k` rows with the largest `by(row)`. See Stream.top_k()."""
        return self._then(recipes.top_k(k, by, every), name, errors)

    def distinct(
        self,
        by: Callable[[T], Hashable] = itself,
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T]:
        """Give the first of the rows of a key whose `by(row)` is equal."""
        return self._then(recipes.distinct(by), name, errors)
