"""Which rows of a batch are partners, as a user's function answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from callboard.core.text import safe_repr
from callboard.streams.programs.unawaited import check_answer


def places_in(answer: Any, rows: int) -> Any:
    """Return the places at which a mask of so many rows is true; null is not. Raises TypeError."""
    import pyarrow as pa

    check_answer(answer)
    mask = answer
    if isinstance(answer, pa.Array | pa.ChunkedArray) and answer.type == pa.bool_():
        mask = np.asarray(answer.fill_null(False))
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (rows,):
        return np.flatnonzero(mask)
    raise TypeError(
        "where= answers a boolean array of NumPy or Arrow, with a value for each of "
        f"{rows:,} rows, not {safe_repr(answer)}"
    )
