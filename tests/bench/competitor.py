"""The words of the suite: a benchmark and those who compete in it."""

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

TIMEOUT = 120.0  # seconds for one run, start-up included

Kind = Literal["python", "native"]
Role = Literal["ours", "peer", "floor"]


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
        try:
            done = subprocess.run(
                self.command, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
            return Sample.read(json.loads(done.stdout.splitlines()[-1]))
        except subprocess.TimeoutExpired:
            return Sample(error=f"no result after {TIMEOUT:.0f} s")
        except OSError as error:
            return Sample(error=str(error))
        except (IndexError, ValueError):
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            return Sample(error=f"exit status {done.returncode}: {last}")


@dataclass(frozen=True)
class Benchmark:
    """What is measured, in `unit`, and who competes."""

    name: str
    title: str
    unit: str
    competitors: Sequence[Competitor]


@dataclass(frozen=True)
class Sample:
    """One run's value, or why there is none."""

    value: float | None = None
    error: str = ""
    absent: str = ""

    @classmethod
    def read(cls, line: dict[str, Any]) -> "Sample":
        """Read a program's line; a wrong result is an error, whatever its speed."""
        if "absent" in line:
            return cls(absent=f"{line['absent']} is not installed")
        if line["got"] != line["want"]:
            return cls(error=f"wrong result: got {line['got']}, want {line['want']}"[:300])
        if "value" in line:
            return cls(value=line["value"])
        return cls(value=line["operations"] / line["seconds"])


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

    def over(self, other: "Score") -> float:
        """Return the median of the ratios to `other`, round by round."""
        pairs = zip(self.samples, other.samples, strict=True)
        return statistics.median(a.value / b.value for a, b in pairs if a.value and b.value)
