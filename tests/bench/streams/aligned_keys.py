"""A keyed operator in Python, with keys that are multiples of a step.

Each row is a key; the operator hashes 32 KiB for it, and gives how many rows of the key it has had.
On a build with an interpreter lock one worker runs all Python operators, so two show nothing.
"""

import hashlib
from time import perf_counter

from callboard import ActorSystem
from callboard.streams import entry
from savina.result import Result

KEYS = 256
BLOCK = bytes(32 * 1024)


class Hashing:
    """The state of a key."""

    def __init__(self) -> None:
        self.rows = 0

    def receive(self, key: int) -> list[tuple[int, int]]:
        hashlib.sha256(BLOCK).digest()
        self.rows += 1
        return [(key, self.rows)]


def run(n: int, *, step: int = 1, workers: int = 1, partitions: int = 64) -> Result:
    rows = [step * (number % KEYS) for number in range(n)]
    want = [(step * (number % KEYS), number // KEYS + 1) for number in range(n)]
    graph = entry("rows", int).key_by(itself, partitions=partitions).stateful(Hashing).collect()
    with ActorSystem(workers=workers) as system:
        run = system.run(graph)
        begin = perf_counter()
        run.send("rows", rows)
        got = run.finish()
        seconds = perf_counter() - begin
    return Result(n, seconds, got=hash(tuple(got)), want=hash(tuple(want)))


def itself(key: int) -> int:
    return key
