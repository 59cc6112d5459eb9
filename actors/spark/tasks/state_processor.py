"""Keyed state as a stateful processor of Spark; importing this module needs PySpark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from callboard.spark.frames.frame_rows import plain_rows
from callboard.spark.tasks.reporting import reported


class StateRules(Protocol):
    """A KeyedState as a processor uses it."""

    state: StructType
    schema: StructType

    def _kept(self, state: Any) -> Any:
        """Return a state as `receive` gets it."""

    def _of_rows(self, state: Any, rows: Iterable[dict[str, Any]]) -> tuple[Any, Any]:
        """Process rows of a key; return its new state, and the outputs."""

    def _of_frame(self, state: Any, frame: Any) -> tuple[Any, list[Any]]:
        """Process pandas rows of a key; return its new state, and the outputs in pandas."""

    def _to_keep(self, state: Any) -> tuple[Any, ...]:
        """Return a state as Spark keeps it."""


class StateProcessor(StatefulProcessor):
    """Keeps a key's state as one value, called "state"; rows are Spark's or pandas'."""

    def __init__(self, keyed: StateRules) -> None:
        self._keyed = keyed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the store; called by Spark, in each task."""
        self._store = handle.getValueState("state", self._keyed.state)

    @reported
    def handleInputRows(  # noqa: N802 - Spark calls it so
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Any]:
        """Process a key's rows of a micro-batch; called by Spark."""
        keyed = self._keyed
        state = keyed._kept(self._store.get()) if self._store.exists() else None
        make = Row(*keyed.schema.names)
        for each in rows:
            if isinstance(each, Row):
                state, outputs = keyed._of_rows(state, [each.asDict(recursive=True)])
                yield from [make(*output) for output in plain_rows(outputs)]
            else:
                state, frames = keyed._of_frame(state, each)
                yield from frames
        if state is not None:
            self._store.update(keyed._to_keep(state))
        else:
            self._store.clear()

    def close(self) -> None:
        """Nothing is open; called by Spark."""
