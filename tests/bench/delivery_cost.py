"""The cost of a row that is delivered to a server: python tests/bench/delivery_cost.py [--rows N]

Processor time of the client and of the server for each step, which other programs on the machine
change little. Rows are an int, a text and a float, in record batches; the least of some rounds is
shown, because what others do can only add to it. Wants Linux.
"""

import argparse
import os
import time
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from callboard.remote import Connection, connect
from callboard.remote.sharding.keys import By, ShardKey, divide_batch
from remote.committing import settle
from remote.processes import server

KEYS: list[tuple[str, By, int]] = [
    ("an int, 2 shards", "id", 2),
    ("a text, 2 shards", "name", 2),
    ("both, 2 shards", ["id", "name"], 2),
    ("an int, 16 shards", "id", 16),
]
STEPS = (
    "client: writing, checksum, sending",
    "server: staging",
    "server: committing",
    "server: applying",
)


def processor_time(process: int | str = "self") -> float:
    """Return the seconds that the threads of a process have run."""
    spent = 0
    for task in os.scandir(f"/proc/{process}/task"):
        spent += int(Path(task.path, "schedstat").read_text().split()[0])
    return spent / 1e9


def made(rows: int, size: int) -> list[pa.RecordBatch]:
    """Return record batches of `size` rows, each with memory of its own, as those of Spark have."""
    return [
        pa.RecordBatch.from_pydict(
            {
                "id": range(start, start + size),
                "name": [f"name {number}" for number in range(start, start + size)],
                "half": [number * 0.5 for number in range(start, start + size)],
            }
        )
        for start in range(0, rows, size)
    ]


def dividing(batches: list[pa.RecordBatch], by: By, shards: int) -> float:
    """Return the processor time of dividing batches among shards."""
    key = ShardKey(by, shards)
    begin = time.process_time()
    rows = sum(part.num_rows for batch in batches for part in divide_batch(batch, key))
    spent = time.process_time() - begin
    expect(rows, sum(batch.num_rows for batch in batches))
    return spent


def delivering(
    connection: Connection, process: int, batches: list[pa.RecordBatch], number: int
) -> tuple[float, ...]:
    """Deliver batches as one batch of a job, and return the processor time of each of STEPS."""
    clocks = [(processor_time(), processor_time(process))]
    with connection.upload("kept", job="cost", batch=number) as upload:
        for batch in batches:
            upload.send_batch(batch)
    clocks.append((processor_time(), processor_time(process)))
    assert upload.staged is not None
    connection.commit("cost", number, [upload.staged])
    clocks.append((processor_time(), processor_time(process)))
    settle(connection)
    clocks.append((processor_time(), processor_time(process)))
    first, *others = (later[1] - now[1] for now, later in pairwise(clocks))
    return clocks[1][0] - clocks[0][0], first, *others


def expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{found} was found, not {wanted}")


def main(rows: int, size: int, rounds: int) -> None:
    """Measure, and print nanoseconds for a row."""
    rows -= rows % size
    batches = made(rows, size)
    least: dict[str, float] = {}

    def note(step: str, spent: float) -> None:
        least[step] = min(spent, least.get(step, spent))

    with (
        server("remote.sharding", state=True) as (url, process),
        connect(url, timeout=120) as connection,
    ):
        for number in range(rounds + 1):
            spent = delivering(connection, process, batches, number)
            if number:  # the first warms up
                for step, each in zip(STEPS, spent, strict=True):
                    note(step, each)
            for name, by, shards in KEYS:
                note(f"client: dividing by {name}", dividing(batches, by, shards))
        found = connection.ref("kept").ask("report").result(120)
        expect(found, [(rounds + 1) * rows, (rounds + 1) * sum(range(rows))])
    print(f"| step, record batches of {size:,} rows | ns a row |")
    print("|---|---|")
    for step, seconds in least.items():
        print(f"| {step} | {seconds / rows * 1e9:.0f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000, help="of a batch (2,000,000)")
    parser.add_argument("--size", type=int, default=10_000, help="of a record batch (10,000)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    main(options.rows, options.size, options.rounds)
