"""`python -m callboard serve` as shards, which can be killed, and restarted at the same address."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from callboard.remote import connect_sharded, shard_of

APP = Path(__file__).parent
DEADLINE = 60.0


class Shards:
    """Server processes, on the same sockets and states each time. Stop them with `stop()`."""

    def __init__(self, folder: Path, count: int = 2) -> None:
        self.folder = folder
        self.count = count
        self.urls = [f"unix:{folder}/{index}" for index in range(count)]
        self.processes = [self._start(index) for index in range(count)]
        for process in self.processes:
            self._wait(process)

    def restart(self, index: int) -> None:
        """Kill a server, and start it at once."""
        self._end(self.processes[index])
        self.processes[index] = self._start(index)
        self._wait(self.processes[index])

    def stop(self) -> None:
        for process in self.processes:
            self._end(process)

    def counts(self, batch: int) -> list[Counter[int]]:
        """How often each shard has each row of a batch, when all that is committed is applied."""
        with connect_sharded(self.urls, timeout=DEADLINE) as connection:
            for shard in connection.shards:
                while (health := shard.health().result(DEADLINE))["unapplied"]:
                    assert health["state"] == "serving", health["trouble"]
            asked = connection.ref("seen", by="k").ask_all(batch)
            return [Counter(answer.result(DEADLINE)) for answer in asked]

    def expected(self, keys: dict[int, object]) -> list[Counter[int]]:
        """What `counts` must be for rows with these keys."""
        counts: list[Counter[int]] = [Counter() for _ in self.urls]
        for number, key in keys.items():
            counts[shard_of(key, self.count)][number] += 1
        return counts

    def _start(self, index: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "callboard", "serve", "shard_app:build"]
        options = ["--bind", self.urls[index], "--shard", f"{index}/{self.count}"]
        state = ["--state", str(self.folder / f"state-{index}"), "--log-level", "ERROR"]
        return subprocess.Popen(
            [*command, *options, *state], cwd=APP, stdout=subprocess.PIPE, text=True
        )

    def _wait(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving on ")

    def _end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
