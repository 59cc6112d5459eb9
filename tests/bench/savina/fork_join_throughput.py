"""Fork-join, throughput: the main program sends n numbers to 60 actors in turn."""

from time import perf_counter

from hosts.base import Host
from savina.counting import Counter
from savina.result import Result

ACTORS = 60


def run(host: Host, n: int) -> Result:
    counters = [host.spawn(Counter) for _ in range(ACTORS)]
    rounds = n // ACTORS
    begin = perf_counter()
    host.feed_all(counters, range(rounds))
    totals = [host.ask(counter, 0) for counter in counters]
    seconds = perf_counter() - begin
    return Result(rounds * ACTORS, seconds, got=totals, want=[sum(range(rounds))] * ACTORS)
