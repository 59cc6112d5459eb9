"""A snapshot of n keys: its time, and the pause of the stream, in ms.

`measured` is "whole", which encodes it and writes it to a file; "pause", in which no row goes on;
or "restore", which reads it and makes a run of it. `state` is what a key has: "counts", "pairs" of
numbers, or "lists", which can change.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from callboard import ActorSystem
from callboard.streams import Snapshot, entry
from savina.result import Quantity

STATES = {
    "pairs": ((0, 0), lambda pair, row: (pair[0] + 1, row)),
    "lists": ([], lambda rows, row: [*rows, row][-2:]),
}


def run(n: int, *, measured: str = "whole", state: str = "counts") -> Quantity:
    keyed = entry("rows").key_by(str)
    stream = keyed.count() if state == "counts" else keyed.scan(*STATES[state])
    graph = stream.to(lambda row: None)
    with ActorSystem(workers=1) as system, TemporaryDirectory() as folder:
        run = system.run(graph)
        run.send("rows", range(n))
        run.send("rows", range(n))
        begin = perf_counter()
        snapshot = run.snapshot()
        snapshot.save(Path(folder) / "one")
        seconds = {"whole": perf_counter() - begin, "pause": snapshot.pause}
        run.cancel()
        begin = perf_counter()
        run = system.run(graph, restore=Snapshot.load(Path(folder) / "one"))
        seconds["restore"] = perf_counter() - begin
        got = run.position
        run.cancel()
    return Quantity(1e3 * seconds[measured], got=got, want={"rows": 2 * n})
