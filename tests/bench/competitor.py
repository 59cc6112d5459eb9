"""The terms of the suite: a benchmark, its competitors and their results."""

import json
import math
import os
import signal
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from resource import RUSAGE_CHILDREN
from typing import Any, Literal

from usage import Watch

TIMEOUT = 600.0  # seconds for one run, start-up included: on a busy machine, Spark's takes minutes

Kind = Literal["python", "native"]
Role = Literal["ours", "peer", "floor"]
Cost = Literal["cpu", "switches", "settled", "changes"]


@contextmanager
def session_of(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """Start a program in a session of its own; at the end nothing that it started runs on."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # all have ended
                os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Competitor:
    """A program that prints one line of JSON (see `one.py`)."""

    name: str
    kind: Kind
    role: Role
    command: Sequence[str]
    absent: str = ""  # why it cannot run here

    def run(self) -> "Sample":
        """Run the program once, in a process of its own."""
        if self.absent:
            return Sample(absent=self.absent)
        watch = Watch(RUSAGE_CHILDREN)
        try:
            with session_of(self.command) as process:
                output, errors = process.communicate(timeout=TIMEOUT)
            return Sample.read(json.loads(output.splitlines()[-1]), watch.stop())
        except subprocess.TimeoutExpired:
            return Sample(error=f"no result after {TIMEOUT:.0f} s")
        except OSError as error:
            return Sample(error=str(error))
        except (IndexError, ValueError):
            last = (errors.strip() or output.strip() or "no output").splitlines()[-1]
            return Sample(error=f"exit status {process.returncode}: {last}")


@dataclass(frozen=True)
class Benchmark:
    """What is measured, in `unit`, and who competes."""

    name: str
    title: str
    unit: str
    competitors: Sequence[Competitor]
    costs: bool = False  # its table shows CPU seconds and context switches
    levels: bool = False  # it shows how the level of workers was found


@dataclass(frozen=True)
class Sample:
    """One run's value, or why there is none."""

    value: float | None = None
    error: str = ""
    absent: str = ""
    cpu: float | None = None  # microseconds for an operation
    switches: float | None = None  # of context, for a million operations
    settled: float | None = None  # periods until the level of workers was found
    changes: float | None = None  # of the level, afterwards

    @classmethod
    def read(cls, line: dict[str, Any], process: dict[str, float]) -> "Sample":
        """Read a program's line; a wrong result is an error, whatever its speed.

        What it cost is what the line says, else what the whole process took.
        """
        if "absent" in line:
            return cls(absent=f"{line['absent']} is not installed")
        if line["got"] != line["want"]:
            return cls(error=f"wrong result: got {line['got']}, want {line['want']}"[:300])
        if "value" in line:
            return cls(value=line["value"])
        millions = line["operations"] / 1e6
        cpu, switches = (
            process[name] if line.get(name) is None else line[name] for name in ("cpu", "switches")
        )
        return cls(
            value=line["operations"] / line["seconds"],
            cpu=cpu / millions,
            switches=switches / millions,
            settled=line.get("settled"),
            changes=line.get("changes"),
        )


@dataclass
class Score:
    """What one competitor's runs came to."""

    samples: list[Sample] = field(default_factory=list)

    @property
    def values(self) -> list[float]:
        return [sample.value for sample in self.samples if sample.value is not None]

    @property
    def absent(self) -> str:
        return next((sample.absent for sample in self.samples if sample.absent), "")

    @property
    def error(self) -> str:
        return next((sample.error for sample in self.samples if sample.error), "")

    @property
    def valid(self) -> bool:
        """Tell whether there are values, and no run failed."""
        return bool(self.values) and not self.error

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def cost(self, name: Cost) -> float | None:
        """Return the median of what the runs cost, where that is known."""
        costs = [cost for sample in self.samples if (cost := getattr(sample, name)) is not None]
        return statistics.median(costs) if costs else None

    def over(self, other: "Score") -> float:
        """Return the median of the ratios to `other`, round by round; NaN if either had nothing.

        Memory may be that: a run at a tiny size asks the system for none.
        """
        pairs = zip(self.samples, other.samples, strict=True)
        ratios = [a.value / b.value for a, b in pairs if a.value and b.value]
        return statistics.median(ratios) if ratios else math.nan
