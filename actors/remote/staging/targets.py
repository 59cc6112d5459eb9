"""Receivers of staged rows: actors of all kinds, but not entries of graphs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from functools import partial
from itertools import accumulate, count
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple

from callboard import ActorRef, ActorStopped, Future
from callboard.core.errors import SystemClosed
from callboard.core.text import safe_str
from callboard.remote.errors import RemoteError, StateError, UploadRefused
from callboard.remote.protocol.requests import Layout
from callboard.remote.staging.entries import ActorEntry, Entry, GraphEntry, PersistentEntry
from callboard.remote.staging.persistent import (
    KeyedRow,
    PersistentActor,
    RowKey,
    StateCommand,
)
from callboard.remote.storage.journal import Publication
from callboard.remote.storage.outbox import Outbox
from callboard.remote.wire.arrow_ipc import ArrowReader, read_batches
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Buffer
from callboard.remote.wire.packed_rows import count_plain_rows

if TYPE_CHECKING:
    import pyarrow as pa


def read_rows(codec: Codec, layout: Layout, payload: Buffer) -> list[Any]:
    """Return the rows of a frame that was counted before, Arrow's as record batches.

    Raises CodecError.
    """
    if layout is Layout.ARROW:
        return read_batches(payload)
    return codec.decode_rows(payload, is_trusted=True)


def counting_rows(codec: Codec, layout: Layout, payload: Buffer) -> Generator[None, None, int]:
    """Count the rows of a frame, in slices: a generator that yields after each.

    Raises CodecError if they cannot be read.
    """
    if layout is Layout.ARROW:
        batches = yield from ArrowReader().reading(payload)
        return sum(batch.num_rows for batch in batches)
    count = count_plain_rows(payload, codec.max_values)
    return count if count >= 0 else len((yield from codec.decoding_rows(payload)))


def key_in_work(rows: list[Any], left: Iterator[Any], layout: Layout, first: RowKey) -> RowKey:
    """Return the key of the row that `left`, an iterator of these rows, has returned last."""
    at = len(rows) - length_hint(left) - 1
    before = sum(batch.num_rows for batch in rows[:at]) if layout is Layout.ARROW else at
    return first._replace(row=first.row + before)


def numbers_of(rows: list[Any], layout: Layout, first: int) -> Iterator[int]:
    """Return the numbers of rows, and of the first row of each record batch."""
    if layout is Layout.ARROW:
        return accumulate((row.num_rows for row in rows), initial=first)
    return count(first)


def keyed_rows(rows: list[Any], layout: Layout, first: RowKey) -> list[KeyedRow]:
    """Return the rows with their keys; `first` is that of the first."""
    numbers = numbers_of(rows, layout, first.row)
    return [KeyedRow(first._replace(row=at), row) for at, row in zip(numbers, rows, strict=False)]


class EntryState(NamedTuple):
    """An actor's encoded state and published rows, which are written together with its position."""

    snapshot: bytes | None
    publication: Publication | None = None


class Target:
    """A receiver of staged rows. By itself it refuses them, as for entries that are no actors."""

    is_persistent = False
    snapshot_every = 1
    schema: pa.Schema | None = None
    """The columns of its published rows; None if it publishes none."""

    def __init__(self, name: str, what: str = "actor") -> None:
        self.name = name
        self._what = what

    def refuse_if_unfit(self) -> None:
        """Raise UploadRefused if rows cannot be staged for this entry."""
        raise UploadRefused(
            f"the {self._what} {self.name!r} takes no staged rows: only actors of the server do"
        )

    def restore(self, snapshot: bytes | None) -> None:
        """Restore the actor's state. Raises StateError."""
        if snapshot is not None:
            raise StateError(
                f"the state directory has a state of {self.name!r}, which is not a PersistentActor"
            )

    def give(self, layout: Layout, payload: bytes, first: RowKey) -> Future[Any]:
        """Send the rows of a frame, and return a future that is done when they are handled."""
        raise NotImplementedError

    def settle(self, given: Future[Any]) -> None:
        """Wait for what `give()` returned. Raises if the rows were not handled."""
        raise NotImplementedError

    def snapshot(self) -> EntryState:
        """Return the state to write now. Raises the actor's errors."""
        return EntryState(None)


class ActorTarget(Target):
    """An ordinary actor, whose supervision handles failing rows, as other messages."""

    def __init__(self, name: str, ref: ActorRef[Any], codec: Codec, has_keys: bool) -> None:
        super().__init__(name)
        self._ref = ref
        self._codec = codec
        self._has_keys = has_keys

    def refuse_if_unfit(self) -> None:
        """Raise UploadRefused for a mailbox that would lose committed rows."""
        _refuse_if_lossy(self._ref, self.name)

    def give(self, layout: Layout, payload: bytes, first: RowKey) -> Future[Any]:
        """Tell the rows as there is room for them. Raises CodecError."""
        values = rows = read_rows(self._codec, layout, payload)
        if self._has_keys:
            values = keyed_rows(rows, layout, first)
        while (room := self._ref._room) is not None and room < len(values):
            self._ref.tell_many(values[:room])
            values = values[room:]
            if self._ref._fence().exception() is not None:
                break  # it has ended, and these are dead letters
        self._ref.tell_many(values)
        return self._ref._fence()

    def settle(self, given: Future[Any]) -> None:
        """Raise if the actor does not exist any more."""
        error = given.exception()
        if isinstance(error, ActorStopped | SystemClosed):
            raise error


