"""Turn an entry point's answers into record batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from callboard.spark.errors import AnswerError

if TYPE_CHECKING:
    import pyarrow as pa


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
