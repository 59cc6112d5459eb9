"""Keyed state as a processor of Spark's; this module needs PySpark to be imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from callboard.spark.frame_rows import frame_of, records_of

if TYPE_CHECKING:
    from callboard.spark.keyed_state import KeyedState


class StateProcessor(StatefulProcessor):
    """Keeps a key's state as one value, called "state"; its rows are Spark's or pandas'."""

    def __init__(self, keyed: KeyedState) -> None:
        self._keyed = keyed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the store; called by Spark, in each task."""
        self._store = handle.getValueState("state", self._keyed.state)

    def handleInputRows(  # noqa: N802 - Spark calls it so
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Any]:
        """Go through a key's rows of a micro-batch; called by Spark."""
        keyed = self._keyed
        state = tuple(self._store.get() or ()) if self._store.exists() else None
        make = Row(*keyed.schema.names)
        for each in rows:
            if isinstance(each, Row):
                state, outputs = keyed.outputs(state, [each.asDict(recursive=True)])
                yield from [make(*output) for output in outputs]
            else:
                state, outputs = keyed.outputs(state, records_of(each))
                if outputs:
                    yield frame_of(keyed.schema.names, outputs)
        if state is not None:
            self._store.update(state)
        else:
            self._store.clear()

    def close(self) -> None:
        """Nothing is open; called by Spark."""
