"""Batches of keys, read from arrays of NumPy, pandas and Arrow, from buffers and iterables."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from callboard.core.checks import LARGEST

__all__ = ["batches", "read_array"]

BATCH = 4096  # keys of an iterator


class ArrowKeys(list[Any]):
    """Arrow arrays of texts or bytes, without nulls."""


def batches(keys: Any, weights: Any) -> Iterator[tuple[Any, list[Any] | None]]:
    """Divide keys: a memoryview of 64-bit integers, Arrow arrays, or a list, with its weights.

    If an iterator raises, the keys before that are a batch, too.
    """
    if isinstance(keys, (str, bytes, tuple)) or not isinstance(keys, Iterable):
        yield [keys], None if weights is None else [weights]
        return
    if weights is None and isinstance(keys, Mapping):
        items = list(keys.items())
        yield [key for key, _ in items], [weight for _, weight in items]
        return
    keys = read_array(keys)
    if weights is not None:
        keys, weights = list(keys), list(weights)
        if len(keys) != len(weights):
            raise ValueError(f"expected as many weights as keys, {len(keys)}, got {len(weights)}")
        yield keys, weights
    elif type(keys) in (memoryview, ArrowKeys):
        yield keys, None
    elif hasattr(keys, "__len__"):
        yield list(keys), None
    else:
        rest = iter(keys)
        batch: list[Any] = []
        while True:
            try:
                batch.extend(islice(rest, BATCH))
            except BaseException:
                yield batch, None
                raise
            yield batch, None
            if len(batch) < BATCH:
                return
            batch = []


def read_array(keys: Any) -> Any:
    """Return an array's keys: a memoryview of 64-bit integers, Arrow arrays, or a list of objects.

    Other objects are returned unchanged. Raises TypeError for an array of another type, such as
    floats, whose rounding would give unintended keys. Raises ValueError for an array with nulls.
    """
    library = str(type(keys).__module__).partition(".")[0]
    if library == "pandas" and hasattr(keys, "to_numpy"):
        _check_nulls(int(keys.isna().sum()))
        keys = keys.to_numpy()
        library = "numpy"
    if library == "pyarrow" and hasattr(keys, "null_count"):
        return _read_arrow(keys)
    if library == "numpy" and hasattr(keys, "dtype"):
        return _read_numpy(keys)
    if isinstance(keys, (array, bytearray, memoryview)):
        return _read_buffer(memoryview(keys))
    return keys


def _read_buffer(view: memoryview) -> Any:
    _check_dimensions(view.ndim)
    if view.format in ("q", "l") and view.itemsize == 8 and view.c_contiguous:
        return view.cast("B").cast("q")
    if view.format in tuple("bBhHiIlLqQ?w"):
        return _integers_or_list(view.tolist())
    raise TypeError(f"keys expect an array of integers or strings, got format {view.format!r}")


def _read_numpy(keys: Any) -> Any:
    _check_dimensions(keys.ndim)
    if hasattr(keys, "mask"):  # of a masked array
        _check_nulls(int(keys.mask.sum()))
        keys = keys.data
    kind = keys.dtype.kind
    if kind in "iu":
        if kind == "u" and keys.dtype.itemsize == 8 and len(keys) and keys.max() > LARGEST:
            return keys.tolist()
        return memoryview(keys.astype("<i8", order="C", copy=False)).cast("B").cast("q")
    if kind in "bUSOT":
        return keys.tolist()
    raise TypeError(
        f"keys expect an array of integers, strings, bytes or objects, got {keys.dtype}"
    )


def _read_arrow(keys: Any) -> Any:
    import pyarrow

    _check_nulls(keys.null_count)
    sort = keys.type
    if pyarrow.types.is_dictionary(sort):
        sort = sort.value_type
        keys = keys.cast(sort)
        _check_nulls(keys.null_count)
    if pyarrow.types.is_integer(sort):
        numbers = (
            keys.to_numpy(zero_copy_only=False)
            if isinstance(keys, pyarrow.Array)
            else keys.to_numpy()
        )
        return _read_numpy(numbers)
    if pyarrow.types.is_floating(sort) or pyarrow.types.is_nested(sort):
        raise TypeError(f"keys expect an array of integers, strings, bytes or objects, got {sort}")
    if any(test(sort) for test in _native_tests()):
        return ArrowKeys(keys.chunks if isinstance(keys, pyarrow.ChunkedArray) else [keys])
    return keys.to_pylist()


def _native_tests() -> list[Any]:
    """Return the tests for types whose arrays are runs of bytes with offsets in memory."""
    from pyarrow import types

    return [types.is_string, types.is_large_string, types.is_binary, types.is_large_binary]


def _integers_or_list(keys: list[Any]) -> Any:
    try:
        return memoryview(array("q", keys))
    except (OverflowError, TypeError):  # beyond 64 bits, or characters
        return keys


def _check_nulls(nulls: int) -> None:
    if nulls:
        raise ValueError(f"a null is not a key, and the array has {nulls}")


def _check_dimensions(dimensions: int) -> None:
    if dimensions != 1:
        raise TypeError(f"an array of keys must have one dimension, got {dimensions} dimensions")
