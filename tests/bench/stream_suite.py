"""Benchmarks of ordered streams: those of the targets, and the paper's figures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from callboard.scheduling.flow.threading_models import MODELS
from competitor import Benchmark, Competitor
from players import NATIVES, Game, with_workers
from streams.query_shapes import PS, SF, SHAPES, SL

POLICIES = ("CT", "LP", "LP following", "ET", "QST")  # as `streams.policies` knows them
QUERIES = (1, 2, 3, 4, 15)
COSTS = {1: 90, 2: 31, 3: 9, 4: 6, 15: 6}  # microseconds for a row: `streams.query_shapes`
PARTITIONING = ("hybrid", "partitioned")
REORDERING = ("non_blocking", "locked")
KINDS = {SL: "SL", PS: "PS", SF: "SF"}  # as tests/native/bench/bench_structures.cpp has them
PYTHON_COSTS = {"light": 1_000_000, "middling": 200_000, "heavy": 20_000}  # rows, of 0.1 to 20 us
PYTHON_STATELESS = ("map", "map by a method", "filter", "flat_map")
PYTHON_KEYED = ("keyed stateful", "keyed scan", "keyed fold")
UNITS = {"rate": "rows/s", "latency": "ms"}
SIZES = (  # bytes of a row, and of a keyed operator's state in each of 64 partitions
    ("rows of 64 B", 64, 0),
    ("rows of 4 KB", 4 << 10, 0),
    ("rows of 64 KB", 64 << 10, 0),
    ("rows of 64 B, states of 4 KB", 64, 4 << 10),
    ("rows of 64 B, states of 64 KB", 64, 64 << 10),
    ("rows of 64 B, states of 1 MB", 64, 1 << 20),
)
SMALL = {"batch": 16, "window": 64, "markers": 4}  # rows are costly, so rounds are small


@dataclass(frozen=True)
class Plan:
    """How large a run is, with how many workers, and under which threading models besides."""

    smoke: bool
    workers: Sequence[int]
    models: Sequence[str] = ()

    def game(self, module: str, size: int, smallest: int = 400) -> Game:
        return Game(f"streams.{module}", size, smallest, self.smoke)

    def some(self, players: Iterator[Competitor]) -> list[Competitor]:
        """Take all players; of a smoke run's, which are many and alike, every tenth."""
        return list(players)[:: 10 if self.smoke else 1]


def scaling(plan: Plan) -> Benchmark:
    game = plan.game("stateless", 400_000)
    players = [
        game.operators(with_workers(name, workers), rate, workers=workers, ns=ns)
        for name, ns, rate in (("1 us", 1_000, 1), ("10 us", 10_000, 0.1))
        for workers in plan.workers
    ]
    return Benchmark("streams_scaling", "A stateless native operator", "rows/s", players)


def ordering(plan: Plan) -> Benchmark:
    game = plan.game("stateless", 400_000)
    players = [
        game.operators(f"{name}, {ns} ns", rate, ns=ns, ordered=ordered)
        for ns, rate in ((0, 5), (200, 3), (1_000, 1))
        for name, ordered in (("ordered", "true"), ("unordered", "false"))
    ]
    return Benchmark("streams_ordering", "What ordering costs one worker", "rows/s", players)


def python(plan: Plan) -> Benchmark:
    game = plan.game("python_pipeline", 1_000_000)
    players = [
        game.alone("callboard", "ours", by="graph"),
        game.alone("callboard, batches of 1,000", "ours", by="graph", batch_size=1_000),
        game.alone("generators", "floor", by="generators"),
    ]
    for size in (10, 100, 1_000, 10_000):
        title = f"Bytewax, batches of {size:,}"
        players.append(game.alone(title, "peer", 0.3, by="bytewax", batch_size=size))
    return Benchmark("streams_python", "Map, filter, keyed count in Python", "rows/s", players)


def python_operators(plan: Plan) -> Benchmark:
    players = [
        plan.game("python_operators", rows).alone(
            with_workers(f"{operator}, {cost}", workers),
            "ours",
            operator=operator,
            cost=cost,
            workers=workers,
        )
        for cost, rows in PYTHON_COSTS.items()
        for operator in (*PYTHON_STATELESS, *PYTHON_KEYED)
        for workers in plan.workers
    ]
    title = "One operator in Python, by its cost and by workers"
    return Benchmark("streams_python_operators", title, "rows/s", players)


