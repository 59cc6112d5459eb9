"""The cost of one refresh of `top` or the dashboard to the process that is observed."""

from __future__ import annotations

import json
import time
from typing import Any

from callboard import Actor, ActorSystem
from callboard.observing.watching import SystemView

ACTORS = 100_000
LOOKS = 9
QUESTIONS: dict[str, dict[str, Any]] = {
    "by load": {},
    "by rate": {"sort": "rate"},
    "by queue": {"sort": "queue"},
    "with a tree and dead letters": {"branches": {"0": 50}, "letters": 30},
    "with a tree of 400 lines": {"branches": {"0": 400}},
    "with a search that finds one": {"part": "/Idler-77777"},
}


class Idler(Actor[Any]):
    """Does nothing."""

    def receive(self, message: Any) -> None:
        """Do nothing."""


def main() -> None:
    """Print the median of the processor times of looks, by what is asked."""
    with ActorSystem("crowd", workers=1, monitoring="mailboxes", observable=True) as system:
        refs = [system.spawn(Idler) for _ in range(ACTORS)]
        gone = system.spawn(Idler)
        gone.stop()
        system.drain()
        watch = SystemView(system._runtime)
        for what, question in QUESTIONS.items():
            times = []
            for _ in range(LOOKS):
                for ref in refs[::50]:
                    ref.tell(1)
                gone.tell_many([{"row": [*range(100)]}] * 50)
                system.drain()
                begin = time.thread_time()
                json.dumps(watch.look(**question))
                times.append(time.thread_time() - begin)
            print(f"{ACTORS:,} actors, {what}: {1e3 * sorted(times)[LOOKS // 2]:.1f} ms a look")


if __name__ == "__main__":
    main()
