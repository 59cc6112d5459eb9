"""Snapshots of dataclasses and enumerations as states, rows and keys, and without keys."""

from __future__ import annotations

import enum
import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgpack
import pytest

from callboard.streams import FailedRow, Graph, Snapshot, SnapshotError, TumblingWindow, entry
from callboard.streams.snapshots.snapshot import _HEAD, _MAGIC
from callboard.testing import ManualSystem
from tests.streams.test_snapshot_files import go_on, snapshot_of

T = TypeVar("T")
rows = entry("rows")


def in_two(graph: Graph[Any], before: list[Any], after: list[Any], *types: type) -> Any:
    """Run a graph over rows with a cut between, that goes through bytes."""
    saved = snapshot_of(graph, before, types=types).to_bytes()
    return go_on(graph, Snapshot.from_bytes(saved, types), after)


# --- dataclasses ----------------------------------------------------------------------------------


@dataclass
class Mean:
    n: int = 0
    total: float = field(default=0.0, init=False)
    seen: list[float] = field(default_factory=list, init=False)

    def receive(self, row: float) -> list[float]:
        self.n += 1
        self.total += row
        self.seen.append(row)
        return [self.total / self.n]


@dataclass(slots=True)
class SlottedMean(Mean):
    last: float = field(init=False)  # there is none at first

    def receive(self, row: float) -> list[float]:
        self.last = row
        return Mean.receive(self, row)


@pytest.mark.parametrize("cls", [Mean, SlottedMean])
def test_a_state_keeps_fields_that_are_no_arguments_of_the_constructor(cls: type[Mean]) -> None:
    for stream in (rows.stateful(cls), rows.key_by(lambda _: "all").stateful(cls)):
        assert in_two(stream.collect(), [], [3.0], cls) == [3.0]
        assert in_two(stream.collect(), [3.0, 4.0], [8.0], cls) == [3.0, 3.5, 5.0]


@dataclass(frozen=True)
class Doubled:
    value: int
    by: InitVar[int] = 2
    parts: tuple[int, ...] = field(init=False)

    def __post_init__(self, by: int) -> None:
        object.__setattr__(self, "value", self.value * by)
        object.__setattr__(self, "parts", (self.value, by))


@dataclass(frozen=True, slots=True)
class Tight:
    value: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "double", 2 * self.value)


@dataclass
class Held(Generic[T]):
    value: T

    @cached_property
    def text(self) -> str:
        return str(self.value)


def test_rows_come_back_with_all_of_their_fields() -> None:
    held = Held[int](4)
    assert held.text == "4"
    tight = Tight(3)
    object.__setattr__(tight, "double", 7)
    [[doubled, other, again]] = in_two(
        rows.batch(3).collect(), [Doubled(5, 3), tight, held], [], Doubled, Tight, Held
    )
    assert (doubled.value, doubled.parts) == (15, (15, 3))
    assert (other.value, other.double) == (3, 7)
    assert (again, again.text) == (held, "4")


@dataclass
class Loose:
    x: int = 0

    def __post_init__(self) -> None:
        self.total = 0
        self.most = 0

    def receive(self, row: int) -> list[int]:
        self.total += row
        return [self.total]


class Slotted:
    __slots__ = ("hidden",)
    hidden: int


@dataclass(slots=True)
class LooseSlots(Slotted):
    x: int = 0

    def receive(self, row: int) -> None:
        self.hidden = row  # type: ignore[misc]


@pytest.mark.parametrize(("cls", "named"), [(Loose, "total, most"), (LooseSlots, "hidden")])
def test_attributes_that_are_no_fields_are_an_error_that_names_them(cls: Any, named: str) -> None:
    with ManualSystem() as system:
        run = system.run(rows.stateful(cls, name="sums").collect())
        run.send("rows", [1])
        said = f"'sums' .* a {cls.__name__} has attributes that are not fields.* lost: {named}\\. "
        with pytest.raises(SnapshotError, match=said):
            run.snapshot([cls])
        run.cancel()


# --- enumerations and other metaclasses -----------------------------------------------------------


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Name(enum.StrEnum):
    ANN = "ann"
    BOB = "bob"


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


class Base(ABC):
    @abstractmethod
    def area(self) -> int: ...


