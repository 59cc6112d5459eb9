"""Concurrent dictionary: 20 workers send n requests to an actor with a dict, one of ten a write."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from hosts.base import Behaviour, Host, Ref
from savina.result import Result

WORKERS = 20
KEYS = 50  # a worker
START = -1


class Dictionary(Behaviour):
    """Write when there is a value, and answer with what the key holds."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}

    def receive(self, request: tuple[int, int | None, Ref]) -> None:
        key, value, ref = request
        if value is not None:
            self.values[key] = value
        ref.tell(self.values.get(key, 0))


class Worker(Behaviour):
    """Go through its own keys, writing at every tenth request; check every answer."""

    def __init__(self, place: int, workers: list[Ref], dictionary: Ref, n: int, done: Any) -> None:
        self.place = place
        self.workers = workers
        self.dictionary = dictionary
        self.left = n
        self.done: Callable[[int], object] = done
        self.written: dict[int, int] = {}
        self.expected = START
        self.wrong = 0

    def receive(self, answer: int) -> None:
        if answer != self.expected:
            self.wrong += 1
        if self.left == 0:
            self.done(self.wrong)
            return
        self.left -= 1
        key = self.place * KEYS + self.left % KEYS
        value = None
        if self.left % 10 == 0:
            value = self.written[key] = self.left
        self.expected = self.written.get(key, 0)
        self.dictionary.tell((key, value, self.workers[self.place]))


def run(host: Host, n: int) -> Result:
    workers: list[Ref] = []
    dictionary = host.spawn(Dictionary)
    each = n // WORKERS
    for place in range(WORKERS):
        workers.append(host.spawn(Worker, place, workers, dictionary, each, host.done))
    begin = perf_counter()
    host.feed_all(workers, [START])
    wrong = host.wait(WORKERS)
    return Result(2 * each * WORKERS, perf_counter() - begin, got=sum(wrong), want=0)
