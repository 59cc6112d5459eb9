"""Actors whose state survives the server, with their position among the batches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from callboard import Actor, ActorRef, Future
from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.interrupts import comes_from_signal
from callboard.core.text import safe_repr
from callboard.remote.errors import RemoteError
from callboard.remote.storage.outbox import Outbox

if TYPE_CHECKING:
    import pyarrow as pa


class RowKey(NamedTuple):
    """The identity of a committed row, the same at each delivery: a key for external effects.

    For a record batch, `row` is the number of its first row.
    """

    job: str
    batch: int
    partition: int
    row: int


class KeyedRow(NamedTuple):
    """A staged row, as received by an actor that is served `with_keys()`."""

    key: RowKey
    value: Any


class KeyedRef(NamedTuple):
    """An actor that gets staged rows with their keys."""

    ref: ActorRef[Any]


def with_keys(ref: ActorRef[Any]) -> KeyedRef:
    """Mark an actor in the result of `build`, so that it gets staged rows as KeyedRow.

    Told and asked messages are unchanged. Raises ConfigError for a PersistentActor, which has its
    `key` anyway, and for anything but an actor of this process.
    """
    if not isinstance(ref, ActorRef):
        raise ConfigError(
            f"with_keys() expects the ref of an actor in this process, got {safe_repr(ref)}"
        )
    if issubclass(ref.actor_class, PersistentActor):
        raise ConfigError(f"{ref.actor_class.__name__} is a PersistentActor: it has its key anyway")
    return KeyedRef(ref)


class PersistentActor(Actor[Any]):
    """An actor whose state contains each committed batch exactly once.

    A server with a state directory calls `apply` with the staged rows, in the order of commits,
    partitions and rows. A snapshot and its position among the batches are written in one
    transaction. After a crash the actor restores the last snapshot, and applies the batches that
    were committed since. Clients can ask it, which calls `answer`, but cannot tell it anything.

    All hooks run on the actor's worker. `on_start` is called at the start.
    """

    snapshot_every = 1
    """The number of batches with rows for this actor after which a snapshot is written."""

    published: ClassVar[pa.Schema | None] = None
    """The columns of its published rows: an Arrow schema."""

    _is_current = False
    _outbox: Outbox | None = None
    _key_in_work: Callable[[], RowKey] | None = None

    @property
    def key(self) -> RowKey:
        """The key of the current row in `apply`. Raises RemoteError elsewhere."""
        if self._key_in_work is None:
            raise RemoteError(f"{type(self).__name__} has no key outside of apply()")
        return self._key_in_work()

    def publish(self, row: tuple[Any, ...] | list[Any]) -> None:
        """Publish a row, with a value for each column of `published`. Call it in `apply`.

        The row can be read once the batch has been applied, and exists exactly once, because it is
        written in one transaction with the state. Values that do not fit the columns fail the
        batch, here or at its end.

        Raises RemoteError outside `apply`, and for a class without `published`.
        """
        name = type(self).__name__
        if self._outbox is None:
            raise RemoteError(f"{name} publishes no rows: it has no `published`, or is not served")
        if self._key_in_work is None:
            raise RemoteError(f"{name} can publish in apply() only")
        self._outbox.add(row)

    def apply(self, row: Any) -> None:
        """Apply a row to the state. External effects may be repeated, with the same `key`.

        If it raises, the supervision decides about the actor, and the server applies no more
        batches until its next start, which begins with the last snapshot and this batch.
        """
        raise NotImplementedError(f"{type(self).__name__} has no apply()")

    def answer(self, query: Any) -> Any:
        """Answer a client's question without changing the state. An exception fails the ask only.

        It may see part of the current batch.
        """
        raise NotImplementedError(f"{type(self).__name__} answers no questions")

    def snapshot(self) -> Any:
        """Return the state as a value that the server's codec can encode."""
        raise NotImplementedError(f"{type(self).__name__} has no snapshot()")

    def restore(self, state: Any) -> None:
        """Set the state to a snapshot. Called only if there is one."""
        raise NotImplementedError(f"{type(self).__name__} has no restore()")

    def receive(self, message: Any) -> Any:
        """Run a command of the server, or answer a question. Do not override it."""
        if isinstance(message, StateCommand):
            return message.perform(self)
        try:
            self._check_current()
            answer = self.answer(message)
        except BaseException as error:
            return _failed(error)
        return _awaited(answer) if isinstance(answer, Coroutine) else answer

    def _check_current(self) -> None:
        if not self._is_current:
            raise RemoteError(
                f"{type(self).__name__} has no state: a batch failed, or no server has restored it"
            )


def _failed(error: BaseException) -> Future[Any]:
    """Return an answer that fails the ask and not the actor, also for sys.exit()."""
    if comes_from_signal(error):
        raise error
    failed: Future[Any] = Future()
    failed.set_exception(error)
    return failed


async def _awaited(answer: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await answer
    except GeneratorExit:  # the actor ends
        raise
    except BaseException as error:
        return _failed(error)


class StateCommand(NamedTuple):
    """A server's command to a PersistentActor."""

    perform: Callable[[PersistentActor], Any]


def checked_class(cls: type[PersistentActor]) -> type[PersistentActor]:
    """Check a class as far as possible without an object. Raises ConfigError."""
    checks.whole(f"{cls.__name__}.snapshot_every", cls.snapshot_every, error=ConfigError)
    if cls.receive is not PersistentActor.receive:
        raise ConfigError(
            f"{cls.__name__} overrides receive(): a PersistentActor gets rows by apply(), and "
            "questions by answer()"
        )
    for name in ("apply", "snapshot", "restore"):
        if getattr(cls, name) is getattr(PersistentActor, name):
            raise ConfigError(f"{cls.__name__} has no {name}(), which a PersistentActor needs")
        hook = inspect.unwrap(getattr(cls, name))
        if inspect.iscoroutinefunction(hook) or inspect.isasyncgenfunction(hook):
            raise ConfigError(f"{cls.__name__}.{name}() must not be async: it would not be awaited")
        if inspect.isgeneratorfunction(hook):
            raise ConfigError(f"{cls.__name__}.{name}() must not be a generator: it would not run")
    if cls.published is not None:
        _check_published(cls)
    return cls


def _check_published(cls: type[PersistentActor]) -> None:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigError(f"{cls.__name__} publishes rows, which needs pyarrow: {error}") from None
    if not isinstance(cls.published, pa.Schema) or not len(cls.published):
        raise ConfigError(
            f"{cls.__name__}.published expects a pyarrow.Schema with columns, got "
            f"{safe_repr(cls.published)}"
        )
    if cls.snapshot_every != 1:
        raise ConfigError(
            f"{cls.__name__} publishes rows, which are written with its snapshot: its "
            f"snapshot_every must be 1, got {cls.snapshot_every}"
        )
