"""The Mandelbrot network of Prokesch 2011, section 6.2, with boxes in NumPy.

An image is cut into strips. Each has a replica of four boxes: its plane, its points' escape values,
the smooth counts of these, and their colours. Cells put the strips into the image again. An
operation is a strip.

The boxes of strips have threads of their own, `dedicated` or not, as they have no hint of a place.
So the operating system says which one is next, and no placement or priority of the system does.
"""

import math
from typing import Any

import numpy as np

from callboard import ActorSystem
from callboard.nets import Net, box, parse
from nets.running import TIMEOUT
from savina.result import Result
from usage import Watch

Row = dict[str, Any]
LEFT, RIGHT, BOTTOM, TOP = -2.0, 0.5, -1.25, 1.25
MOST = 64  # iterations

TEXT = """
net mandelbrot ({<width>, <height>, <strips>} -> {image})
{
    box cut ((<width>, <height>, <strips>) -> (rows, <width>, <height>, <strip>) | (image, <left>));
    box plane ((rows, <width>, <height>) -> (points));
    box escape ((points) -> (times, values));
    box smooth ((times, values) -> (counts));
    box colour ((counts) -> (part));
    box paste ((image, <left>, part, <strip>) -> (image, <left>));
    net chain connect plane .. escape .. smooth .. colour;
    net merge connect
        ((([| {image, <left>}, {part, <strip>} |] * {image, part}) .. paste)
         \\ {image, <left>} if <left > 0>, {part, <strip>});
}
connect cut .. (chain ! <strip> | []) .. merge .. [{image, <left>} -> {image}];
"""


def cut(width: int, height: int, strips: int) -> Any:
    """Put out the empty image, and the numbers of the rows of each strip."""
    yield {"image": np.zeros((height, width), np.uint8), "<left>": strips}
    for number, rows in enumerate(np.array_split(np.arange(height), strips)):
        yield {"rows": rows, "<width>": width, "<height>": height, "<strip>": number}


def plane(rows: Any, width: int, height: int) -> Row:
    x = np.linspace(LEFT, RIGHT, width)
    y = BOTTOM + (TOP - BOTTOM) * rows / height
    return {"points": x[np.newaxis, :] + 1j * y[:, np.newaxis]}


def escape(points: Any) -> Row:
    """Return the iterations after which each point is far away, and where it is then."""
    values = np.zeros_like(points)
    times = np.full(points.shape, MOST)
    for time in range(MOST):
        values = np.where(times == MOST, values * values + points, values)
        times[(times == MOST) & (values.real**2 + values.imag**2 > 16.0)] = time
    return {"times": times, "values": values}


def smooth(times: Any, values: Any) -> Row:
    sizes = np.maximum(np.abs(values), 2.0)
    return {"counts": np.where(times < MOST, times + 2 - np.log2(np.log2(sizes)), MOST)}


def colour(counts: Any) -> Row:
    return {"part": (255 * (1 - counts / (MOST + 2))).clip(0, 255).astype(np.uint8)}


def paste(image: Any, left: int, part: Any, strip: int) -> Row:
    """Put a strip into the image, and count down how many are left."""
    height, strips = len(image), math.ceil(len(image) / len(part))
    rows = np.array_split(np.arange(height), strips)[strip]
    image[rows] = part
    return {"image": image, "<left>": left - 1}


BOXES = (cut, plane, escape, smooth, colour, paste)
HEAVY = (plane, escape, smooth, colour)


SIGNATURES = {
    "cut": "(<width>, <height>, <strips>) -> (rows, <width>, <height>, <strip>) | (image, <left>)",
    "plane": "(rows, <width>, <height>) -> (points)",
    "escape": "(points) -> (times, values)",
    "smooth": "(times, values) -> (counts)",
    "colour": "(counts) -> (part)",
    "paste": "(image, <left>, part, <strip>) -> (image, <left>)",
}


def network(*, dedicated: bool) -> Net:
    boxes = {
        function.__name__: box(
            function,
            SIGNATURES[function.__name__],
            threads=function in HEAVY and not dedicated,
            dedicated=function in HEAVY and dedicated,
        )
        for function in BOXES
    }
    return parse(TEXT, boxes=boxes)


def direct(width: int) -> Any:
    """Return the image, all rows at once."""
    points = plane(np.arange(width), width, width)["points"]
    return colour(smooth(**escape(points))["counts"])["part"]


def run(
    width: int, *, strips: int = 8, dedicated: bool = False, workers: int = 2, **options: Any
) -> Result:
    net = network(dedicated=dedicated)
    with ActorSystem(workers=workers, **options) as system:
        run = system.run(net)
        watch = Watch()
        run.send({"<width>": width, "<height>": width, "<strips>": strips}, timeout=TIMEOUT)
        [found] = run.finish(TIMEOUT)
        costs = watch.stop()
    same = np.array_equal(found["image"], direct(width))
    return Result(strips, **costs, got=same, want=True)
