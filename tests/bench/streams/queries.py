"""The five queries of TPCx-BB in Python, on rows of a made-up shop."""

import sys
from pathlib import Path
from time import perf_counter

from callboard import ActorSystem
from savina.result import Quantity, Result
from streams.policies import heuristic

sys.path.append(str(Path(__file__).parents[3] / "examples"))

from tpcxbb import queries, questions, sequential
from tpcxbb.generator import Shop

BATCH_SIZE, WINDOW = 256, 64
ROWS_AT_SCALE_1 = {"web_clickstreams": 6_800_000, "store_sales": 675_000}


def run(
    n: int, *, query: int = 1, workers: int = 1, measure: str = "rate", policy: str = "LP following"
) -> Result | Quantity:
    stream = questions.about(Shop(0.0001))[query].stream
    shop = Shop(n / ROWS_AT_SCALE_1[stream], seed=1)
    question = questions.about(shop)[query]
    rows = list(shop.clicks() if stream == "web_clickstreams" else shop.sales())
    want = sequential.answer(query, question, rows)
    with ActorSystem(workers=workers) as system:
        run = system.run(
            queries.graph(query, question),
            policy=heuristic(policy, rows=BATCH_SIZE * WINDOW),
            batch_size=BATCH_SIZE,
            window=WINDOW,
        )
        begin = perf_counter()
        run.send(stream, rows)
        got = run.finish()
        seconds = perf_counter() - begin
        latency = run.statistics().processing
    same = got == want
    if measure == "latency":
        return Quantity(1e3 * latency.mean if latency else 0.0, got=same, want=True)
    return Result(len(rows), seconds, got=same, want=True)
