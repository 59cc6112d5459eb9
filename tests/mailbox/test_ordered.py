"""The structures under ordered streams against models in plain Python.

A program in C++ holds one structure behind a pipe. While it visits a value of a partitioned queue,
further commands play other workers: so programs on one thread reach every state of a partition.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import deque
from pathlib import Path
from typing import IO

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

ROOT = Path(__file__).parents[2]
CAPACITIES = st.sampled_from([1, 2, 4])


@pytest.fixture(scope="module", autouse=True)
def program(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Build the program once for all machines."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("drive")
    (folder / "callboard").mkdir()
    for name in ("core", "mailbox"):
        (folder / "callboard" / name).symlink_to(ROOT / name)
    Structure.program = folder / "drive"
    source = str(ROOT / "tests/native/drive.cpp")
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{folder}"]
    subprocess.run([compiler, *flags, source, "-o", str(Structure.program)], check=True)


class Structure:
    """One structure in a process of its own."""

    program: Path

    def __init__(self, kind: str, size: int) -> None:
        self.process = subprocess.Popen(
            [self.program, kind, str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def put(self, *words: object) -> None:
        pipe: IO[str] | None = self.process.stdin
        assert pipe is not None
        pipe.write(" ".join(map(str, words)) + "\n")

    def get(self) -> list[str]:
        pipe: IO[str] | None = self.process.stdout
        assert pipe is not None
        return pipe.readline().split()

    def ask(self, *words: object) -> list[int]:
        self.put(*words)
        return [int(word) for word in self.get()]

    def close(self) -> None:
        self.process.communicate(timeout=60)


class Machine(RuleBasedStateMachine):
    """A machine with one structure; subclasses say which."""

    kind: str
    structure: Structure | None = None

    def begin(self, size: int) -> Structure:
        self.structure = Structure(self.kind, size)
        return self.structure

    def ask(self, *words: object) -> list[int]:
        assert self.structure is not None
        return self.structure.ask(*words)

    def teardown(self) -> None:
        if self.structure is not None:
            self.structure.close()


class ListMachine(Machine):
    """A bounded queue: values come out in order, with their serial numbers."""

    @initialize(capacity=CAPACITIES)
    def start(self, capacity: int) -> None:
        self.begin(capacity)
        self.capacity = capacity
        self.waiting: deque[int] = deque()
        self.pushed = self.popped = 0

    @rule(value=st.integers(0, 9))
    def push(self, value: int) -> None:
        if len(self.waiting) == self.capacity:
            assert self.ask("push", value) == [-1]
        else:
            assert self.ask("push", value) == [self.pushed]
            self.waiting.append(value)
            self.pushed += 1

    @rule()
    def pop(self) -> None:
        if self.waiting:
            assert self.ask("pop") == [self.popped, self.waiting.popleft()]
            self.popped += 1
        else:
            assert self.ask("pop") == [-1, 0]

    @rule()
    def size(self) -> None:
        assert self.ask("size") == [len(self.waiting)]


class OrderMachine(Machine):
    """A reorder buffer: what left is 0, 1, 2 and so on, as far as it has come."""

    @initialize(capacity=CAPACITIES)
    def start(self, capacity: int) -> None:
        self.begin(capacity)
        self.capacity = capacity
        self.next = 0
        self.early: set[int] = set()

    @rule(ahead=st.integers(0, 5))
    def send(self, ahead: int) -> None:
        serial = self.next + ahead
        if serial in self.early:
            return
        fits, *left = self.ask("send", serial)
        if fits:
            self.early.add(serial)
        ready = []
        while self.next in self.early:
            ready.append(self.next)
            self.early.remove(self.next)
            self.next += 1
        assert left == ready
        # Room is told of twice a ring: for half a ring there is always some, beyond it none.
        assert fits or ahead > max(0, self.capacity // 2 - 1)
        assert not fits or ahead < self.capacity


# What another worker does while a value is visited: add to a partition, or take at most so many.
PARTITIONS = 3
Deed = tuple[str, int]
DEEDS = st.lists(
    st.tuples(st.just("add"), st.integers(0, PARTITIONS - 1))
    | st.tuples(st.just("take"), st.integers(1, 3)),
    max_size=6,
)


class QueueMachine(Machine):
    """A partitioned queue: each partition in order, one worker at a time, nothing left."""

    @initialize(each=CAPACITIES)
    def start(self, each: int) -> None:
        self.begin(PARTITIONS).put(each)
        self.each = each
        self.queues: list[deque[int]] = [deque() for _ in range(PARTITIONS)]
        self.owned: set[int] = set()
        self.added = 0

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def add(self, partition: int) -> None:
        self.added += 1
        (fits,) = self.ask("add", partition, self.added)
        if self.kind != "shared":  # whose partitions share one bound
            assert fits == (len(self.queues[partition]) < self.each)
        if fits:
            self.queues[partition].append(self.added)

    @rule(most=st.integers(1, 3), deeds=DEEDS)
    def take(self, most: int, deeds: list[Deed]) -> None:
        self.work(most, deque(deeds))

    def work(self, most: int, deeds: deque[Deed]) -> bool:
        """Take once. The deeds are done by other workers while the first value is visited."""
        assert self.structure is not None
        self.structure.put("take", most)
        visited: list[int] = []
        while (answer := self.structure.get())[0] == "visit":
            partition, value = int(answer[1]), int(answer[2])
            assert partition not in self.owned
            assert value == self.queues[partition].popleft()
            self.owned.add(partition)
            visited.append(partition)
            while deeds:
                deed, amount = deeds.popleft()
                if deed == "add":
                    self.add(amount)
                else:
                    self.work(amount, deque())
            self.owned.remove(partition)
            self.structure.put("done")
        assert answer in (["took"], ["nothing"])
        assert len(visited) <= most
        assert len(set(visited)) <= 1
        return answer == ["took"]

    @rule()
    def finish(self) -> None:
        """Alone, a worker that takes until there is nothing serves everything."""
        while self.work(16, deque()):
            pass
        assert not any(self.queues)
        assert self.ask("waiting") == [0]


def machine(base: type[Machine], name: str) -> type[Machine]:
    return type(f"{name.capitalize()}Machine", (base,), {"kind": name})


TestWorklist = machine(ListMachine, "worklist").TestCase
TestRing = machine(ListMachine, "ring").TestCase
TestReorder = machine(OrderMachine, "reorder").TestCase
TestFlag = machine(OrderMachine, "flag").TestCase
TestLocked = machine(OrderMachine, "locked").TestCase
TestHybrid = machine(QueueMachine, "hybrid").TestCase
TestPartitioned = machine(QueueMachine, "partitioned").TestCase
TestShared = machine(QueueMachine, "shared").TestCase
