"""Keyed state of a pure `receive`, which Spark keeps in its own state store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.spark.errors import SchemaError
from callboard.spark.frames.frame_rows import plain_rows, record_batch, row_of
from callboard.spark.frames.pandas_rows import frame_of, records_of
from callboard.spark.frames.schema import arrow_schema, parsed
from callboard.spark.frames.times import in_zone, zone_of_session
from callboard.spark.tasks.pickling import pickle_for_tasks
from callboard.spark.tasks.reporting import reported

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.streaming.state import GroupState
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType

State: TypeAlias = tuple[Any, ...] | None
PureReceive: TypeAlias = Callable[[State, dict[str, Any]], tuple[Any, Iterable[Any] | None]]


def keyed_state(
    receive: PureReceive | type[Any],
    *args: Any,
    state: StructType | str,
    schema: StructType | str,
    rows: StructType | str | None = None,
    **kwargs: Any,
) -> KeyedState:
    """Return arguments for Spark's stateful streaming methods, from a pure `receive` for each key.

    Rows are the same with each of Spark's methods: null is None, integers are exact, and a
    timestamp is an aware datetime in the session's zone, as in a state. A row with an ambiguous
    pandas value is an error, which names the column.

    Spark keeps the state, and after a failure may repeat a row from the state before it, so
    `receive` must have no other effects. A schema as a string requires an active session.

    Args:
        receive: A function of a key's state and a row that returns the new state, and outputs or
            None. The state is a tuple with the columns of `state`, or None before the key's first
            row and after None was returned. The row is a dictionary; outputs are rows of `schema`,
            dictionaries or tuples. Or a class, as for `stateful()`, whose object has a method
            `receive(row)` that returns the outputs. The state is then the object's attributes named
            like the columns of `state`. They are set before each row; other attributes are not
            kept.
        *args: Arguments of the class.
        state: The schema of a key's state.
        schema: The schema of the outputs.
        rows: The schema of the rows, such as `frame.schema`, which makes fewer values ambiguous.
        **kwargs: Arguments of the class.

    Raises ConfigError and CaptureError, and in the task SchemaError for values that do not fit.
    """
    if not callable(receive):
        raise ConfigError(f"receive expects a function or a class, got {safe_repr(receive)}")
    kept, wanted = parsed(state), parsed(schema)
    come = None if rows is None else parsed(rows)
    if isinstance(receive, type):
        if not hasattr(receive, "receive"):
            raise ConfigError(f"{receive.__qualname__} has no method `receive`")
        receive = partial(_receive_by, receive, args, kwargs, kept.names)
    elif args or kwargs:
        raise ConfigError(f"arguments are for a class, but receive is {safe_repr(receive)}")
    pickle_for_tasks("receive", receive, keep=False)
    return KeyedState(receive, kept, wanted, come)


class KeyedState:
    """Arguments for `applyInPandasWithState` and `transformWithState`. Made by `keyed_state()`."""

    def __init__(
        self,
        receive: PureReceive,
        state: StructType,
        schema: StructType,
        rows: StructType | None = None,
    ) -> None:
        self.state = state
        """The schema of a key's state."""
        self.schema = schema
        """The schema of the outputs."""
        self.rows = rows
        """The schema of the rows, if it was given."""
        self._receive = receive

    @property
    def apply_in_pandas_with_state(
        self,
    ) -> Callable[[Any, Any, GroupState], Iterator[pd.DataFrame]]:
        """For `groupBy(...).applyInPandasWithState`, whose state schema is `state`."""
        return partial(_apply, self)

    @property
    def processor(self) -> StatefulProcessor:
        """For `groupBy(...).transformWithState` and `transformWithStateInPandas`."""
        from callboard.spark.tasks.state_processor import StateProcessor

        return StateProcessor(self)

    def _of_rows(
        self, state: State, rows: Iterable[dict[str, Any]]
    ) -> tuple[State, pa.RecordBatch]:
        """Process rows of a key; return its new state, and the outputs."""
        outputs: list[tuple[Any, ...]] = []
        for row in rows:
            answer = self._receive(state, row)
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise SchemaError(
                    f"receive() must return the new state and outputs, got {safe_repr(answer)}"
                )
            state, given = answer
            if state is not None:
                state = row_of(self.state.names, state, "a state")
            outputs += [row_of(self.schema.names, output) for output in given or ()]
        return state, record_batch(arrow_schema(self.schema), outputs)

    def _of_frame(self, state: State, frame: pd.DataFrame) -> tuple[State, list[pd.DataFrame]]:
        """Process pandas rows of a key; return its new state, and the outputs in pandas."""
        state, outputs = self._of_rows(state, records_of(frame, self.rows))
        return state, [frame_of(outputs)] if outputs.num_rows else []

    def _kept(self, state: Any) -> State:
        """Return a state of Spark, with instants for the naive times of Spark's rows."""
        from pyspark.sql.types import TimestampType

        if state is None:
            return None
        zone = zone_of_session()
        return tuple(
            [
                in_zone(value, zone) if isinstance(field.dataType, TimestampType) else value
                for value, field in zip(state, self.state, strict=True)
            ]
        )

    def _to_keep(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a state with values for Spark's pickled rows: others would become null.

        Raises SchemaError for a value that does not fit.
        """
        [kept] = plain_rows(record_batch(arrow_schema(self.state), [state], "a state"))
        return kept


@reported
def _apply(
    keyed: KeyedState, key: Any, frames: Iterable[pd.DataFrame], store: GroupState
) -> Iterator[pd.DataFrame]:
    state = keyed._kept(store.getOption)
    for frame in frames:
        state, outputs = keyed._of_frame(state, frame)
        yield from outputs
    if state is not None:
        store.update(keyed._to_keep(state))
    elif store.exists:
        store.remove()


def _receive_by(
    cls: type[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: list[str],
    state: State,
    row: dict[str, Any],
) -> tuple[State, list[Any]]:
    one = cls(*args, **kwargs)
    for name, value in zip(names, state or (), strict=False):
        setattr(one, name, value)
    outputs = [*(one.receive(row) or ())]
    return tuple([getattr(one, name) for name in names]), outputs
