"""Kill worker processes at random while rows pass; no row may be lost or doubled.

    python -m tests.process_kills --kills 300 --seed 1

So many kills for each kind of work: operators without a state, with a state for each key and
snapshots, with one state, boxes of a net, and a pool. The outputs are compared with those of plain
Python. The process that made an output is killed a moment after it has come, wherever it is then.
The first game that goes wrong is an error, with its seed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from callboard import ActorSystem
from callboard.nets import box
from callboard.remote.errors import ConnectionLost
from callboard.streams import Graph, SnapshotStore, entry
from tests.pools.workers import Work

KEYS = 13
LONGEST = 0.004  # seconds between an output and the kill
KILLS_OF_SYSTEM = 40
KILLS_OF_POOL = 8  # after ten in a minute it gives up
PATIENCE = 120.0  # seconds for an output, on a busy machine

Output = tuple[Any, int]  # a result, and the process that made it


# --- streams --------------------------------------------------------------------------------------


def tripled(row: int) -> Output:
    return row * 3, os.getpid()


def key_of(row: int) -> int:
    return row % KEYS


def totalled(total: Output, row: int) -> Output:
    return total[0] + row, os.getpid()


def without_state() -> tuple[Graph[Any], Iterator[Any]]:
    return entry("rows", int).map(tripled).collect(), (row * 3 for row in itertools.count())


def with_keys() -> tuple[Graph[Any], Iterator[Any]]:
    def totals() -> Iterator[tuple[int, int]]:
        found: Counter[int] = Counter()
        for row in itertools.count():
            found[key_of(row)] += row
            yield key_of(row), found[key_of(row)]

    graph = entry("rows", int).map(abs).key_by(key_of).scan((0, 0), totalled)
    return graph.map(unpacked).here().collect(), totals()


def unpacked(pair: tuple[int, Output]) -> Output:
    key, (total, process) = pair
    return (key, total), process


def with_one_state() -> tuple[Graph[Any], Iterator[Any]]:
    graph = entry("rows", int).scan((0, 0), totalled)
    return graph.collect(), itertools.accumulate(itertools.count())


def play_stream(
    make: Callable[[], tuple[Graph[Any], Iterator[Any]]], kills: int, chance: random.Random
) -> int:
    """Return the number of rows whose outputs were right."""
    graph, wanted = make()
    options: dict[str, Any] = {
        "batch_size": chance.choice([1, 7, 64, 256]),
        "window": chance.choice([2, 4, 16]),
    }
    enough = threading.Event()
    with tempfile.TemporaryDirectory() as folder, ActorSystem(processes=2) as system:
        if make is not without_state:
            options["restore"] = SnapshotStore(folder, every=chance.choice([0.02, 0.2]))
        run = system.run(graph, **options)
        results = run.results(limit=4096)
        sent = [0]

        def send_all() -> None:
            while not enough.is_set():
                run.send("rows", range(sent[0], sent[0] + 64), timeout=PATIENCE)
                sent[0] += 64

        sender = threading.Thread(target=send_all)
        sender.start()
        try:
            seen = 0
            for _ in range(kills):
                for _ in range(chance.randrange(1, 500)):
                    process = checked(next(results), next(wanted), seen)
                    seen += 1
                kill(process, chance)
        finally:
            enough.set()
        while sender.is_alive():  # it may wait for room
            checked(next(results), next(wanted), seen)
            seen += 1
            if sent[0] - seen < 64:
                sender.join()
        while seen < sent[0]:
            checked(next(results), next(wanted), seen)
            seen += 1
        run.finish(timeout=PATIENCE)
        left = [*results]
    if left:
        raise AssertionError(f"expected {sent[0]} outputs, got {len(left)} more: {left[:3]}")
    return seen


def checked(output: Output, wanted: Any, place: int) -> int:
    result, process = output
    if result != wanted:
        raise AssertionError(f"expected {wanted} as output {place}, got {result}")
    return process


def kill(process: int, chance: random.Random) -> None:
    time.sleep(chance.uniform(0, LONGEST))  # any moment will do: nothing waits for this
    with suppress(ProcessLookupError):  # an earlier kill had an output on its way
        os.kill(process, signal.SIGKILL)


# --- nets -----------------------------------------------------------------------------------------


@box("(number) -> (number, process)")
def tripled_in_net(number: int) -> dict[str, int]:
    return {"number": 3 * number, "process": os.getpid()}


def play_net(kills: int, chance: random.Random) -> int:
    """Return the number of records whose outputs were right."""
    seen = sent = 0
    with ActorSystem(processes=2) as system, system.run(tripled_in_net) as run:
        results = run.results()
        for _ in range(kills):
            more = chance.randrange(1, 300)
            run.send({"number": number} for number in range(sent, sent + more))
            sent += more
            process = 0
            for _ in range(more if chance.random() < 0.5 else max(1, more // 2)):
                if seen == sent:
                    break
                record = next(results)
                process = checked((record["number"], record["process"]), seen * 3, seen)
                seen += 1
            kill(process, chance)
        results.close()  # it may have taken more
        for record in run.finish(timeout=PATIENCE):
            checked((record["number"], record["process"]), seen * 3, seen)
            seen += 1
    if seen != sent:
        raise AssertionError(f"expected {sent} outputs, got {seen}")
    return seen


# --- pools ----------------------------------------------------------------------------------------


def play_pool(kills: int, chance: random.Random) -> int:
    """Return the number of asks that were answered. The others fail, and none is handled twice."""
    numbers = itertools.count()
    asked: deque[tuple[int, Any]] = deque()
    answered: set[int] = set()
    lost: set[int] = set()

    def take() -> None:
        number, answer = asked.popleft()
        try:
            got = answer.result(PATIENCE)
        except ConnectionLost:
            lost.add(number)
        else:
            if got != 2 * number:
                raise AssertionError(f"expected {2 * number} as an answer, got {got}")
            answered.add(number)

    with tempfile.TemporaryDirectory() as folder:
        with ActorSystem() as system:
            pool = system.pool(partial(Work, folder, factor=2), processes=2)
            for _ in range(kills):
                for _ in range(chance.randrange(1, 2_000)):
                    number = next(numbers)
                    asked.append((number, pool.ask(number)))
                    if len(asked) > 200:
                        take()
                while True:
                    try:
                        process = pool.ask("pid").result(PATIENCE)
                        break
                    except ConnectionLost:
                        pass  # of the process that was killed before
                kill(process, chance)
            while asked:
                take()
        notes = [path.read_text(encoding="ascii").split() for path in Path(folder).iterdir()]
    handled = Counter(int(number) for each in notes for number in each)
    twice = [number for number, count in handled.items() if count > 1]
    missing = [number for number in answered if number not in handled]
    if twice or missing or len(answered) + len(lost) != next(numbers):
        raise AssertionError(
            f"{twice[:3]} were handled twice, {missing[:3]} were answered and not handled; "
            f"{len(answered)} were answered and {len(lost)} lost"
        )
    return len(answered)


# --- the games ------------------------------------------------------------------------------------

GAMES: dict[str, tuple[int, Callable[[int, random.Random], int]]] = {
    **{
        each.__name__.replace("_", " "): (
            KILLS_OF_SYSTEM,
            lambda kills, chance, make=each: play_stream(make, kills, chance),  # type: ignore[misc]
        )
        for each in (without_state, with_keys, with_one_state)
    },
    "net": (KILLS_OF_SYSTEM, play_net),
    "pool": (KILLS_OF_POOL, play_pool),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=300, help="of each kind of work")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=[*GAMES], default=[*GAMES])
    chosen = parser.parse_args()
    for name in chosen.only:
        at_once, play = GAMES[name]
        done = rows = 0
        while done < chosen.kills:
            seed = f"{chosen.seed} {name} {done}"
            kills = min(at_once, chosen.kills - done)
            try:
                rows += play(kills, random.Random(seed))
            except BaseException as error:
                error.add_note(f"seed: {seed}")
                raise
            done += kills
            print(f"{name}: {done} kills, {rows:,} right outputs", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
