"""Fork-join, throughput: the main program sends n numbers to 60 actors in turn."""

from hosts.base import Host
from savina.counting import Counter
from savina.result import Result
from usage import Watch

ACTORS = 60


def run(host: Host, n: int) -> Result:
    counters = [host.spawn(Counter) for _ in range(ACTORS)]
    rounds = n // ACTORS
    watch = Watch()
    host.feed_all(counters, range(rounds))
    totals = [host.ask(counter, 0) for counter in counters]
    spent = watch.stop()
    want = [sum(range(rounds))] * ACTORS
    return Result(rounds * ACTORS, got=totals, want=want, **spent)
