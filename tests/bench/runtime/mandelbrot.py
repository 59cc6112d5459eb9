"""The Mandelbrot network of Prokesch 2011, section 6.2, under several placements and priorities.

A splitter hands eight strips to eight chains of four boxes each; a collector and a merge put them
together again. The boxes of a chain are spawned one after the other, so with turns two workers have
all boxes of a kind each, as in the paper. An operation is a strip.
"""

from math import isclose, log2
from queue import SimpleQueue
from typing import Any

from callboard import ActorSystem
from natives import load
from savina.result import Result
from usage import Watch

STRIPS = 8
MOST = 256  # iterations
TIMEOUT = 120.0


def run(width: int, *, workers: int = 2, placement: str = "", priority: str = "fifo") -> Result:
    """Make an image of so many columns, and of as many rows; without a placement, let it be."""
    boxes = load("mandelbrot")
    height = max(STRIPS, width // STRIPS * STRIPS)
    options: dict[str, Any] = {"placement": placement} if placement else {}
    ended: SimpleQueue[float] = SimpleQueue()
    size = width, height, STRIPS, MOST
    with ActorSystem(workers=workers, priority=priority, **options) as system:
        merge = system.spawn(boxes.Merge, STRIPS, ended.put, name="merge", priority=1)
        collector = system.spawn(boxes.Collector, merge, name="collector", priority=1)
        chains = []
        for _ in range(STRIPS):
            counts = system.spawn(boxes.Counts, collector, *size)
            times = system.spawn(boxes.EscapeTimes, counts, *size)
            values = system.spawn(boxes.EscapeValues, times, *size)
            chains.append(system.spawn(boxes.Plane, values, *size))
        splitter = system.spawn(boxes.Splitter, chains, name="splitter", priority=1)
        watch = Watch()
        splitter.tell(0)
        total = ended.get(timeout=TIMEOUT)
        spent = watch.stop()
    # Compilers may fuse a product and a sum, so points at the edge may differ; a strip is far more.
    want = image(width, height)
    return Result(STRIPS, **spent, got=isclose(total, want, rel_tol=1e-3), want=True)


def image(width: int, height: int) -> float:
    """Return the sum of the image's smooth counts, by plain Python."""
    total = 0.0
    for row in range(height):
        y0 = -1.25 + 2.5 * row / height
        for column in range(width):
            x0 = -2.0 + 2.5 * column / width
            x = y = 0.0
            count = MOST
            for i in range(MOST):
                x, y = x * x - y * y + x0, 2 * x * y + y0
                if x * x + y * y > 4:
                    count = i
                    break
            size = x * x + y * y
            total += count + (1 - log2(log2(size) / 2) if size > 4 else 0)
    return total
