"""Idleness: the part of a core that a system with n idle actors uses, in percent."""

from time import perf_counter, process_time, sleep

from hosts.base import Host
from savina.counting import Counter
from savina.result import Quantity

SECONDS = 3.0


def run(host: Host, n: int) -> Quantity:
    actors = [host.spawn(Counter) for _ in range(n)]
    host.feed_all(actors, [1])
    totals = sum(host.ask(actor, 0) for actor in actors)
    sleep(0.2)  # let the workers park
    wall, used = perf_counter(), process_time()
    sleep(SECONDS)
    percent = 100 * (process_time() - used) / (perf_counter() - wall)
    return Quantity(percent, got=[totals, host.ask(actors[0], 1)], want=[n, 2])
