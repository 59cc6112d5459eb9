"""Converts pandas frames to rows, as Spark itself would, and rows to frames.

pandas has one type for several of Spark's: integers beside a null are floats, null is NaN, and a
time has no zone. An ambiguous column is refused by its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import TYPE_CHECKING, Any, NoReturn

from callboard.spark.errors import SchemaError
from callboard.spark.frames.frame_rows import plain_rows
from callboard.spark.frames.times import in_zone, zone_of_session

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

_EXACT = 2**53  # from here on a float may stand for several integers
_HELP = "use `processor` of keyed_state(), whose rows do not go through pandas"
_SAY = f"say rows=, the schema of the rows, or {_HELP}"


def records_of(frame: pd.DataFrame, schema: StructType | None = None) -> list[dict[str, Any]]:
    """Return the rows of a frame with this schema as dictionaries.

    Null is None, and a TIMESTAMP an aware datetime in the session's zone, as from Arrow. Raises
    SchemaError for a column with ambiguous values.
    """
    types: dict[Any, DataType] = {field.name: field.dataType for field in schema or ()}
    columns = [_values(name, frame.iloc[:, at], types.get(name)) for at, name in enumerate(frame)]
    names = [*frame]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def frame_of(batch: pa.RecordBatch) -> pd.DataFrame:
    """Return the rows of a batch as a frame, with unchanged values.

    Raises SchemaError for NaN, which Spark would convert to null.
    """
    import pandas as pd

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if _has_nan(column):
            raise SchemaError(
                f"an output has NaN in column {name!r}, which pandas cannot distinguish from null: "
                f"{_HELP}"
            )
    return pd.DataFrame(plain_rows(batch), columns=batch.schema.names, dtype=object)


def _values(name: Any, column: pd.Series[Any], wanted: DataType | None) -> list[Any]:
    kind = column.dtype.kind
    if kind == "f":
        return _floats(name, column.tolist(), wanted)
    if kind == "M":
        return _times(name, column, wanted)
    if kind in "biu" and not column.hasnans:
        return column.tolist()
    return [_plain(name, value, wanted, nan_is_null=True) for value in column]


def _floats(name: Any, values: list[float], wanted: DataType | None) -> list[Any]:
    from pyspark.sql.types import IntegralType

    if all(value == value for value in values):
        return values
    if not isinstance(wanted, IntegralType):
        say = _SAY if wanted is None else _HELP
        raise SchemaError(
            f"column {name!r} has NaN, by which pandas also represents null, with floats for "
            f"integers: {say}"
        )
    for value in values:
        if abs(value) >= _EXACT:
            raise SchemaError(
                f"column {name!r} has an integer next to a null, which pandas has made {value}: "
                + _HELP
            )
    return [int(value) if value == value else None for value in values]


def _times(name: Any, column: pd.Series[Any], wanted: DataType | None) -> list[Any]:
    """Return times of pandas, which are local times in the session's zone, or without one."""
    from pyspark.sql.types import TimestampNTZType

    clocks = [None if at != at else at.to_pydatetime() for at in column]
    if isinstance(wanted, TimestampNTZType):
        return clocks
    zone = zone_of_session()
    for clock in filter(None, clocks):
        if wanted is None:
            _refuse_time(name, f"{clock} is of a timestamp or a timestamp_ntz", _SAY)
        # The folds differ in an hour that comes twice, and in one that never comes.
        if len({clock.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}) > 1:
            where = zone or "this machine's zone"
            _refuse_time(name, f"{clock} comes twice, or never, on clocks of {where}", _HELP)
    return [clock and in_zone(clock.replace(tzinfo=zone), zone) for clock in clocks]


def _plain(name: Any, value: Any, wanted: DataType | None, *, nan_is_null: bool = False) -> Any:
    """Return a value of a column of objects, and nested values, as Python values."""
    import numpy as np
    import pandas as pd
    from pyspark.sql import types as s

    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, float) and value != value and nan_is_null:
        return None  # no column of objects has floats
    if isinstance(value, np.ndarray | list | tuple):
        inside = wanted.elementType if isinstance(wanted, s.ArrayType) else None
        if isinstance(value, np.ndarray) and value.dtype.kind in "fM":
            return _values(name, pd.Series(value), inside)
        return [_plain(name, each, inside) for each in value]
    if isinstance(value, dict):
        types: dict[Any, DataType] = {}
        if isinstance(wanted, s.StructType):
            types = {field.name: field.dataType for field in wanted}
        elif isinstance(wanted, s.MapType):
            types = dict.fromkeys(value, wanted.valueType)
        return {key: _plain(name, each, types.get(key)) for key, each in value.items()}
    if isinstance(value, float) and value != value:
        return _floats(name, [value], wanted)[0]
    if isinstance(value, pd.Timestamp):
        return _times(name, pd.Series([value]), wanted)[0]
    if isinstance(value, pd.Timedelta):
        return value.to_pytimedelta()
    return value.item() if isinstance(value, np.generic) else value


def _refuse_time(name: Any, what: str, say: str) -> NoReturn:
    raise SchemaError(f"in column {name!r}, {what}, and pandas does not tell: {say}")


def _has_nan(column: pa.Array) -> bool:
    import pyarrow.compute as pc
    import pyarrow.types as a

    arrow = column.type
    if a.is_floating(arrow):
        return bool(pc.any(pc.is_nan(column)).as_py())
    if a.is_list(arrow) or a.is_large_list(arrow):
        return _has_nan(column.flatten())
    inside: Iterable[pa.Array] = ()
    if a.is_map(arrow):
        inside = (column.keys, column.items)
    elif a.is_struct(arrow):
        inside = column.flatten()
    return any(map(_has_nan, inside))
