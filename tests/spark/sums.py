"""Served actors that add up, and that publish; and a frame's function that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from callboard.remote import PersistentActor, connect


class Sums(PersistentActor):
    def __init__(self) -> None:
        self.rows = 0
        self.total = 0
        self.partitions: list[int] = []

    def apply(self, row: Any) -> None:
        self.rows += row.num_rows
        self.total += sum(row.column("id").to_pylist())
        self.partitions.append(self.key.partition)

    def answer(self, query: Any) -> Any:
        return [self.rows, self.total, sorted(self.partitions) == self.partitions]

    def snapshot(self) -> Any:
        return [self.rows, self.total, self.partitions]

    def restore(self, state: Any) -> None:
        self.rows, self.total, self.partitions = state


class Stateless(PersistentActor):
    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        pass


class Echo(Stateless):
    """Publishes each number that it gets."""

    published: ClassVar[Any] = pa.schema([("id", pa.int64()), ("text", pa.string())])

    def apply(self, row: Any) -> None:
        self.publish((row, f"text {row}"))


class Kinds(Stateless):
    """Publishes each row, of types of Arrow that are not those of Spark."""

    published: ClassVar[Any] = pa.schema(
        [
            pa.field("key", pa.int32(), nullable=False),
            ("small", pa.int16()),
            ("long_text", pa.large_string()),
            ("local", pa.timestamp("ms")),
            ("instant", pa.timestamp("s", "Europe/Berlin")),
            ("day", pa.date32()),
            ("price", pa.decimal128(10, 2)),
            ("list", pa.list_(pa.int32())),
        ]
    )

    def apply(self, row: Any) -> None:
        self.publish(row)


def sums(url: str) -> Any:
    with connect(url) as connection:
        while connection.health().result(60)["unapplied"]:
            pass
        return connection.ref("sums").ask("sums").result(60)


def health(url: str) -> dict[str, Any]:
    with connect(url) as connection:
        return connection.health().result(60)


def failing(
    marker: Path, times: int, partition: int = 1
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Fail in the middle of a partition, the first so many times."""

    def pass_on(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            yield batch
            marks = list(marker.iterdir())
            if context.partitionId() == partition and len(marks) < times:
                (marker / str(context.taskAttemptId())).touch()
                raise RuntimeError("this attempt fails")

    return pass_on
