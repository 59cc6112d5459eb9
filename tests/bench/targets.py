"""The targets of callboard, in one table; a run adds its measurements."""

from collections.abc import Iterator, Sequence

from calling_suite import targets as calling_targets
from channel_suite import COUNTS, TELL
from elastic_targets import ELASTIC_TARGETS
from frequency_suite import ALPHAS
from loading_suite import targets as loading_targets
from measures import (
    FREE_THREADED,
    NATIVE_FLOOR,
    PYTHON_FLOOR,
    Target,
    best_peer,
    by_hand,
    cost,
    growth,
    least,
    least_lead,
    ratio,
    spread,
    value,
)
from nets_suite import (
    AT_A_TIME,
    BARE_CALLS,
    DEEP,
    LANGGRAPH,
    PLAIN_LOOP,
    POLICIES,
    SHALLOW,
    SIZES,
    TASKS,
    THREADS,
    TWO_PROCESSES,
)
from nexmark_suite import targets as nexmark_targets
from processes_suite import targets as processes_targets
from stream_suite import PYTHON_KEYED, PYTHON_STATELESS
from workers_suite import WORKS, Work, name_of


def of_workers(benchmark: str, work: Work) -> Iterator[Target]:
    """What two workers shall be worth where nobody says who lives on which."""
    for kind in work.kinds:
        two = name_of(kind, 2)
        title = f"{work.title}, {kind}: 2 workers"
        alone = kind == "Python" and not FREE_THREADED  # the interpreter's lock runs one at a time
        wanted = min(0.9, work.wanted) if alone else work.wanted
        yield Target(f"{title} against 1", wanted, ratio(benchmark, name_of(kind, 1), two))
        if kind == "native" and work.against_go:
            go = ratio(benchmark, "Go, 2 workers", two)
            yield Target(f"{title}, against Go's 2", work.against_go, go)
        yield Target(f"{title}, against the best by hand", 0.9, by_hand(benchmark, kind))


def of_operators(kind: str, operators: Sequence[str]) -> Iterator[Target]:
    """What two workers shall be worth for operators in Python, the worst of a kind."""
    for load, wanted in (("light", 0.9), ("middling", 1.7), ("heavy", 1.7)):
        ratios = (
            ratio("streams_python_operators", each, f"{each}, 2 workers")
            for each in (f"{operator}, {load}" for operator in operators)
        )
        title = f"{kind} operators in Python, {load}: 2 workers against 1"
        yield Target(title, wanted if FREE_THREADED else 0.9, least(*ratios))


NATIVE = "callboard, native"
TWO = "callboard, 2 workers"
LENGTHS = ("10", "100", "1,000", "10,000")

