"""The time from when a pair is ready to its output, in a band join at half load, in microseconds.

Rows are sent one by one, in turns: first as fast as they go in, which is the capacity; then at half
that rate, evenly. A row is ready, and so a pair whose later row it is, when the other stream has
come to its time; of one time, rows of the left stream come first, so a right one waits for the
left stream's next.
"""

from collections.abc import Sequence
from time import perf_counter_ns, sleep
from typing import Any

from callboard import ActorSystem
from savina.result import Quantity
from streams.band_join import joined
from streams.band_rows import Pair, R, S, digest, partners, rows

PERCENTS = {"median": 50, "p99": 99}


def run(
    n: int, *, within: int = 10_000, measure: str = "p99", load: float = 0.5, **options: Any
) -> Quantity:
    lefts, rights = rows(n // 2)
    want = digest(partners(lefts, rights, within))
    options = {"batch_size": 1, **options}
    with ActorSystem() as system:
        begin = perf_counter_ns()
        send(system, lefts, rights, within, 0, options)
        every = (perf_counter_ns() - begin) / n / load
        waits, found = send(system, lefts, rights, within, every, options)
    waits.sort()
    at = min(len(waits) - 1, len(waits) * PERCENTS[measure] // 100)
    value = waits[at] / 1e3 if waits else 0.0
    return Quantity(value, got=digest(found), want=want)


def send(
    system: ActorSystem,
    lefts: Sequence[R],
    rights: Sequence[S],
    within: int,
    every: float,
    options: dict[str, Any],
) -> tuple[list[int], list[Pair]]:
    """Send a row each `every` ns; return for each pair how long it took, and the pairs."""
    out: list[tuple[int, Pair]] = []
    run = system.run(
        joined(within).to(lambda each: out.append((perf_counter_ns(), each))), **options
    )
    sent: dict[str, list[int]] = {"r": [], "s": []}
    last = 0
    for both in zip(lefts, rights, strict=True):
        for entry, row in zip(sent, both, strict=True):
            while perf_counter_ns() < last + every:
                sleep(0)  # or an operator on a worker would wait for the interpreter
            last = perf_counter_ns()
            sent[entry].append(last)
            run.send(entry, [row])
    sent["r"].append(perf_counter_ns())  # the end
    run.finish()
    return [when - ready_at(each, sent) for when, each in out], [each for _, each in out]


def ready_at(each: Pair, sent: dict[str, list[int]]) -> int:
    left, right = int(each.z), int(each.c)
    return sent["s"][left] if left > right else sent["r"][right + 1]
