"""The model of joins and merges: pair by pair, without windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from callboard.streams import Watermark


class Row(NamedTuple):
    """A row, told apart from all others by its stream and number."""

    stream: int
    number: int
    time: Any
    value: int = 0


class Taken(NamedTuple):
    """What became of the rows of some streams."""

    rows: list[Row]
    """In the one order: by time, by stream, as they came."""
    late: list[list[Row]]


def taken(streams: Sequence[Sequence[Row | Watermark]], delay_threshold: Any = 0) -> Taken:
    """Sort out what is late, and put the others in order."""
    rows: list[Row] = []
    late: list[list[Row]] = []
    for stream in streams:
        come_to = None
        late.append([])
        for row in stream:
            behind = row.time if isinstance(row, Watermark) else row.time - delay_threshold
            if isinstance(row, Row):
                if come_to is not None and row.time < come_to:
                    late[-1].append(row)
                    continue
                rows.append(row)
            come_to = behind if come_to is None else max(come_to, behind)
    rows.sort(key=lambda row: (row.time, row.stream, streams[row.stream].index(row)))
    return Taken(rows, late)


def joined(
    rows: Sequence[Row],
    *,
    within: Any = None,
    count: int | None = None,
    rule: str = "strict",
    how: str = "inner",
    where: Callable[[Row, Row], object] = lambda left, right: True,
    combine: Callable[[Any, Any], Any] = lambda left, right: (left, right),
    failed: list[Row] | None = None,
) -> list[Any]:
    """What a join gives of rows in their order; rows at which a function raises go to `failed`."""
    strict = rule == "strict" and count is None
    lengths = (within[1], within[0]) if isinstance(within, tuple) else (within, within)
    unmatched = {"left": (0,), "right": (1,), "outer": (0, 1), "anti": (0,)}.get(how, ())
    one_is_enough = how in ("semi", "anti")
    bad: set[int] = set()
    waits: set[int] = set()  # to be an output for want of a partner
    matched: set[int] = set()
    out: list[Any] = []

    def sees(at: int, older: int) -> bool:
        """Whether the window of the other stream has an older row when a row comes."""
        row, other = rows[at], rows[older]
        if row.stream == other.stream:
            return False
        since = [each for each in rows[older + 1 : at] if each.stream == other.stream]
        if count is not None:
            return len(since) < count
        length = lengths[other.stream]
        if strict:
            return bool(row.time - other.time <= length)
        return not since or bool(since[-1].time - other.time <= length)

    def gone(at: int, older: int) -> bool:
        """Whether an older row has left its window, by the time that a row has been handled."""
        own = [each for each in rows[older + 1 : at + 1] if each.stream == rows[older].stream]
        if count is not None:
            return len(own) >= count
        length = lengths[rows[older].stream]
        if strict:
            return bool(rows[at].time - rows[older].time > length)
        return bool(own) and bool(own[-1].time - rows[older].time > length)

    def over(at: int) -> Any:
        """When it is too late for a partner of a row, by the strict rule; and its place."""
        if lengths[0] == lengths[1]:
            return rows[at].time, at  # the sum of a large length is rounded
        return rows[at].time + lengths[rows[at].stream], at

    def given(row: Row, make: Callable[[], list[Any]]) -> bool:
        """Give what a row makes, if it can."""
        try:
            outputs = make()
        except Exception:
            if failed is None:
                raise
            failed.append(row)
            return False
        out.extend(outputs)
        return True

    def alone(row: Row) -> list[Any]:
        if how == "anti":
            return [row]
        return [combine(None, row) if row.stream else combine(row, None)]

    def leave(at: int) -> None:
        for older in sorted(waits, key=over if strict else None):
            if at == len(rows) or gone(at, older):
                waits.remove(older)
                given(rows[older], partial(alone, rows[older]))

    for at, row in enumerate(rows):
        if strict:
            leave(at)
        partners: list[int] = []

        def make(at: int = at, row: Row = row, partners: list[int] = partners) -> list[Any]:
            for older, other in enumerate(rows[:at]):
                if older in bad or not sees(at, older):
                    continue
                if one_is_enough and (older in matched if row.stream else partners):
                    continue
                if where(*((other, row) if row.stream else (row, other))):
                    partners.append(older)
            if one_is_enough:
                lefts = (
                    [rows[older] for older in partners] if row.stream else [row][: len(partners)]
                )
                return lefts if how == "semi" else []
            return [
                combine(rows[older], row) if row.stream else combine(row, rows[older])
                for older in partners
            ]

        if given(row, make):
            matched.update(partners, [at] if partners else [])
            waits.difference_update(partners)
            if row.stream in unmatched and not partners:
                waits.add(at)
        else:
            bad.add(at)
        if not strict:
            leave(at)
    leave(len(rows))
    return out