TARGETS = (
    Target("Python ping-pong against a bare call", 0.5, ratio("ping_pong", PYTHON_FLOOR)),
    Target("Python thread ring against a bare call", 0.5, ratio("thread_ring", PYTHON_FLOOR)),
    Target("Counting from one thread against a bare call", 0.35, ratio("counting", PYTHON_FLOOR)),
    Target(
        "Counting in batches against a bare call",
        1.0,
        ratio("counting", PYTHON_FLOOR, "callboard, in batches"),
    ),
    Target("Python spawn, one message, stop", 500_000, value("fork_join_create"), "actors/s"),
    Target("Ask against two threads and two queues", 1.0, ratio("ask", "two threads, two queues")),
    Target(
        "100 messages in the middle against plain tasks of asyncio",
        0.8,
        ratio("concurrent", "asyncio tasks", "concurrency=100"),
    ),
    Target("Native ping-pong against the floor", 0.5, ratio("ping_pong", NATIVE_FLOOR, NATIVE)),
    Target("Native ping-pong against CAF", 4.0, ratio("ping_pong", "CAF", NATIVE)),
    Target(
        "Native pipeline against the floor", 0.5, ratio("native_pipeline", NATIVE_FLOOR, NATIVE)
    ),
    Target("Native pipeline against CAF", 4.0, ratio("native_pipeline", "CAF", NATIVE)),
    Target("Native pipeline against oneTBB", 1.2, ratio("native_pipeline", "oneTBB", NATIVE)),
    Target(
        "Native pipeline, 2 workers against 1",
        1.7,
        ratio("native_pipeline", NATIVE, f"{NATIVE}, 2 workers"),
    ),
    Target("Pykka where it does best", 20, least_lead("Pykka")),
    Target("xoscar where it does best", 20, least_lead("xoscar")),
    Target("Thespian where it does best", 20, least_lead("Thespian")),
    Target("An idle actor, its object included", 1_073, value("memory"), "bytes", at_most=True),
    Target("An idle system", 1.0, value("idle"), "% of a core", at_most=True),
    Target(
        "An idle system of native actors",
        1.0,
        value("idle", f"{NATIVE}, 4 workers"),
        "% of a core",
        at_most=True,
    ),
    Target(
        "Stateless native operator of 1 us, 2 workers against 1",
        1.8,
        ratio("streams_scaling", "1 us", "1 us, 2 workers"),
    ),
    Target(
        "Light operator (200 ns), non-blocking against lock-based reordering, 2 workers",
        1.15,
        ratio("fig12", "200 ns, locked, 2 workers", "200 ns, non_blocking, 2 workers"),
    ),
    Target(
        "Skew (sigma 0.1, off the middle), hybrid against partitioned, 2 workers",
        1.3,
        ratio(
            "fig9",
            "sigma 0.1 around 0.5, partitioned, 2 workers",
            "sigma 0.1 around 0.5, hybrid, 2 workers",
        ),
    ),
    Target(
        "Ordered against unordered map (200 ns), time, 1 worker",
        1.05,
        cost("streams_ordering", "unordered, 200 ns", "ordered, 200 ns"),
        at_most=True,
    ),
    Target(
        "Map, filter, keyed count in Python against generators, time",
        0.9,
        cost("streams_python", "generators", "callboard"),
        at_most=True,
    ),
    Target("The same against Bytewax at its best", 3.0, best_peer("streams_python", "Bytewax")),
    Target(
        "Sessions of rows in order against plain Python, time",
        1.3,
        cost("streams_sessions", "plain Python", "callboard, rows in order"),
        at_most=True,
    ),
    Target("The same on Arrow batches", 20e6, value("streams_arrow"), "rows/s"),
    Target(
        "Memory, from 1 M to 10 M rows",
        1.0,
        growth("streams_memory", "1 M rows", "10 M rows"),
        "MB more",
        at_most=True,
    ),
    Target(
        "A stream's asks, 64 at a time, against asks by hand",
        0.9,
        ratio("streams_asking", "asks by hand", "ask(in_flight=64)"),
    ),
    Target(
        "A snapshot of a million keys",
        2_000,
        value("streams_snapshots", "counts, whole"),
        "ms",
        at_most=True,
    ),
    Target(
        "The stream stands still for it",
        50,
        value("streams_snapshots", "counts, pause"),
        "ms",
        at_most=True,
    ),
    Target(
        "Processing latency at half load, median",
        50,
        value("streams_latency", "median"),
        "us",
        at_most=True,
    ),
    Target(
        "Integers from an array, counted beside DataSketches, whatever their skew",
        1.0,
        least(
            *(
                ratio("frequency_integers", f"DataSketches, alpha {a}", f"callboard, alpha {a}")
                for a in ALPHAS
            )
        ),
    ),
    Target(
        "Texts from a list, counted beside Counter, whatever their skew",
        2.0,
        least(
            *(
                ratio("frequency_texts", f"Counter, alpha {a}", f"callboard, alpha {a}")
                for a in ALPHAS
            )
        ),
    ),
    Target(
        "Integers of two streams: the default design against one stream at a time",
        1.6,
        least(
            *(
                ratio("frequency_streams", f"sequential, alpha {a}", f"partitioned, alpha {a}")
                for a in ALPHAS
            )
        ),
    ),
    Target(
        "top(25) after each 50,000 keys, against none",
        0.98,
        least(
            *(
                ratio(
                    "frequency_asking",
                    f"50,000 at a time, alpha {a}",
                    f"top(25) after each, alpha {a}",
                )
                for a in ALPHAS
            )
        ),
    ),
    *of_operators("Stateless", PYTHON_STATELESS),
    *(
        Target(
            f"Two lanes in one function in Python, {function}, against one",
            wanted,
            value("streams_python_beside", function),
        )
        for function, wanted in (
            ("closure, light", 0.9),
            ("closure and a dictionary, light", 0.9),
            ("method, light", 0.9),
            ("closure, middling", 1.7),
            ("closure and a dictionary, middling", 1.7),
            ("method, middling", 1.7),
        )
    ),
    *of_operators("Keyed", PYTHON_KEYED),
    Target(
        "Asks from the main thread: 2 workers against 1",
        0.9,
        ratio("workers_ask", name_of("Python", 1), name_of("Python", 2)),
    ),
    *(target for name, work in WORKS.items() for target in of_workers(f"workers_{name}", work)),
    Target(
        "1,000 native operators, batches, dynamic with 1 worker against manual",
        0.8,
        ratio("streams_long", "callboard, manual"),
    ),
    Target("The same, 2 workers against 1", 1.8, ratio("streams_long", "callboard", TWO)),
    Target(
        "The same, 2 workers against oneTBB's, serial and stateless",
        1.0,
        least(
            ratio("streams_long", "oneTBB, serial, 2 workers", TWO),
            ratio("streams_long", "oneTBB, stateless, 2 workers", TWO),
        ),
    ),
    Target(
        "The same, 2 workers against those of the scheduler of Streams 4.2",
        1.0,
        ratio("streams_long", "Streams 4.2's scheduler, 2 workers", TWO),
    ),
    Target(
        "A row through 10 to 10,000 Python operators, most against least time for one",
        2.0,
        spread("streams_one_row", *(f"{length} Python" for length in LENGTHS)),
        at_most=True,
    ),
    *(
        Target(
            f"A row through 1,000 {kind} operators, for one",
            wanted,
            value("streams_one_row", f"1,000 {kind}"),
            "ns",
            at_most=True,
        )
        for kind, wanted in (("Python", 400), ("native", 100))
    ),
    *(
        Target(
            f"A value from task to task, capacity 16 and 1,024, against {library}",
            5.0,
            least(*(ratio(f"channels_one_to_one_{c}", library) for c in (16, 1_024))),
        )
        for library in ("asyncio.Queue", "trio", "anyio")
    ),
    Target(
        "The same against tell to an async def receive",
        0.5,
        least(*(ratio(f"channels_one_to_one_{c}", TELL) for c in (16, 1_024))),
    ),
    *(
        Target(
            f"Select over {count:,} channels against {COUNTS[0]}, time",
            1.5,
            cost("channels_select", f"{COUNTS[0]} channels", f"{count:,} channels"),
            at_most=True,
        )
        for count in COUNTS[1:]
    ),
    Target(
        "From a thread to a task and back, against two threads and two queues",
        1.0,
        ratio("channels_thread_and_task", "two threads, two queues"),
    ),
    *(
        Target(
            f"Channels at the highest level of monitoring, {work}, {way}, time",
            1.3,
            cost("channels_monitoring", f"{work}, unmonitored", f"{work}, {way}"),
            at_most=True,
        )
        for work in ("ping-pong", "one to one", "pipeline", "replication")
        for way in ("monitored", "logged")
    ),
    Target(
        "Lanes of a join by a C function, 2 workers against 1",
        1.9,
        ratio("join_lanes", "1 lane", "2 lanes, 2 workers"),
    ),
    Target(
        "Memory of a band join, from 5 to 15 windows",
        1.0,
        growth("join_memory", "5 windows", "15 windows"),
        "MB more",
        at_most=True,
    ),
    Target(
        "Band join by a Python function against Bytewax's join",
        20,
        ratio("join_python", "Bytewax, join_window"),
    ),
    Target(
        "Band join by Band against a join by hand in Bytewax",
        20,
        ratio("join_python", "Bytewax, stateful_flat_map", "callboard, Band"),
    ),
    *(
        Target(
            f"A pair of a band join, after it is ready, at half load, {where}, 99th percentile",
            1_000,
            value("join_latency", f"{where}, p99"),
            "us",
            at_most=True,
        )
        for where in ("on the caller's thread", "on a worker")
    ),
    Target(
        "Record batches of 100,000 rows into a served system against a bare socket",
        0.5,
        ratio("remote_arrow_large", "bare socket"),
    ),
    Target(
        "Record batches of 10,000 rows into a served system against a bare socket",
        0.5,
        ratio("remote_arrow", "bare socket"),
    ),
    Target(
        "Rows by msgpack into a served system, for a core's second",
        300_000,
        value("remote_cores", "callboard, msgpack"),
        "rows/s",
    ),
    Target(
        "The same against an HTTP POST of JSON",
        3.0,
        ratio("remote_rows", "HTTP POST of JSON", "callboard, msgpack"),
    ),
    Target(
        "An ask of a served system against a bare echo, median time",
        3.0,
        ratio("remote_ask", "bare socket"),
        at_most=True,
    ),
    *(
        Target(
            f"The longest wait of an ask beside another client's largest frames of {kind}",
            500.0,
            value("remote_beside_large", f"frames of {kind}"),
            "ms",
            at_most=True,
        )
        for kind in ("dicts", "sets", "tuples", "decimals", "ints")
    ),
    Target(
        "Staged rows, until their commit is on disk, against rows that are told",
        1 / 1.3,
        ratio("remote_staged", "told", "staged, until a commit is on disk"),
    ),
    Target(
        "A record through two trivial boxes, against two calls with the dict between, time",
        2.5,
        cost("nets_two_boxes", BARE_CALLS, "callboard"),
        at_most=True,
    ),
    *(
        Target(
            f"Deep replication of 10,000 stages against {peer}",
            20,
            ratio("nets_replication", peer, DEEP),
        )
        for peer in (TASKS, THREADS)
    ),
    Target(
        "A record at a stage, of 10,000 stages against 1,000, time",
        1.5,
        cost("nets_replication", SHALLOW, DEEP),
        at_most=True,
    ),
    Target("A box of a star of a million", 400, value("nets_unfolding"), "bytes", at_most=True),
    *(
        Target(
            f"Hops of records in a {net}", 3e6, value("nets_hops", f"callboard, {net}"), "hops/s"
        )
        for net in ("star", "split")
    ),
    Target(
        "Programs of pure coordination against a task for each entity, the least",
        10,
        least(*(ratio(f"nets_{name}", TASKS) for name in SIZES)),
    ),
    *(
        Target(
            f"The deep pipeline at the highest level of monitoring, {way}, time",
            1.3,
            cost("nets_monitoring", "unmonitored", way),
            at_most=True,
        )
        for way in ("monitored", "logged")
    ),
    Target(
        "What follows a branch of 100 ms beside one of 1,200 ms begins after",
        120,
        value("nets_fast_branch"),
        "ms",
        at_most=True,
    ),
    *(
        Target(f"{title} against LangGraph", 1.0, ratio(f"nets_{name}", LANGGRAPH))
        for name, title in (("fan_in", "A fan-in"), ("loop", "A loop of 1,000 steps"))
    ),
    *(
        Target(
            f"A Mandelbrot net on 2 workers, {name}, against FIFO and round robin",
            1.09,
            ratio("nets_mandelbrot", next(iter(POLICIES)), name),
        )
        for name in [*POLICIES][1:]
    ),
    *(
        Target(
            f"A box that releases the lock, {way}, 2 calls at a time against 1",
            1.7,
            ratio("nets_releasing", *(f"{way}, {AT_A_TIME[number]}" for number in (1, 2))),
        )
        for way in ("threads", "dedicated")
    ),
    *(
        Target(
            f"A box of plain Python of {time} µs, in 2 processes, against a plain loop",
            wanted,
            ratio(f"nets_in_processes_{time}", PLAIN_LOOP, TWO_PROCESSES),
        )
        for time, wanted in ((5, 1.4), (50, 1.8))
    ),
    *nexmark_targets(),
    *loading_targets(),
    *calling_targets(),
    *processes_targets(),
    *ELASTIC_TARGETS,
)
