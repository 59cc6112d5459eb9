"""A snapshot: its parts, its bytes, and how a run resumes from it.

The bytes are a head, followed by one msgpack array: the positions of the entries, the states of the
operators in the plan's order, and the rows that joins share. The head has the version of that, its
length, and the checksum of both. States are encoded by `state_codec`, each in separate pieces.
"""

from __future__ import annotations

import builtins
import gc
import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack

from callboard.core.handles import public_names
from callboard.core.monitoring.private_files import new_file, read_file
from callboard.core.text import safe_str
from callboard.frequency.results import Counted, Frequent
from callboard.streams.errors import FailedRow, SnapshotError
from callboard.streams.planning.plan import Plan, PlannedOperator
from callboard.streams.programs.joins.window_rows import SavedRows
from callboard.streams.programs.program import Program, Watermark
from callboard.streams.programs.windows.window import Window

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Codec, Types
    from callboard.remote.wire.frames import Buffer


def state_codec(types: Types = ()) -> Codec:
    """Make a codec. `types` are dataclasses, enumerations, classes of exceptions and NamedTuples.

    The package with the encoding is imported here, since few runs have snapshots. Raises
    ConfigError for other types.
    """
    from callboard.remote.wire.codec import Codec, named

    codec = Codec({"callboard.FailedRow": FailedRow})
    codec.add("callboard.Watermark", Watermark, lambda mark: [mark.time], Watermark)
    for ours in (Window, Counted, Frequent):
        codec.add(f"callboard.{ours.__name__}", ours, tuple, ours)
    codec.add_later("pyarrow.lib.RecordBatch", _batch_parts, _batch_from)
    for name, found in vars(builtins).items():
        if isinstance(found, type) and issubclass(found, Exception):
            codec.add(f"builtins.{name}", found, _arguments, found)
    for name, cls in named(types):
        if isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields"):
            codec.add(name, cls, tuple, cls)
        elif isinstance(cls, type) and issubclass(cls, Exception):
            codec.add(name, cls, _arguments, cls)
        else:
            codec.register(name, cls, exactly=True)
    return codec


def _arguments(error: Exception) -> Iterable[Any]:
    return error.args


def _batch_parts(batch: Any) -> list[bytes]:
    """Return the bytes of a record batch: a stream of Arrow's, which names the columns.

    Raises CodecError for a column of a type that is not read here.
    """
    import pyarrow as pa

    from callboard.remote.wire.arrow_columns import check_types

    check_types(batch.schema)  # of others none could be read
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return [sink.getvalue().to_pybytes()]


def _batch_from(data: bytes) -> Any:
    """Make a record batch again. Raises CodecError."""
    from callboard.remote.wire.arrow_ipc import read_batches

    (batch,) = read_batches(data, is_trusted=True)
    return batch


# Version 1 did not say which operators have keys. The checksum of version 2 was of its body alone.
VERSION = 3

_HEAD = Struct("!10sHIQ")
_MAGIC = b"callboard\n"
# The detail of these may change: it has nothing to do with their state.
_FREE = ("ask", "map", "to")

Piece = list[bytes]
"""Columns of values, each encoded separately."""


def _checksum(version: int, body: Buffer) -> int:
    return zlib.crc32(body, version if version > 2 else 0)


class OperatorState(NamedTuple):
    """An operator of the plan, with its state."""

    name: str
    kind: str
    detail: str
    sources: list[list[int | None]]
    serials: list[int]
    head: bytes | None
    """None: it has no state."""
    pieces: list[Piece]
    is_keyed: bool | None = None
    """None: a snapshot of version 1 does not say."""

    def what_differs(self, operator: PlannedOperator, number: int) -> str:
        """Say how an operator of a plan differs from this one; empty if they are the same."""
        named = f"operator {number}, {operator.name!r} ({operator.kind}),"
        if (self.name, self.kind) != (operator.name, operator.kind):
            return (
                f"operator {number} is {operator.name!r} ({operator.kind}) in the graph, and was "
                f"{self.name!r} ({self.kind}) in the snapshot"
            )
        if self.kind not in _FREE and self.detail != operator.detail:
            was = f"was {self.detail!r} in the snapshot"
            return f"{named} is {operator.detail!r} in the graph, and {was}"
        if self.is_keyed not in (None, operator.is_keyed):
            now, then = ("keys", "none") if operator.is_keyed else ("no keys", "some")
            return f"{named} has {now} in the graph, and had {then} in the snapshot"
        if self.sources != [[*source] for source in operator.sources]:
            return f"{named} reads other streams now"
        return ""


