"""The five queries' shapes (table 1 of the paper): kind, cost and selectivity of each operator.

Costs are ten times those of the Python operators in `examples/tpcxbb` on 30,000 rows of a shop, in
microseconds for a row. Selectivities are theirs.
"""

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