def _refuse_if_lossy(ref: ActorRef[Any], name: str) -> None:
    if not ref._keeps_messages:
        raise UploadRefused(
            f"the mailbox of the entry {name!r} drops or refuses messages: staged rows "
            "need one without a limit, or one in which senders wait for room"
        )


class PersistentTarget(Target):
    """A PersistentActor."""

    is_persistent = True

    def __init__(self, name: str, ref: ActorRef[Any], codec: Codec, longest: int) -> None:
        """`longest` is the maximum size of published rows in a frame, in bytes."""
        super().__init__(name)
        self._ref = ref
        self._codec = codec
        self._longest = longest
        self.snapshot_every = ref.actor_class.snapshot_every  # type: ignore[attr-defined]
        self.schema = ref.actor_class.published  # type: ignore[attr-defined]

    def refuse_if_unfit(self) -> None:
        """Raise UploadRefused for a mailbox that would drop or refuse commands."""
        _refuse_if_lossy(self._ref, self.name)

    def restore(self, snapshot: bytes | None) -> None:
        """Have the actor restore its state, or begin without one."""
        try:
            outbox = None if self.schema is None else Outbox(self.schema, self._longest)
            _answer_of(self._command(partial(_restore, self._codec, snapshot, outbox)))
        except Exception as error:
            raise StateError(f"{self.name!r} cannot restore its state: {error!r}") from error

    def give(self, layout: Layout, payload: bytes, first: RowKey) -> Future[Any]:
        """Have the actor decode the rows, and apply them."""
        return self._command(partial(_apply, self._codec, layout, payload, first))

    def settle(self, given: Future[Any]) -> None:
        """Raise what the actor raised."""
        _answer_of(given)

    def snapshot(self) -> EntryState:
        """Ask the actor for its state, and the rows that it has published since the last time."""
        taken: EntryState = _answer_of(self._command(partial(_snapshot, self._codec)))
        return taken

    def _command(self, perform: Any) -> Future[Any]:
        while self._ref._room == 0:
            self._ref._fence().exception()  # clients' questions are before it
        return self._ref.ask(StateCommand(perform))


def _answer_of(commanded: Future[Any]) -> Any:
    """Wait for an actor's answer, and raise its error.

    SystemExit and the like, which must not end the caller, become a RemoteError.
    """
    error = commanded.exception()
    if error is None or isinstance(error, Exception):
        return commanded.result()
    kind, text = type(error).__qualname__, safe_str(error)
    raise RemoteError(f"{kind}: {text}" if text else kind) from error


def targets_of(entries: Mapping[str, Entry], codec: Codec, longest: int) -> list[Target]:
    """Return the target of each entry's staged rows."""
    return [_target(name, entry, codec, longest) for name, entry in entries.items()]


def _target(name: str, entry: Entry, codec: Codec, longest: int) -> Target:
    if isinstance(entry, PersistentEntry):
        return PersistentTarget(name, entry.ref, codec, longest)
    if isinstance(entry, ActorEntry):
        return ActorTarget(name, entry.ref, codec, entry.has_keys)
    return Target(name, "graph's entry" if isinstance(entry, GraphEntry) else "recipient")


# --- on the actor's worker ------------------------------------------------------------------------


def _restore(
    codec: Codec, snapshot: bytes | None, outbox: Outbox | None, actor: PersistentActor
) -> None:
    actor._outbox = outbox
    if snapshot is not None:
        actor.restore(codec.decode(snapshot, is_trusted=True))
    actor._is_current = True


def _apply(
    codec: Codec, layout: Layout, payload: bytes, first: RowKey, actor: PersistentActor
) -> None:
    actor._check_current()
    actor._is_current = False  # and it stays so if a row fails
    apply = actor.apply
    rows = read_rows(codec, layout, payload)
    left = iter(rows)
    actor._key_in_work = partial(key_in_work, rows, left, layout, first)
    for row in left:
        apply(row)
    actor._key_in_work = None
    actor._is_current = True


def _snapshot(codec: Codec, actor: PersistentActor) -> EntryState:
    actor._check_current()
    snapshot = codec.encode(actor.snapshot())
    outbox = actor._outbox
    if outbox is None or not (pieces := outbox.take()):
        return EntryState(snapshot)
    return EntryState(snapshot, Publication(outbox.schema.serialize().to_pybytes(), pieces))
