"""The competitors: Python libraries on their hosts, and native programs, each with its size."""

import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from subprocess import CalledProcessError

import natives
from competitor import Competitor, Role
from peers import PROGRAMS

ONE = (sys.executable, str(Path(__file__).with_name("one.py")))

# A competitor's title, and its rate against a Python actor's on callboard, roughly: its size is
# multiplied by it, so that all run for about as long.
HOSTS = {
    "callboard": ("callboard", 1),
    "native": ("callboard, native", 2),
    "asyncio": ("asyncio queues", 1 / 20),
    "threads": ("threads, SimpleQueue", 1 / 50),
    "thespian": ("Thespian", 1 / 50),
    "pykka": ("Pykka", 1 / 100),
    "xoscar": ("xoscar", 1 / 200),
}
NATIVES = {
    "go": ("Go", 1 / 2),
    "caf": ("CAF", 1 / 4),
    "erlang": ("Erlang", 1 / 4),
    "tbb": ("oneTBB", 1),
    "free_ports": ("Streams 4.2's scheduler", 1),
    "floor": ("C++ floor", 3),
    "flow": ("callboard, stages", 1),
    "structures": ("callboard, stages", 1),
    "summaries": ("callboard, counters", 1),
}
LIBRARIES = ("asyncio", "thespian", "pykka", "xoscar")
LANGUAGES = ("go", "caf", "erlang")
BARE_CALLS = 8_000_000


@cache
def built(program: str) -> str:
    """Build a native program; return why it cannot be, where something is not installed."""
    missing = PROGRAMS[program].missing()
    if not missing:
        try:
            PROGRAMS[program].compile()
        except CalledProcessError as error:  # running it will say that it is not there
            print(f"{program}: {error}", file=sys.stderr)
    return missing


@cache
def built_actors(module: str = "actors") -> str:
    """Build callboard's native actors, or operators; return why they cannot be."""
    missing = natives.missing()
    if not missing:
        try:
            natives.compile_actors(module)
        except CalledProcessError as error:
            print(f"native {module}: {error}", file=sys.stderr)
    return missing


def role(name: str) -> Role:
    if name in ("callboard", "native", "flow", "structures", "summaries"):
        return "ours"
    return "floor" if name == "floor" else "peer"


def with_workers(title: str, workers: int) -> str:
    return f"{title}, {workers} workers" if workers > 1 else title


@dataclass(frozen=True)
class Game:
    """A module of `savina` or `runtime`, or a native program's part, and its sizes."""

    module: str
    size: int  # for a Python actor on callboard
    smallest: int
    smoke: bool

    def scaled(self, rate: float) -> int:
        return max(self.smallest, int(self.size * rate) // (1_000 if self.smoke else 1))

    def on(self, host: str, title: str = "", **options: object) -> Competitor:
        """Let a Python library play, with `options` for its host."""
        name, rate = HOSTS[host]
        words = (f"{key}={value}" for key, value in options.items())
        command = (*ONE, self.module, host, str(self.scaled(rate)), *words)
        return Competitor(title or name, "python", role(host), command)

    def natively(self, workers: int = 1, **options: object) -> Competitor:
        """Let callboard's native actors play."""
        title, rate = HOSTS["native"]
        words = (f"{key}={value}" for key, value in {"workers": workers, **options}.items())
        command = (*ONE, self.module, "native", str(self.scaled(rate)), *words)
        return Competitor(with_workers(title, workers), "native", "ours", command, built_actors())

    def alone(self, title: str, part: Role, rate: float = 1, **options: object) -> Competitor:
        """Let a module play that needs no host."""
        words = (f"{key}={value}" for key, value in options.items())
        command = (*ONE, self.module, "none", str(self.scaled(rate)), *words)
        return Competitor(title, "python", part, command)

    def operators(self, title: str, rate: float = 1, **options: object) -> Competitor:
        """Let a graph of native operators play."""
        absent = built_actors("streams")
        return replace(self.alone(title, "ours", rate, **options), kind="native", absent=absent)

    def by(self, program: str, workers: int = 1, *words: str) -> Competitor:
        """Let a native program play."""
        name, rate = NATIVES[program]
        absent = built(program)
        part = self.module.rpartition(".")[2]
        command = PROGRAMS[program].command(part, self.scaled(rate), workers)
        title = with_workers(", ".join((name, *words)), workers)
        return Competitor(title, "native", role(program), (*command, *words), absent)

    def all(self, *others: Competitor) -> list[Competitor]:
        """Let callboard, the Python libraries and the Python floor play, and `others`."""
        bare = Game("savina.bare_call", BARE_CALLS, 1_000, self.smoke)
        python = [self.on(host) for host in ("callboard", *LIBRARIES)]
        return [*python, bare.alone("bare method call", "floor"), *others]

    def languages(self) -> list[Competitor]:
        """Let callboard's native actors, other languages and the native floor play."""
        return [self.natively(), *(self.by(program) for program in (*LANGUAGES, "floor"))]
