"""The five queries' shapes, made of native operators, so that the GIL plays no part."""

from typing import Any

from callboard.streams import Stream
from savina.result import Quantity, Result
from streams.playing import OPERATORS, play, scattered
from streams.policies import heuristic
from streams.query_shapes import PS, SF, SHAPES


def run(
    n: int,
    *,
    query: int = 1,
    workers: int = 1,
    partitions: int = 64,
    policy: str,
    batch_size: int,
    window: int,
    **options: Any,
) -> Result | Quantity:
    def build(stream: Stream[int], cost: float) -> Stream[int]:
        for kind, of_a_row, selectivity in SHAPES[query]:
            operator = OPERATORS.SerialParametric if kind == SF else OPERATORS.Parametric
            ns = int(1000 * of_a_row * cost)
            parts = partitions if kind == PS else None
            stream = stream.native(operator, ns, selectivity, partitions=parts)
        return stream

    options |= {"batch_size": batch_size, "window": window}
    options["policy"] = heuristic(policy, rows=batch_size * window)
    return play(build, scattered(n), workers=workers, **options)