@dataclass(frozen=True)
class Square(Base):
    side: int

    def area(self) -> int:
        return self.side**2


MEMBERS = [
    (Colour.RED, Colour.BLUE),
    (Level.LOW, Level.HIGH),
    (Name.ANN, Name.BOB),
    (Right.READ, Right.READ | Right.WRITE),
    (Bits.ONE, Bits.ONE | Bits.TWO),
    (Square(1), Square(2)),
]


@pytest.mark.parametrize(("one", "other"), MEMBERS, ids=lambda value: type(value).__name__)
def test_values_of_any_metaclass_are_states_keys_and_parts_of_both(one: Any, other: Any) -> None:
    cls = type(one)
    got = in_two(rows.scan(other, lambda _, row: row).collect(), [one], [other], cls)
    assert [(type(each), each) for each in got] == [(cls, one), (cls, other)]
    for last in (rows.fold(one, lambda state, _: state), rows.batch(3)):
        assert in_two(last.collect(), [one], [other], cls) in ([one], [[one, other]])
    keyed = rows.key_by(lambda row: row).count().collect()
    assert in_two(keyed, [one, other], [one], cls) == [(one, 1), (other, 1), (one, 2)]
    none: list[Any] = []
    pairs = rows.key_by(lambda row: (row, 1)).fold(none, lambda found, row: [*found, (row,)])
    [(key, found)] = in_two(pairs.collect(), [one], [one], cls)
    assert (key, type(key[0]), found) == ((one, 1), cls, [(one,), (one,)])


# --- keys, and none -------------------------------------------------------------------------------


def add(total: int, row: int) -> int:
    return total + row


WITH_STATE: list[Callable[[Any], Any]] = [
    lambda stream: stream.fold(0, add),
    lambda stream: stream.scan(0, add),
    lambda stream: stream.count(),
    lambda stream: stream.batch(2),
    lambda stream: stream.reduce(sum, every=2),
    lambda stream: stream.window(TumblingWindow(2), sum),
    lambda stream: stream.stateful(Mean),
    lambda stream: stream.top_k(2),
    lambda stream: stream.distinct(),
]


@pytest.mark.parametrize("then", WITH_STATE)
def test_a_graph_whose_keys_came_or_went_is_another(then: Callable[[Any], Any]) -> None:
    plain = then(rows).collect()
    for keyed in (then(rows.key_by(str, partitions=n)).collect() for n in (None, 1, 4)):
        saved = snapshot_of(plain, [1, 2, 3], types=[Mean])
        with pytest.raises(SnapshotError, match=r"operator 0, .* has keys in the graph, and had n"):
            go_on(keyed, saved, [4])
        saved = snapshot_of(keyed, [1, 2, 3], types=[Mean])
        with pytest.raises(SnapshotError, match=r"operator 0, .* no keys in the graph, and had s"):
            go_on(plain, saved, [4])


def of_version_1(snapshot: Snapshot) -> bytes:
    position, states, kept = msgpack.unpackb(snapshot.to_bytes()[_HEAD.size :])
    body: bytes = msgpack.packb([position, [state[:-1] for state in states], kept])
    return _HEAD.pack(_MAGIC, 1, zlib.crc32(body), len(body)) + body


def test_a_snapshot_of_version_1_does_not_say_whether_there_were_keys() -> None:
    graph = rows.key_by(str).count().collect()
    saved = Snapshot.from_bytes(of_version_1(snapshot_of(graph, [1, 2])))
    assert go_on(graph, saved, [1]) == [("1", 1), ("2", 1), ("1", 2)]


@pytest.mark.parametrize("key", [(1, math.nan), ((), (2, (math.nan,)))])
def test_a_key_with_nan_in_a_tuple_is_an_error_of_its_row(key: Any) -> None:
    counted = rows.key_by(lambda row: key if row == 2 else (row, None)).count(errors="side")
    got = counted.union(counted.failures).collect().run_sequentially({"rows": [1, 2, 1]})
    failure = got.pop(1)
    assert got == [((1, None), 1), ((1, None), 2)]
    assert isinstance(failure, FailedRow)
    assert "a part of a key must be equal to itself, got nan" in str(failure.error)
