"""A cut: the states of all programs while the stream is paused.

Values that others can change, such as objects of users' classes, are encoded during the pause. The
others are only noted, and encoded after it: numbers, texts, times, tuples of these, and lists and
dictionaries without another reference. Their columns are cut into pieces, so that no piece holds
the interpreter for long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from callboard.core.text import safe_str
from callboard.streams.errors import SnapshotError
from callboard.streams.planning.plan import Plan, PlannedOperator
from callboard.streams.programs.joins.window_rows import SavedRows
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.sinks import Call, Collect
from callboard.streams.programs.saved import Columns
from callboard.streams.snapshots.snapshot import OperatorState, Piece, Snapshot

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Codec


class _Noted(NamedTuple):
    operator: PlannedOperator
    serials: list[int]
    head: bytes | None
    parts: list[Columns | list[Piece]]
    """Columns that are to be encoded, and pieces that are."""


class Cut:
    """The parts of a snapshot. `take()` runs during the pause, `encoded()` afterwards."""

    def __init__(self, codec: Codec, position: dict[str, int]) -> None:
        self._codec = codec
        self._position = position
        self._kept = SavedRows()
        self._noted: list[_Noted] = []
        self._files: list[Any] = []

    def take(
        self, operator: PlannedOperator, program: Program, parts: list[Any] | None = None
    ) -> None:
        """Take the state of a program, or these parts of it. Raises SnapshotError."""
        columns: list[Columns] = []
        try:
            head, *columns = (program.snapshot(self._kept) if parts is None else parts) or [None]
            encoded = None if head is None else self._codec.encode([*head])
            noted = [self._noted_part(part) for part in columns]
        except BaseException as error:
            for part in columns:
                part.let_go()
            if isinstance(error, SnapshotError) or not isinstance(error, Exception):
                raise
            raise _unsaved(operator, error) from error
        self._noted.append(_Noted(operator, program.serials, encoded, noted))
        if isinstance(program, Call) and program.place is not None:
            self._files.append(program.place)

    def take_kept(self) -> None:
        """Take the rows that joins share, when all programs are taken. Raises SnapshotError."""
        try:
            self._kept_rows = self._noted_part(self._kept.columns())
        except Exception as error:
            raise SnapshotError(f"a row in a join cannot be saved: {safe_str(error)}") from error

    def encoded(self, pause: float) -> Snapshot:
        """Encode the remaining state, while the stream continues. Raises SnapshotError."""
        try:
            return self._encoded(pause)
        finally:
            self.let_go()

    def sync_files(self) -> None:
        """Make the files of sinks durable, before a snapshot that has their lengths is used."""
        for place in self._files:
            place.sync()

    def let_go(self) -> None:
        """Release the programs' states."""
        for noted in self._noted:
            for part in noted.parts:
                if not isinstance(part, list):
                    part.let_go()

    def _encoded(self, pause: float) -> Snapshot:
        operators = []
        for operator, serials, head, parts in self._noted:
            try:
                pieces = [piece for part in parts for piece in self._pieces_of(part)]
            except Exception as error:
                raise _unsaved(operator, error) from error
            sources = [[*source] for source in operator.sources]
            said = operator.name, operator.kind, operator.detail, sources
            operators.append(OperatorState(*said, serials, head, pieces, operator.is_keyed))
        kept = list(self._pieces_of(self._kept_rows))
        return Snapshot(self._position, operators, kept, self._codec, pause)

    def _noted_part(self, part: Columns) -> Columns | list[Piece]:
        return part if part.can_wait() else list(self._pieces_of(part))

    def _pieces_of(self, part: Columns | list[Piece]) -> Iterator[Piece]:
        if isinstance(part, list):
            yield from part
            return
        for begin in range(0, len(part), part.piece):
            yield [self._codec.encode_rows(column) for column in part.part(begin)]


def cut_of(
    plan: Plan,
    programs: Sequence[Program],
    position: dict[str, int],
    outputs: dict[str, list[Any]],
    codec: Codec,
) -> Cut:
    """Take the states of programs, while nothing changes them. Raises SnapshotError.

    `outputs` are those of collectors that others take from, by their names: what is left of them.
    """
    cut = Cut(codec, position)
    try:
        for operator, program in zip(plan.operators, programs, strict=True):
            collected = outputs.get(program.name) if isinstance(program, Collect) else None
            cut.take(operator, program, None if collected is None else [(), Columns([collected])])
        cut.take_kept()
    except BaseException:
        cut.let_go()
        raise
    return cut


def _unsaved(operator: PlannedOperator, error: Exception) -> SnapshotError:
    return SnapshotError(
        f"operator {operator.name!r} ({operator.kind}) has a state that cannot be saved: "
        f"{safe_str(error)}. A class of yours has snapshot() and restore(), or is one of types="
    )
