"""What a join and a merge give, said pair by pair, without windows: the oracle of their tests."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
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


def taken(streams: Sequence[Sequence[Row | Watermark]], lag: Any = 0) -> Taken:
    """Sort out what is late, and put the others in order."""
    rows: list[Row] = []
    late: list[list[Row]] = []
    for stream in streams:
        come_to = None
        late.append([])
        for row in stream:
            behind = row.time if isinstance(row, Watermark) else row.time - lag
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
    failed: Container[Row] = (),
) -> list[Any]:
    """What a join gives of rows in their order; some fail, which count, and give nothing."""

    def sees(at: int, older: int) -> bool:
        """Whether the window of the other stream has an older row when a row comes."""
        row, other = rows[at], rows[older]
        if row.stream == other.stream:
            return False
        since = [each for each in rows[older + 1 : at] if each.stream == other.stream]
        if count is not None:
            return len(since) < count
        if rule == "strict":
            return bool(row.time - other.time <= within)
        return not since or bool(since[-1].time - other.time <= within)

    def gone(at: int, older: int) -> bool:
        """Whether an older row has left its window, by the time that a row has been handled."""
        own = [each for each in rows[older + 1 : at + 1] if each.stream == rows[older].stream]
        if count is not None:
            return len(own) >= count
        if rule == "strict":
            return bool(rows[at].time - rows[older].time > within)
        return bool(own) and bool(own[-1].time - rows[older].time > within)

    lonely = {"left": (0,), "right": (1,), "outer": (0, 1), "anti": (0,)}.get(how, ())
    waits = [False] * len(rows)  # to be an output for want of a partner

    def leaving(at: int) -> Iterator[Any]:
        for older in range(min(at + 1, len(rows))):
            if waits[older] and (at == len(rows) or gone(at, older)):
                waits[older] = False
                row = rows[older]
                yield row if how == "anti" else (None, row) if row.stream else (row, None)

    out: list[Any] = []
    given: set[int] = set()
    for at, row in enumerate(rows):
        if rule == "strict" and count is None:
            out += leaving(at)
        waits[at] = row.stream in lonely and row not in failed
        for older in range(at):
            other = rows[older]
            left, right = (other, row) if row.stream else (row, other)
            if row in failed or other in failed or not sees(at, older) or not where(left, right):
                continue
            waits[at] = waits[older] = False
            if how == "semi":
                first = older if row.stream else at
                if first not in given:
                    given.add(first)
                    out.append(left)
            elif how != "anti":
                out.append((left, right))
        if rule != "strict" or count is not None:
            out += leaving(at)
    return out + list(leaving(len(rows)))