def python_beside(plan: Plan) -> Benchmark:
    smallest = 100 * 512  # in batches of 512
    players = [
        plan.game("python_beside", rows, smallest).alone(
            f"{function}, {cost}", "ours", function=function, cost=cost
        )
        for cost, rows in (("light", 400_000), ("middling", 100_000))
        for function in ("closure", "closure and a dictionary", "method")
    ]
    title = "Two lanes in one function in Python, against one"
    return Benchmark("streams_python_beside", title, "x", players)


def sessions(plan: Plan) -> Benchmark:
    game = plan.game("sessions", 400_000)
    players = [
        game.alone("callboard, rows in order", "ours", by="ordered"),
        game.alone("callboard, watermarks", "ours", by="watermarks"),
        game.alone("callboard, a watermark for 1,000", "ours", by="rare_watermarks"),
        game.alone("callboard, all open to the end", "ours", by="end"),
        game.alone("callboard, a class", "ours", by="class"),
        game.alone("plain Python", "floor", by="plain"),
        game.alone("pandas", "peer", by="pandas"),
    ]
    return Benchmark("streams_sessions", "Sessions in a real stream", "rows/s", players)


def arrow(plan: Plan) -> Benchmark:
    game = plan.game("arrow_pipeline", 40_000_000)
    players = [game.alone("callboard", "ours")]
    return Benchmark("streams_arrow", "The same on Arrow batches", "rows/s", players)


def arrow_joins(plan: Plan) -> Benchmark:
    game = plan.game("arrow_join", 1_000_000)
    players = [
        game.alone(f"{name}, {window:,} rows a side", "ours", by=by, window=window)
        for name, by in (("the paper's band", "band"), ("equal keys", "equal"))
        for window in (10_000, 300_000)
    ]
    return Benchmark("streams_arrow_join", "Joins of Arrow batches", "rows/s", players)


def memory(plan: Plan) -> Benchmark:
    game = plan.game("memory", 1_000_000)
    players = [game.alone(f"{n} M rows", "ours", n) for n in (1, 5, 10)]
    return Benchmark("streams_memory", "A graph that is fed without limit", "MB", players)


def latency(plan: Plan) -> Benchmark:
    game = plan.game("latency", 20_000)
    players = [
        game.operators(with_workers(measure, workers), measure=measure, workers=workers)
        for workers in plan.workers
        for measure in ("median", "p99")
    ]
    title = "Latency of five native operators of 1 us at half load"
    return Benchmark("streams_latency", title, "us", players)


def long(plan: Plan, batch: int, size: int) -> Benchmark:
    """Play 1,000 native operators, in batches or, with a batch of 0, row by row."""
    game = plan.game("long_pipeline", size)
    own: dict[str, Any] = {"batch_size": batch or 1}

    def of_peer(program: str, rate: float, *words: str) -> Iterator[Competitor]:
        # Row by row, a peer is so many times as fast as we are; in batches all are alike.
        sized = plan.game("adding", size if batch else int(size * rate))
        for workers in plan.workers:
            played = sized.by(program, workers, "1000", str(batch), *words)
            title = ", ".join((NATIVES[program][0], *words))
            yield replace(played, name=with_workers(title, workers))

    ways: dict[str, dict[str, Any]] = {"callboard": {}, "callboard, serial": {"serial": "true"}}
    players = [
        game.operators(with_workers(title, workers), workers=workers, **own, **options)
        for title, options in ways.items()
        for workers in plan.workers
    ]
    for threading in ("manual", "dedicated", "assigned"):
        title = f"callboard, {threading}"
        players.append(game.operators(title, threading=threading, **own))
    players += of_peer("tbb", 1, "serial")
    players += of_peer("tbb", 2, "stateless")
    players += of_peer("free_ports", 5)
    name, title = ("streams_long", "batches") if batch else ("streams_long_rows", "row by row")
    return Benchmark(name, f"1,000 native operators, {title}", "rows x operators/s", players)


