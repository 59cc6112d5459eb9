"""Kill processes that deliver rows to shards, at random; after each kill every row counts once.

    python tests/spark/soak.py --rounds 40 --seed 1 [--two-hosts]

What is killed with SIGKILL is a Python worker, an executor, a server, which starts again at once,
or the driver's program, mostly between staging and commit, which is run again with the same job and
batch. Tasks are tried again, and with `--two-hosts`, a master and workers of two host names,
speculation runs some of them twice. Each round is a seed of its own; the first that fails is named.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from delivering import ROWS, key_of
from event_log import attempts
from shards import Shards

HERE = Path(__file__).parent
DEADLINE = 180.0  # seconds for a batch, on a busy machine
STAGED = {"driver": 0.8, "server": 0.5}  # how often the moment is between staging and commit
KINDS = ("worker", "executor", "server", "driver")


class Driver:
    """The driver's program as a process, and what it has said."""

    def __init__(self, master: str, first: int, urls: list[str], folder: Path) -> None:
        """Begin with batch `first`. The folder gets `drivers.log` and `events`, Spark's log."""
        events = folder / "events"
        events.mkdir(exist_ok=True)
        command = [sys.executable, str(HERE / "delivering.py"), master, str(first)]
        command += [str(events), *urls]
        self._log = (folder / "drivers.log").open("a")
        self.process = subprocess.Popen(
            command,
            stderr=self._log,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that all its processes can be ended
        )
        self.said: list[tuple[str, int]] = []
        self.failures: Counter[str] = Counter()
        self._has_ended = False
        self._moved = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            what, batch, *rest = line.split()
            with self._moved:
                self.said.append((what, int(batch)))
                self.failures.update(rest)
                self._moved.notify_all()
        with self._moved:
            self._has_ended = True
            self._moved.notify_all()

    def wait(self, what: str, batch: int) -> int:
        """Wait until it has said so of this batch or a later one, and return which."""

        def found() -> list[int]:
            return [number for said, number in self.said if said == what and number >= batch]

        with self._moved:
            assert self._moved.wait_for(lambda: self._has_ended or found(), DEADLINE), (
                f"the driver did not say {what} {batch} in {DEADLINE:g} s: {self.said[-5:]}"
            )
            assert found(), f"the driver ended before {what} {batch}: {self.said[-5:]}"
            return found()[0]

    @property
    def done(self) -> int:
        """How many batches are done, by all drivers until now; -1 if this one has done none."""
        with self._moved:
            return max([number for said, number in self.said if said == "done"], default=-1)

    def kill(self) -> None:
        """Kill the program alone: its JVM and its executors find that out by themselves."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Let it end by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(DEADLINE) == 0

    def sweep(self) -> None:
        """End what is left of its session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(DEADLINE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self._log.close()


class TwoHosts:
    """A standalone master, and workers whose hosts have different names."""

    def __init__(self, folder: Path, port: int) -> None:
        import pyspark

        home = folder / "spark"
        home.mkdir()
        for part in ("bin", "sbin", "jars", "python"):
            (home / part).symlink_to(Path(pyspark.__file__).parent / part)
        self.master = f"spark://127.0.0.1:{port}"
        environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        place = ["--port", str(port), "--webui-port", "0", "--host", "127.0.0.1"]
        limits = ["--cores", "1", "--memory", "1g", "--webui-port", "0", self.master]
        commands = [["org.apache.spark.deploy.master.Master", *place]]
        commands += [
            ["org.apache.spark.deploy.worker.Worker", *limits, "--host", f"127.0.0.{host}"]
            for host in (1, 2)
        ]
        self.processes = [
            subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            for command in commands
        ]

    def stop(self) -> None:
        """End them, and their executors."""
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Soak:
    """Rounds of kills, on servers and drivers of its own; a context manager."""

    def __init__(self, folder: Path, master: str, roots: list[int] | None = None) -> None:
        """`roots` are the processes that start executors, other than the driver's."""
        self._ends = ExitStack()
        self._master = master
        self._roots = roots or []
        self.kills: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.batches = 0
        self.shards = Shards(folder)
        self._ends.callback(self.shards.stop)
        self.driver = self._begin(0)

    def __enter__(self) -> Soak:
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()

    def _begin(self, first: int) -> Driver:
        driver = Driver(self._master, first, self.shards.urls, self.shards.folder)
        self._ends.callback(driver.sweep)
        return driver

    def round(self, kind: str, seed: int) -> None:
        """Kill a process at a moment that the seed says, and look at all batches since the last."""
        chance = random.Random(seed)
        anchor = "staged" if chance.random() < STAGED.get(kind, 0.0) else "begin"
        batch = self.driver.wait(anchor, max(self.batches, self.driver.done + 1))
        moment = chance.uniform(0.0, 0.03 if anchor == "staged" else 1.2)
        threading.Event().wait(moment)  # the kill is to come anywhere in the batch
        self._kill(kind, chance)
        last = self.driver.wait("done", batch)
        for number in range(self.batches, last + 1):
            self.check(number)
        self.batches = last + 1

    def check(self, batch: int) -> None:
        """Compare what every shard has of a batch with what it is to have."""
        found = self.shards.counts(batch)
        expected = self.shards.expected({at: key_of(batch, at) for at in range(ROWS)})
        for shard, (have, want) in enumerate(zip(found, expected, strict=True)):
            lost, more = want - have, have - want
            assert have == want, (
                f"batch {batch}, shard {shard}: {lost.total()} rows lost, {more.total()} doubled"
            )

    def finish(self) -> None:
        """Let the driver end, and look at all batches once more."""
        self.driver.stop()
        self.failures += self.driver.failures
        self.batches = max(self.batches, self.driver.done + 1)
        for batch in range(self.batches):
            self.check(batch)

    def _kill(self, kind: str, chance: random.Random) -> None:
        if kind == "server":
            self.shards.restart(chance.randrange(self.shards.count))
        elif kind == "driver":
            self.driver.kill()
            self.failures += self.driver.failures
            self.driver = self._begin(max(self.batches, self.driver.done + 1))
        else:
            self._kill_one(kind, chance)
        self.kills[kind] += 1

    def _kill_one(self, kind: str, chance: random.Random) -> None:
        """Kill a worker or an executor as soon as there is one."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            for process in chance.sample(found := victims(self._all_roots(), kind), len(found)):
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"no {kind} was there to be killed in {DEADLINE:g} s")

    def _all_roots(self) -> list[int]:
        return [self.driver.process.pid, *self._roots]


def victims(roots: list[int], kind: str) -> list[int]:
    """Return the executors among the descendants of processes, or the workers that those have."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
                commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # it has ended
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])

    def descends(process: int) -> bool:
        while process in parents:
            if process in roots:
                return True
            process = parents[process]
        return False

    def is_meant(process: int, command: str) -> bool:
        if kind == "executor":
            return "CoarseGrainedExecutorBackend" in command and "java" in command.split(" ")[0]
        # The daemon's children: the daemon itself is the executor's.
        return "pyspark.daemon" in command and "pyspark.daemon" in commands.get(
            parents[process], ""
        )

    return [
        process
        for process, command in commands.items()
        if process in parents and is_meant(process, command) and descends(process)
    ]


