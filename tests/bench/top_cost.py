"""The cost of one look of `python -m callboard top` to the process that is observed."""

from __future__ import annotations

import json
import time
from typing import Any

from callboard import Actor, ActorSystem
from callboard.observing.watching import SystemView

ACTORS = 100_000
LOOKS = 9


class Idler(Actor[Any]):
    """Does nothing."""

    def receive(self, message: Any) -> None:
        """Do nothing."""


def main() -> None:
    """Print the median of the processor times of looks, by what actors are sorted by."""
    with ActorSystem("crowd", workers=1, monitoring="mailboxes") as system:
        refs = [system.spawn(Idler) for _ in range(ACTORS)]
        system.drain()
        watch = SystemView(system._runtime)
        for sort in ("load", "rate", "queue"):
            times = []
            for _ in range(LOOKS):
                for ref in refs[::50]:
                    ref.tell(1)
                system.drain()
                begin = time.thread_time()
                json.dumps(watch.look(sort, 40))
                times.append(time.thread_time() - begin)
            print(f"{ACTORS:,} actors by {sort}: {1e3 * sorted(times)[LOOKS // 2]:.1f} ms a look")


if __name__ == "__main__":
    main()
