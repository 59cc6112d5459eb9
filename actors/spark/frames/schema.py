"""Checks record batches against a Spark schema: names, types, and nulls.

Spark itself takes columns by position, whatever their names. For a type that it cannot read, its
error only says that a getter is missing. It silently misreads some types, such as the codes of a
dictionary as integers. `reads` has what it reads right, found by trying Spark 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.spark.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType


def parsed(schema: StructType | str) -> StructType:
    """Return a Spark schema; on the driver, where Spark can parse a string. Raise ConfigError."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    # A string that is one type alone, such as "long", is parsed to that type.
    found = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if not isinstance(found, StructType):
        raise ConfigError(
            f"schema expects a StructType, or a string of columns' names and types, got "
            f"{safe_repr(schema)}"
        )
    return found


def arrow_schema(wanted: StructType) -> pa.Schema:
    """Return the Arrow types that Spark itself has for a schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(wanted, timezone="UTC")
    except TypeError:  # Spark 4.0 has no other time zone
        return to_arrow_schema(wanted)


def checked(
    batches: Iterable[pa.RecordBatch], wanted: StructType, said: str = "the entry point answered"
) -> Iterator[pa.RecordBatch]:
    """Pass on batches that Spark reads as this schema; raise SchemaError at another.

    `said` begins the error, with the origin of the batches.
    """
    fitting: pa.Schema | None = None
    without_nulls = [not (field.nullable and _may_be_null(field.dataType)) for field in wanted]
    for batch in batches:
        if fitting is None or not batch.schema.equals(fitting):
            if misfit := _misfit(batch.schema, wanted):
                answered = ", ".join(f"{field.name}: {field.type}" for field in batch.schema)
                raise SchemaError(
                    f"{said} {answered or 'no column'}, but schema= is "
                    f"{wanted.simpleString()}: {misfit}"
                )
            fitting = batch.schema
        for index, field in enumerate(wanted):
            if without_nulls[index] and _has_null(batch[index], field.dataType, field.nullable):
                raise SchemaError(
                    f"{said} a null in column {field.name!r}, which schema= does not allow"
                )
        yield batch


def _misfit(answered: pa.Schema, wanted: StructType) -> str | None:
    """Describe how the columns of a batch differ from the expected ones."""
    if answered.names != wanted.names:
        return f"expected the columns {wanted.names}, got {answered.names}"
    for arrow, field in zip(answered.types, wanted, strict=True):
        if not reads(arrow, field.dataType):
            return (
                f"Spark cannot read {field.dataType.simpleString()} from column {field.name!r} of "
                f"type {arrow}{_advice(field.dataType)}"
            )
    return None


def _advice(wanted: DataType) -> str:
    from pyspark.sql.types import StructField, StructType

    try:
        return f"; cast it to {arrow_schema(StructType([StructField('x', wanted)])).types[0]}"
    except Exception:  # Arrow has no such type
        return ""


def reads(arrow: pa.DataType, wanted: DataType) -> bool:
    """Tell whether Spark reads values of this Arrow type right, in a type of its own."""
    import pyarrow.types as a
    from pyspark.sql import types as s

    if a.is_null(arrow):
        return True
    if isinstance(wanted, s.UserDefinedType):
        return reads(arrow, wanted.sqlType())
    views = hasattr(s, "TimeType")  # Spark 4.0 has neither
    if isinstance(wanted, s.StringType):  # of whatever collation
        is_view = views and a.is_string_view(arrow)
        return bool(a.is_string(arrow) or a.is_large_string(arrow) or is_view)
    if isinstance(wanted, s.BinaryType):
        is_view = views and a.is_binary_view(arrow)
        return bool(a.is_binary(arrow) or a.is_large_binary(arrow) or is_view)
    if isinstance(wanted, s.DecimalType):
        return bool(a.is_decimal128(arrow)) and _is_within(arrow, wanted)
    if isinstance(wanted, s.TimestampType):
        return bool(a.is_timestamp(arrow)) and arrow.unit == "us" and arrow.tz is not None
    if isinstance(wanted, s.TimestampNTZType):
        return bool(a.is_timestamp(arrow)) and arrow.unit == "us" and arrow.tz is None
    if isinstance(wanted, s.DayTimeIntervalType):
        return bool(a.is_duration(arrow)) and arrow.unit == "us"
    if isinstance(wanted, getattr(s, "TimeType", ())):
        return bool(a.is_time64(arrow)) and arrow.unit == "ns"
    if isinstance(wanted, s.ArrayType):
        listed = a.is_list(arrow) or (views and a.is_list_view(arrow))
        return bool(listed) and reads(arrow.value_type, wanted.elementType)
    if isinstance(wanted, s.MapType):
        return (
            bool(a.is_map(arrow))
            and reads(arrow.key_type, wanted.keyType)
            and reads(arrow.item_type, wanted.valueType)
        )
    if isinstance(wanted, s.StructType):
        return bool(a.is_struct(arrow)) and _misfit(_fields(arrow), wanted) is None
    return _is_plain(arrow, wanted)


def _fields(arrow: pa.StructType) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([arrow.field(index) for index in range(arrow.num_fields)])


def _is_within(arrow: pa.Decimal128Type, wanted: Any) -> bool:
    """Tell whether every number of an Arrow decimal fits Spark's without rounding."""
    whole = arrow.precision - arrow.scale
    return bool(arrow.scale <= wanted.scale and whole <= wanted.precision - wanted.scale)


def _is_plain(arrow: pa.DataType, wanted: DataType) -> bool:
    """Tell whether the types are equal."""
    import pyarrow.types as a
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        return not a.is_dictionary(arrow) and bool(from_arrow_type(arrow) == wanted)
    except Exception:  # Spark knows no such Arrow type
        return False


def _may_be_null(wanted: DataType) -> bool:
    """Tell whether nulls are allowed everywhere inside a value of this type."""
    from pyspark.sql import types as s

    if isinstance(wanted, s.UserDefinedType):
        return _may_be_null(wanted.sqlType())
    if isinstance(wanted, s.ArrayType):
        return wanted.containsNull and _may_be_null(wanted.elementType)
    if isinstance(wanted, s.MapType):  # a key never is, and Arrow sees to it
        return wanted.valueContainsNull and _may_be_null(wanted.valueType)
    if isinstance(wanted, s.StructType):
        return all(field.nullable and _may_be_null(field.dataType) for field in wanted)
    return True


def _has_null(column: pa.Array, wanted: DataType, nullable: bool) -> bool:
    """Tell whether a null stands where the type allows none."""
    from pyspark.sql import types as s

    if not nullable and column.null_count:
        return True
    if isinstance(wanted, s.UserDefinedType):
        return _has_null(column, wanted.sqlType(), True)
    if column.null_count == len(column) or _may_be_null(wanted):
        return False
    if isinstance(wanted, s.ArrayType):
        return _has_null(column.flatten(), wanted.elementType, wanted.containsNull)
    assert isinstance(wanted, s.StructType | s.MapType)
    inside = column.drop_null()  # under a null there is nothing to be read
    if isinstance(wanted, s.MapType):
        first, last = inside.offsets[0].as_py(), inside.offsets[-1].as_py()
        values = inside.items.slice(first, last - first)
        return _has_null(values, wanted.valueType, wanted.valueContainsNull)
    return any(
        _has_null(inside.field(index), field.dataType, field.nullable)
        for index, field in enumerate(wanted)
    )
