"""The five queries' shapes (table 1 of the paper), of native operators: no GIL is measured.

Costs are ten times those that the Python operators of `queries` had on 30,000 rows of a shop, in
microseconds for a row, and selectivities are theirs.
"""

from typing import Any

from callboard.streams import Stream
from savina.result import Quantity, Result
from streams.playing import OPERATORS, play, scattered
from streams.policies import heuristic

SL, PS, SF = "stateless", "partitioned stateful", "stateful"

SHAPES: dict[int, list[tuple[str, float, float]]] = {
    1: [(SL, 3, 1), (PS, 22, 4.2), (PS, 6.5, 1), (SF, 10, 0.52)],
    2: [(SL, 2.5, 0.58), (PS, 1.9, 0.075), (SL, 295, 80), (PS, 2.1, 1), (SF, 2.2, 0.01)],
    3: [(SL, 2.2, 0.58), (PS, 4.7, 0.82), (PS, 8.4, 0.6)],
    4: [(SL, 3.1, 0.58), (PS, 1.9, 0.075), (SL, 29.7, 0.58), (SF, 1.5, 0.01)],
    15: [(SL, 1.9, 1), (SL, 1.2, 1), (PS, 2.3, 0.01)],
}


def cost(query: int) -> float:
    """Return the microseconds for a row that enters the query's graph."""
    rows, spent = 1.0, 0.0
    for _, of_a_row, selectivity in SHAPES[query]:
        spent += rows * of_a_row
        rows *= selectivity
    return spent


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
    """Play a query; the rival "partitioned" has as many partitions as workers, as in the paper."""
    if options.get("rivals") == "partitioned":
        partitions = workers

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