class Snapshot:
    """The state of all operators of a run at one point, and the position in its input.

    Made by `Run.snapshot()`, `load()` or `from_bytes()`, and restored by `system.run(graph,
    restore=snapshot)`, any number of times.
    """

    __dir__ = public_names

    def __init__(
        self,
        position: dict[str, int],
        operators: Sequence[OperatorState],
        kept: Sequence[Piece],
        codec: Codec,
        pause: float = 0.0,
    ) -> None:
        self._position = position
        self._operators = operators
        self._kept = kept
        self.codec = codec
        self.pause = pause
        """For how many seconds the stream stood still; 0 of one that was read."""

    @property
    def position(self) -> dict[str, int]:
        """The number of rows of each entry in the state. A source continues after them."""
        return self._position.copy()

    # --- bytes ------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the snapshot as bytes, with a version and a checksum."""
        body: bytes = msgpack.packb([[*self._position.items()], self._operators, self._kept])
        return _HEAD.pack(_MAGIC, VERSION, _checksum(VERSION, body), len(body)) + body

    @classmethod
    def from_bytes(cls, data: bytes, types: Types = ()) -> Snapshot:
        """Read the bytes of `to_bytes()`. `types` are those of `SnapshotStore`.

        Raises SnapshotError for a snapshot that is broken, or of a later version.
        """
        return cls._read(data, state_codec(types), "the snapshot")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the snapshot to a file, atomically and durably.

        Only its owner can read the file. Raises OSError.
        """
        path = Path(path)
        draft = path.with_name(f"{path.name}.new")
        try:
            with new_file(draft) as file:
                file.write(self.to_bytes())
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @classmethod
    def load(cls, path: str | PathLike[str], types: Types = ()) -> Snapshot:
        """Read a snapshot from a file. Raises OSError, and SnapshotError like `from_bytes()`."""
        return cls._read(read_file(Path(path)), state_codec(types), f"the file {str(path)!r}")

    @classmethod
    def _read(cls, data: bytes, codec: Codec, what: str) -> Snapshot:
        if len(data) < _HEAD.size or not data.startswith(_MAGIC):
            raise SnapshotError(f"{what} is not a snapshot: it begins with {data[:10]!r}")
        _, version, seal, length = _HEAD.unpack_from(data)
        body = memoryview(data)[_HEAD.size :]
        if len(body) != length:
            raise SnapshotError(f"{what} is broken: expected {length} bytes, got {len(body)}")
        found = _checksum(version, body)
        if found != seal:
            raise SnapshotError(
                f"{what} is broken: expected the checksum {seal:08x}, got {found:08x}"
            )
        if version > VERSION:
            error = SnapshotError(
                f"{what} is a snapshot of version {version}, and this release reads {VERSION}"
            )
            error._is_of_a_later_version = True
            raise error
        try:
            position, operators, kept = msgpack.unpackb(body)
            return cls(dict(position), [OperatorState(*each) for each in operators], kept, codec)
        except (ValueError, TypeError) as error:
            raise SnapshotError(f"{what} is broken: {safe_str(error)}") from error

    # --- back in a run ----------------------------------------------------------------------------

    def _check(self, plan: Plan) -> None:
        """Refuse a graph that is not the one which it was taken of. Raises SnapshotError."""
        entries = tuple(self._position)
        if entries != plan.entries:
            raise SnapshotError(
                f"the graph's entries are {', '.join(plan.entries)}, and those of the snapshot "
                f"{', '.join(entries)}"
            )
        for number, (state, one) in enumerate(zip_longest(self._operators, plan.operators)):
            if state is None:
                what = f"operator {number}, {one.name!r} ({one.kind}), is not in the snapshot"
            elif one is None:
                what = f"operator {number}, {state.name!r} ({state.kind}), is not in the graph"
            else:
                what = state.what_differs(one, number)
            if what:
                raise SnapshotError(f"the snapshot is of another graph: {what}")

    def _restore_into(self, programs: Sequence[Program], divided: Sequence[bool]) -> None:
        """Give programs their states, before they have any rows. Raises SnapshotError."""
        collects = gc.isenabled()
        gc.disable()  # which would look through all that is made here, and stays
        try:
            try:
                kept = SavedRows([self._decoded(piece) for piece in self._kept])
            except Exception as error:
                text = safe_str(error)
                raise SnapshotError(f"the rows of its joins cannot be read: {text}") from error
            for state, program, is_divided in zip(self._operators, programs, divided, strict=True):
                self._give(state, program, kept, is_divided)
        finally:
            if collects:
                gc.enable()

    def _give(
        self, state: OperatorState, program: Program, kept: SavedRows, is_divided: bool
    ) -> None:
        try:
            program.serials = state.serials
            if state.head is not None:
                head = tuple(self.codec.decode(state.head, is_trusted=True))
                columns = [self._decoded(piece) for piece in state.pieces]
                program.restore(head, columns, kept, is_divided)
        except Exception as error:
            raise SnapshotError(
                f"operator {state.name!r} cannot continue from its state: {safe_str(error)}"
            ) from error

    def _decoded(self, piece: Piece) -> list[list[Any]]:
        return [self.codec.decode_rows(column, is_trusted=True) for column in piece]

    def __repr__(self) -> str:
        rows = ", ".join(f"{rows:,} rows of {name!r}" for name, rows in self._position.items())
        return f"<Snapshot behind {rows}>"
