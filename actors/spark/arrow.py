"""Turn an entry point's answers into record batches of the promised schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from callboard.spark.errors import AnswerError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def record_batches(answer: Any) -> Iterable[pa.RecordBatch]:
    """Return the record batches of one answer; raise AnswerError when it is something else."""
    import pyarrow as pa

    if isinstance(answer, pa.RecordBatch):
        return (answer,)
    if answer is None:
        return ()
    if isinstance(answer, pa.Table):
        batches: list[pa.RecordBatch] = answer.to_batches()
        return batches
    if isinstance(answer, Iterable) and not isinstance(answer, (str, bytes)):
        return (batch for part in answer for batch in record_batches(part))
    raise AnswerError("record batches, tables, or None", answer)


def fields_of(schema: StructType | str) -> str:
    """Write a Spark schema as names and types; on the driver, where Spark can parse a string."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    parsed = schema if isinstance(schema, StructType) else _parse_datatype_string(schema)
    return parsed.simpleString()


def checked(batches: Iterable[pa.RecordBatch], fields: str) -> Iterator[pa.RecordBatch]:
    """Pass on batches that have these names and types; raise SchemaError at another.

    Spark itself would read a column by its position, whatever its name, and say of one with
    another type only that a getter is missing.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    fitting: pa.Schema | None = None
    for batch in batches:
        if fitting is None or not batch.schema.equals(fitting):
            answered = from_arrow_schema(batch.schema).simpleString()
            if answered != fields:
                raise SchemaError(f"the entry point answered {answered}, and schema= says {fields}")
            fitting = batch.schema
        yield batch
