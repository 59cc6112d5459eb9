"""Draw the Mandelbrot set in strips: a replica of the boxes for each, and the strips in order.

`python examples/mandelbrot.py FILE` writes a picture, such as `set.pgm`, of 800 rows.

Prints:

    ........................................
    ............................##..........
    .......................#############....
    ................#....################...
    ..################################......
    ................#....################...
    .......................#############....
    ............................##..........
    ........................................
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from callboard import ActorSystem
from callboard.nets import box, ordered, split

STRIPS, MOST = 3, 60


@box("(<height>, <width>) -> (points, <strip>)")
def cut(height: int, width: int) -> Any:
    x, y = np.linspace(-2.1, 0.6, width), np.linspace(1.1, -1.1, height)
    for strip, rows in enumerate(np.array_split(y, STRIPS)):
        yield {"points": x + 1j * rows[:, np.newaxis], "<strip>": strip}


@box("(points) -> (times)", threads=True)  # NumPy releases the interpreter's lock
def escape(points: Any) -> Any:
    values, times = points, np.full(points.shape, MOST)
    for time in range(MOST):
        times[abs(values) > 4.0] = time
        values = np.where(times == MOST, values * values + points, 0)
    return times


def draw(height: int, width: int) -> Any:
    net = ordered(cut >> split(escape, "<strip>"))
    with ActorSystem() as system, system.run(net) as run:
        run.send({"<height>": height, "<width>": width})
        return np.concatenate([record["times"] for record in run.finish()])


if __name__ == "__main__":
    if sys.argv[1:]:
        image = np.uint8(255 - draw(800, 800) * 255 // MOST)
        Path(sys.argv[1]).write_bytes(b"P5 800 800 255\n" + image.tobytes())
    else:
        for row in draw(9, 40) == MOST:
            print("".join(np.where(row, "#", ".")))
