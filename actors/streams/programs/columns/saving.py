"""Columns of Arrow batches, and arrays of numbers, in the form that snapshots store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from callboard.streams.programs.columns.layouts import BatchLayout, inside

Packed = tuple[tuple[str, bytes], ...]


def saved_schema(schema: Any) -> bytes:
    """Return columns as bytes."""
    data: bytes = schema.serialize().to_pybytes()
    return data


def schema_from(data: bytes) -> Any:
    """Make columns again. Raises ArrowInvalid."""
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(data))


def layout_from(outside: Any) -> BatchLayout:
    """Return the layout whose columns are these, of the outside."""
    return BatchLayout(outside, outside, inside(outside))


def packed(arrays: Iterable[Any]) -> Packed:
    """Return arrays as their types and bytes."""
    return tuple((array.dtype.str, array.tobytes()) for array in arrays)


def unpacked(arrays: Packed) -> list[Any]:
    """Make arrays again."""
    return [np.frombuffer(data, dtype) for dtype, data in arrays]
