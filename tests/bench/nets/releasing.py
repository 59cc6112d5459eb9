"""Boxes that release the interpreter's lock, on one worker and on two. An operation is a digest."""

from hashlib import blake2b
from typing import Any

from callboard import ActorSystem
from callboard.nets import box
from nets.running import TIMEOUT
from savina.result import Result
from usage import Watch

SIZE = 1_000_000  # bytes


def digest(number: int) -> dict[str, bytes]:
    data = number.to_bytes(8) * (SIZE // 8)
    return {"digest": blake2b(data, digest_size=8).digest()}


def run(n: int, *, workers: int = 1, dedicated: bool = False, **options: Any) -> Result:
    digests = box(
        digest, "(<n>) -> (digest)", threads=not dedicated, dedicated=dedicated, concurrency=workers
    )
    with ActorSystem(workers=workers, **options) as system:
        run = system.run(digests)
        run.send({"<n>": 0}, timeout=TIMEOUT)
        watch = Watch()
        run.send(({"<n>": number} for number in range(1, n)), timeout=TIMEOUT)
        found = run.finish(TIMEOUT)
        costs = watch.stop()
    got = sorted(row["digest"] for row in found)
    return Result(n, **costs, got=len(set(got)), want=n)