def main() -> None:
    """Run the rounds, and print what was killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--two-hosts", action="store_true")
    parser.add_argument("--port", type=int, default=17077, help="of the master (17077)")
    options = parser.parse_args()
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="callboard-soak-")))
        master, roots = "local-cluster[2,1,1024]", []
        if options.two_hosts:
            cluster = TwoHosts(folder, options.port)
            ends.callback(cluster.stop)
            master, roots = cluster.master, [process.pid for process in cluster.processes]
        soak = ends.enter_context(Soak(folder, master, roots))
        for number in range(options.rounds):
            seed = options.seed + number
            kind = options.kinds[number % len(options.kinds)]
            try:
                soak.round(kind, seed)
            except BaseException:
                print(f"round {number} ended: --kinds {kind} --seed {seed}", flush=True)
                print(f"killed before it, and all rows counted once: {dict(soak.kills)}")
                print((folder / "drivers.log").read_text()[-4000:], flush=True)
                raise
            print(f"round {number}: {kind}, batch {soak.batches - 1}", flush=True)
        soak.finish()
        print(summary(soak))


def summary(soak: Soak) -> str:
    """Say what was done."""
    kills = ", ".join(f"{number} {kind}s" for kind, number in sorted(soak.kills.items()))
    failures: dict[str, Any] = dict(soak.failures)
    tasks = attempts(soak.shards.folder / "events")
    return (
        f"killed: {kills}; {soak.batches} batches of {ROWS} rows on {soak.shards.count} shards: "
        f"0 lost, 0 doubled; {tasks['begun']} attempts at tasks, of these {tasks['repeated']} "
        f"repeated, {tasks['speculative']} speculative, of which {tasks['won']} won; "
        f"deliveries repeated after {failures or 'no error'}"
    )


if __name__ == "__main__":
    main()
