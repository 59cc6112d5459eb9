"""Run a net that is given as text: a sieve that grows by a stage for each prime.

Prints:

    2 3 5 7 11 13 17 19 23 29
    10 stages were made
"""

from collections.abc import Iterator
from pathlib import Path

from callboard import ActorSystem
from callboard.nets import parse

TEXT = Path(__file__).parent / "nets" / "primes.snet"


def count(limit: int) -> Iterator[int]:
    yield from range(2, limit)


class Sieve:
    """Each stage has one of its own."""

    def __init__(self) -> None:
        self.prime = 0

    def __call__(self, n: int) -> dict[str, int] | None:
        if not self.prime:
            self.prime = n
            return {"prime": n}
        return {"n": n} if n % self.prime else None


if __name__ == "__main__":
    primes = parse(TEXT.read_text(encoding="utf-8"), boxes={"count": count, "sieve": Sieve})
    with ActorSystem() as system:
        run = system.run(primes)
        run.send({"<limit>": 30})
        print(*(record["<prime>"] for record in run.finish()))
        print(run.statistics().places["/primes/sieve"]["made"], "stages were made")
