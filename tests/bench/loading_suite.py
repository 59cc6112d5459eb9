"""Benchmarks of a data loader: pictures decoded on threads, in batches, in their order."""

from collections.abc import Callable, Iterator

from competitor import Benchmark
from measures import Target, ratio
from players import Game, with_workers
from stream_suite import Plan

WORKERS = (1, 2)  # for which there are targets
PICTURES = 320  # for each worker
OURS = "callboard, a row a round"
WAYS = (
    ("callboard", "ours", "callboard"),
    (OURS, "ours", "one_by_one"),
    ("SPDL", "peer", "spdl"),
    ("ThreadPoolExecutor", "peer", "futures"),
    ("multiprocessing", "peer", "processes"),
    ("PyTorch's DataLoader", "peer", "torch"),
    ("Ray Data", "peer", "ray_data"),
    ("Ray actors", "peer", "ray_actors"),
)


def loader(plan: Plan) -> Benchmark:
    game = Game("loading.playing", PICTURES, 64, plan.smoke)
    players = [
        game.alone(with_workers(title, workers), role, workers, by=by, workers=workers)  # type: ignore[arg-type]
        for title, role, by in WAYS
        for workers in plan.workers
    ]
    players.append(game.alone("a loop", "floor", by="loop"))
    title = "A data loader: decode, cut, scale, normalise, put together"
    return Benchmark("loader", title, "pictures/s", players, costs=True)


def targets() -> Iterator[Target]:
    for workers in WORKERS:
        for other in ("SPDL", "ThreadPoolExecutor"):
            yield Target(
                with_workers(f"A data loader against {other}", workers),
                1.0,
                ratio("loader", with_workers(other, workers), with_workers(OURS, workers)),
            )


LOADING: dict[str, Callable[[Plan], Benchmark]] = {"loader": loader}
