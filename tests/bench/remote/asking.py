"""Ask one thing at a time of an actor in another process, compared with a socket that echoes it.

Measured is the median time until the answer, in microseconds.
"""

import statistics
import time

from remote.processes import other_end, served
from savina.result import Quantity

WARM = 200  # which are not measured


def callboard(count: int) -> tuple[list[float], int]:
    times, number = [], 0
    with served() as connection:
        ask = connection.ref("sink").ask
        for _ in range(count + WARM):
            begin = time.perf_counter()
            number = ask(number).result()
            times.append(time.perf_counter() - begin)
    return times, number


def echo(count: int) -> tuple[list[float], int]:
    times, answered = [], 0
    with other_end("bare", "echo") as end:
        for _ in range(count + WARM):
            begin = time.perf_counter()
            end.sendall(b"8 bytes.")
            answered += end.recv(100) == b"8 bytes."
            times.append(time.perf_counter() - begin)
    return times, answered


def run(count: int, by: str = "callboard") -> Quantity:
    times, got = {"callboard": callboard, "echo": echo}[by](count)
    return Quantity(statistics.median(times[WARM:]) * 1e6, got, count + WARM)