def one_row(plan: Plan) -> Benchmark:
    players = []
    for kind, native in (("Python", False), ("native", True)):
        for operators in (10, 100, 1_000, 10_000):
            game = plan.game("one_row", 400_000 // operators, 5)
            play = game.operators if native else partial(game.alone, part="ours")
            option: dict[str, Any] = {"native": "true"} if native else {}
            players.append(play(title=f"{operators:,} {kind}", operators=operators, **option))
    title = "One row through an idle pipeline, for an operator"
    return Benchmark("streams_one_row", title, "ns", players)


def to_sink(plan: Plan) -> Benchmark:
    players = []
    for kind, operators, model in product(("Python", "native"), (10, 100), MODELS):
        game = plan.game("to_sink", 10_000, 5)
        play = game.operators if kind == "native" else partial(game.alone, part="ours")
        option: dict[str, Any] = {"native": "true"} if kind == "native" else {}
        title = f"{operators} {kind}, {model}"
        players.append(play(title=title, operators=operators, threading=model, **option))
    return Benchmark("streams_to_sink", "One row from send() to the sink", "us", players)


def start(plan: Plan) -> Benchmark:
    players = []
    for operators in (1_000, 10_000):
        game = Game("streams.start", operators, operators, plan.smoke)
        players += [
            game.alone(f"{operators:,}, {phase}", "ours", phase=phase)
            for phase in ("define", "start", "end")
        ]
    return Benchmark("streams_start", "A graph's start, for an operator", "us", players)


def asking(plan: Plan) -> Benchmark:
    game = plan.game("asking", 40_000)
    players = [
        game.alone("ask(in_flight=64)", "ours", way="stream"),
        game.alone("asks by hand", "peer", way="by hand"),
        game.alone("asyncio tasks", "peer", way="tasks"),
    ]
    return Benchmark("streams_asking", "Answers that take 1 ms, 64 at a time", "rows/s", players)


def snapshots(plan: Plan) -> Benchmark:
    game = plan.game("snapshots", 1_000_000)
    players = [
        game.alone(f"{state}, {part}", "ours", state=state, measured=part)
        for state in ("counts", "pairs", "lists")
        for part in ("pause", "whole", "restore")
    ]
    return Benchmark("streams_snapshots", "A snapshot of a million keys", "ms", players)


def heuristics(plan: Plan, measure: str) -> Benchmark:
    def players() -> Iterator[Competitor]:
        for query, workers, policy in product(QUERIES, plan.workers, POLICIES):
            game = plan.game("shapes", 400_000 // COSTS[query])
            small = {"batch_size": 16, "window": 64, "markers": 4}
            title = with_workers(f"Q{query}, {policy}", workers)
            options = {"query": query, "workers": workers, "policy": policy, "measure": measure}
            yield game.operators(title, 1, **small, **options)

    title = "Heuristics on the queries' shapes"
    return figure(f"fig8_{measure}", title, measure, plan.some(players()))


def staged(
    game: Game, title: str, workers: int, operators: Sequence[str], **options: object
) -> Competitor:
    """Let stages alone play, with our structures or others: Python makes runs with ours only."""
    words = (*(f"{key}={value}" for key, value in options.items()), *operators)
    return replace(game.by("structures", workers, *words), name=with_workers(title, workers))


def shapes(plan: Plan, schemes: Sequence[str]) -> Iterator[Competitor]:
    """Play the five shapes with each scheme, by the paper's best heuristic."""
    for query, workers, scheme in product(QUERIES, plan.workers, schemes):
        game = plan.game("shapes", 400_000 // COSTS[query])
        operators = [f"{KINDS[kind]}:{us * 1000:g}:{rows:g}" for kind, us, rows in SHAPES[query]]
        few = {"partitions": workers} if scheme == "partitioned" else {}
        options = {**SMALL, **few, "scheme": scheme, "ct": 1}
        yield staged(game, f"Q{query}, {scheme}", workers, operators, **options)


def skew(plan: Plan) -> Benchmark:
    def players() -> Iterator[Competitor]:
        game = plan.game("keyed", 40_000)
        for sigma, mean in ((0, 0), (0.4, 0), (0.2, 0), (0.1, 0), (0.1, 0.5)):
            keys = f"sigma {sigma}" if sigma else "even"
            keys += f" around {mean}" if mean else ""
            for scheme, workers in product(PARTITIONING, plan.workers):
                options = partitioned(scheme, workers) | {"sigma": sigma, "mean": mean}
                yield staged(game, f"{keys}, {scheme}", workers, ["PR:10000:1"], **options)

    return figure("fig9", "A keyed operator of 10 us under skew", "rate", plan.some(players()))


def partitioned(scheme: str, workers: int) -> dict[str, Any]:
    """Partition as the paper: by 100 for the hybrid queue, by one a worker for the other."""
    return {"scheme": scheme, "partitions": 100 if scheme == "hybrid" else workers}


def latency_by_cost(plan: Plan) -> Benchmark:
    def players() -> Iterator[Competitor]:
        workers = max(plan.workers)
        each = {"measure": "latency", "batch": 1, "markers": 1}
        for us, scheme in product((10, 100, 1_000, 10_000), PARTITIONING):
            game = plan.game("keyed", min(20_000, 800_000 // us), 40)
            options = partitioned(scheme, workers) | each
            player = staged(game, "", workers, [f"PR:{us * 1000}:1"], **options)
            yield replace(player, name=f"{us:,} us, {scheme}")

    return figure("fig10", "Latency of a keyed operator", "latency", plan.some(players()))


def partitioning_of_queries(plan: Plan) -> Benchmark:
    players = plan.some(shapes(plan, PARTITIONING))
    return figure("fig11_rate", "Partitioning on the queries' shapes", "rate", players)


def light(plan: Plan) -> Benchmark:
    """Send rounds of one row through the stages of tests/native/bench; Python would send slower."""

    def players() -> Iterator[Competitor]:
        for ns, scheme, workers in product((0, 200, 1_000, 10_000), REORDERING, plan.workers):
            game = plan.game("reordering", 400_000_000 // (ns + 100))
            player = game.by("flow", workers, str(ns), scheme)
            yield replace(player, name=with_workers(f"{ns:,} ns, {scheme}", workers))

    return figure("fig12", "A light operator, row by row", "rate", plan.some(players()))


def light_in_rounds(plan: Plan) -> Benchmark:
    def players() -> Iterator[Competitor]:
        game = plan.game("stateless", 400_000)
        for ns, scheme, workers in product((50, 200, 1_000), REORDERING, plan.workers):
            options = {"scheme": scheme, "batch": 16, "window": 1024}
            yield staged(game, f"{ns:,} ns, {scheme}", workers, [f"SL:{ns}:1"], **options)

    title = "A light operator, rounds of 16 rows"
    return figure("fig12_rounds", title, "rate", plan.some(players()))


def selective(plan: Plan) -> Benchmark:
    def players() -> Iterator[Competitor]:
        game = plan.game("selective", 4_000)
        operators = ["SL:100000:50", "PS:2000:1"]  # both take as long for a row that comes
        for batch, scheme, workers in product((1, 16), REORDERING, plan.workers):
            options = {"scheme": scheme, "batch": batch, "partitions": 100}
            yield staged(game, f"rounds of {batch}, {scheme}", workers, operators, **options)

    return figure("fig13", "50 rows for each, 100 us", "rate", plan.some(players()))


def reordering_of_queries(plan: Plan) -> Benchmark:
    players = plan.some(shapes(plan, REORDERING))
    return figure("fig14", "Reordering on the queries' shapes", "rate", players)


def figure(name: str, title: str, measure: str, players: list[Competitor]) -> Benchmark:
    unit = UNITS[measure]
    return Benchmark(name, f"{title}, {unit}", unit, players)


def touching(plan: Plan) -> Benchmark:
    """Have a stateless and a keyed operator read and write a row's memory, and a partition's."""

    def players() -> Iterator[Competitor]:
        for (title, tuple_size, state), workers in product(SIZES, plan.workers):
            game = plan.game("touching", 2_000_000_000 // (4 * tuple_size + state + 4_000))
            options = {"batch": 16, "window": 64, "tuple": tuple_size, "state": state}
            yield staged(game, title, workers, ["SL:0:1", "PS:0:1"], **options)

    title = "Operators that touch memory, by the size of a row and of a state"
    return Benchmark("streams_sizes", title, "rows/s", [*players()], costs=True)


STREAMS: dict[str, Callable[[Plan], Benchmark]] = {
    "streams_scaling": scaling,
    "streams_ordering": ordering,
    "streams_python": python,
    "streams_python_operators": python_operators,
    "streams_python_beside": python_beside,
    "streams_sessions": sessions,
    "streams_arrow": arrow,
    "streams_arrow_join": arrow_joins,
    "streams_memory": memory,
    "streams_latency": latency,
    "streams_long": partial(long, batch=512, size=100_000),
    "streams_long_rows": partial(long, batch=0, size=10_000),
    "streams_one_row": one_row,
    "streams_to_sink": to_sink,
    "streams_start": start,
    "streams_asking": asking,
    "streams_snapshots": snapshots,
    "streams_sizes": touching,
    "fig8_rate": partial(heuristics, measure="rate"),
    "fig8_latency": partial(heuristics, measure="latency"),
    "fig9": skew,
    "fig10": latency_by_cost,
    "fig11_rate": partitioning_of_queries,
    "fig12": light,
    "fig12_rounds": light_in_rounds,
    "fig13": selective,
    "fig14": reordering_of_queries,
}
