"""The lives of worker processes, and of the programs that have some."""

from __future__ import annotations

import errno
import logging
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem, ConfigError
from callboard.streams import ProcessLost, RunTimeout, StreamError, entry
from tests.streams.in_processes import process_of, run, tripled

pytestmark = pytest.mark.usefixtures("importable")


@pytest.fixture(scope="module")
def system(root: Path) -> Iterator[ActorSystem]:
    with pytest.MonkeyPatch.context() as patched, ActorSystem(processes=2) as made:
        patched.syspath_prepend(str(root))  # where the processes find this module
        yield made


def killed_at_seven(number: int) -> int:
    if number == 7:
        os._exit(3)
    return number


def test_a_row_that_ends_each_process_fails_the_run() -> None:
    with ActorSystem(processes=1) as system:
        graph = entry("rows", int).map(killed_at_seven, name="fatal").collect()
        with pytest.raises(StreamError, match="'fatal' failed") as caught:
            run(system, graph, range(10))
        assert isinstance(caught.value.__cause__, ProcessLost)
        assert "exit status 3" in str(caught.value.__cause__)
        assert run(system, entry("rows", int).map(tripled).collect(), [1]) == [3]


def test_killed_processes_lose_and_double_nothing() -> None:
    rows, every = 5_000, 500
    graph = entry("rows", int).map(tripled).map(lambda row: (row, os.getpid())).collect()
    with ActorSystem(processes=2) as system:
        made = system.run(graph, batch_size=16, window=4)
        results = made.results(limit=64)  # so processes are few rows ahead of what is seen
        sending = threading.Thread(target=made.send, args=("rows", range(rows)))
        sending.start()
        seen: list[int] = []
        killed: list[int] = []
        while len(seen) < rows:
            number, process = next(results)
            seen.append(number)
            if len(seen) % every == 0:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
        sending.join()
        made.finish(timeout=60)
    assert seen == [row * 3 for row in range(rows)]
    assert len(set(killed)) == rows // every


def test_a_function_that_never_returns_holds_up_neither_cancel_nor_the_system() -> None:
    with ActorSystem(processes=1) as system:
        made = system.run(entry("rows", int).map(lambda _: threading.Event().wait()).collect())
        made.send("rows", [1])
        with pytest.raises(RunTimeout):
            made.finish(timeout=0.01)
        made.cancel()
        assert run(system, entry("rows", int).map(tripled).collect(), [1]) == [3]


def test_records_of_loggers_go_to_the_log_of_the_program(
    system: ActorSystem, caplog: pytest.LogCaptureFixture
) -> None:
    def warn(row: int) -> int:
        logger = logging.getLogger("callboard.tests.rows")
        logger.warning("row %d", row)
        if row == 2:
            try:
                raise ValueError("two")
            except ValueError:
                logger.exception("cannot be")
        return row

    run(system, entry("rows", int).map(warn).collect(), range(3))
    found = [record for record in caplog.records if record.name == "callboard.tests.rows"]
    assert sorted(record.getMessage().splitlines()[0] for record in found) == [
        "cannot be",
        "row 0",
        "row 1",
        "row 2",
    ]
    assert all(record.processName.startswith("callboard-process-") for record in found)  # type: ignore[union-attr]
    assert all(record.process != os.getpid() for record in found)
    (error,) = [record for record in found if record.levelname == "ERROR"]
    assert "ValueError: two" in error.getMessage()


def test_threads_of_a_function_log_beside_it(
    system: ActorSystem, caplog: pytest.LogCaptureFixture
) -> None:
    def warn_beside(row: int) -> str:
        logger = logging.getLogger("callboard.tests.beside")

        def warn() -> None:
            for _ in range(100):
                logger.warning("x" * 10_000)

        threads = [threading.Thread(target=warn) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "y" * 2_000_000

    assert run(system, entry("rows", int).map(warn_beside).collect(), [1]) == ["y" * 2_000_000]
    found = [record for record in caplog.records if record.name == "callboard.tests.beside"]
    assert [record.getMessage() for record in found] == ["x" * 10_000] * 200


def test_a_breakpoint_says_where_to_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)  # a library may have set it
    graph = entry("rows", int).map(lambda _: breakpoint()).collect()
    with ActorSystem(processes=1) as system, pytest.raises(StreamError) as caught:
        run(system, graph, [1])
    assert "keep the operator in the program by here()" in str(caught.value.__cause__)


def test_a_process_that_works_is_named_as_the_reason_for_a_wait(tmp_path: Path) -> None:
    begun = str(tmp_path / "begun")
    os.mkfifo(begun)

    def never(_: int) -> bool:
        Path(begun).write_text("", encoding="utf-8")  # waits for the reader
        return threading.Event().wait()

    with ActorSystem(processes=1) as system:
        made = system.run(entry("rows", int).map(never, name="stuck").collect())
        made.send("rows", [1])
        Path(begun).read_text(encoding="utf-8")
        with pytest.raises(
            RunTimeout, match=r"worker process.*callboard-process-0 \(process \d+\)"
        ):
            made.finish(timeout=0.01)
        made.cancel()


def test_wrong_numbers_of_processes_are_refused() -> None:
    for wrong in (-1, 1.5, "two"):
        with pytest.raises(ConfigError, match="processes"):
            ActorSystem(processes=wrong)  # type: ignore[arg-type]


def test_a_process_that_is_suspended_does_not_hold_up_the_end_of_the_system() -> None:
    with ActorSystem(processes=1) as system:
        (process,) = run(system, entry("rows", int).map(process_of).collect(), [1])
        os.kill(process, signal.SIGSTOP)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_descriptors_and_processes_end_with_the_system() -> None:
    graph = entry("rows", int).map(process_of).collect()

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = 0
    for _ in range(4):
        with ActorSystem(processes=2) as system:
            found = set(run(system, graph, range(100), batch_size=1))
        for process in found:
            with pytest.raises(ProcessLookupError):
                os.kill(process, 0)
        before = before or descriptors()
    assert descriptors() <= before


@pytest.mark.parametrize("name", ["memfd_create", "eventfd"])
def test_a_container_that_forbids_a_system_call_is_an_error_that_names_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: Any) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    forbidden.__name__ = name
    monkeypatch.setattr(os, name, forbidden)
    said = rf"cannot be started: \[Errno 38\] {name}: Function not implemented"
    with ActorSystem(processes=2) as system:
        for _ in range(2):
            with pytest.raises(StreamError) as caught:
                run(system, entry("rows", int).map(tripled).collect(), range(100))
            assert re.search(said, str(caught.value.__cause__))
        with pytest.raises(StreamError) as caught:
            run(system, entry("rows", int).scan(0, max).collect(), range(100))
        assert re.search(said, str(caught.value.__cause__))


def limited(resource: str, limit: int, options: str) -> subprocess.CompletedProcess[str]:
    """Run a program with a limit of a resource, which no wait holds up."""
    program = textwrap.dedent(f"""
        import resource
        from callboard import ActorSystem
        from callboard.streams import StreamError, entry
        from callboard.worker_processes import place

        place._BACKOFF = place._MOST_BACKOFF = 0.001
        resource.setrlimit(resource.{resource}, ({limit}, {limit}))
        with ActorSystem(workers=2, {options}) as system:
            stateless = entry("rows").map(lambda row: row * 2)
            for graph in stateless.collect(), stateless.key_by(abs).scan(0, max).collect():
                run = system.run(graph, batch_size=1)
                try:
                    run.send("rows", range(100))
                    print(len(run.finish(timeout=60)))
                except StreamError as error:
                    print(error.__cause__)
    """)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )


def test_two_processes_need_few_descriptors() -> None:
    ran = limited("RLIMIT_NOFILE", 64, "processes=2")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "100\n100\n", "")


def test_processes_without_descriptors_leave_the_rounds_to_others_or_say_so() -> None:
    ran = limited("RLIMIT_NOFILE", 64, "processes=16")
    others, all_of_them = ran.stdout.splitlines()  # states are in all processes
    assert others == "100"
    assert "it cannot be started: [Errno 24]" in all_of_them
    assert all_of_them.endswith("Too many open files")  # behind the name of the call, or without


def test_processes_without_memory_are_an_error_that_says_so() -> None:
    ran = limited("RLIMIT_AS", 8 << 30, "processes=2, shared_memory=1 << 36")
    for line in ran.stdout.splitlines():
        assert line.endswith("bytes of shared memory cannot be mapped")
    assert len(ran.stdout.splitlines()) == 2


def test_a_full_dev_shm_is_no_obstacle(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(PROGRAM))
    full = "mount -t tmpfs -o size=64k none /dev/shm && ! head -c 1M /dev/zero > /dev/shm/full"
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    try:
        subprocess.run([*command, full], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing can be mounted here: {error}")
    ran = subprocess.run(
        [*command, f'{full} 2> /dev/null; exec "$0" "$1"', sys.executable, script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


PROGRAM = """
from dataclasses import dataclass
from enum import Enum
from callboard import ActorSystem
from callboard.streams import entry

class Color(Enum):
    RED = 1

@dataclass
class Point:
    x: int
    color: Color = Color.RED

    def moved(self):
        return Point(self.x + OFFSET)

OFFSET = 10

class Refused(Exception):
    pass

def move(point):
    if point.x == 3:
        raise Refused(point.x)
    return point.moved()

with ActorSystem(processes=2) as system:
    run = system.run(entry("rows").map(move, errors="skip").collect())
    run.send("rows", [Point(x) for x in range(6)])
    found = run.finish(timeout=60)
    assert found == [Point(10), Point(11), Point(12), Point(14), Point(15)], found
    assert all(type(one) is Point and one.color is Color.RED for one in found)
    assert type(run.row_counts.failures[0].error) is Refused

    @dataclass
    class Point:  # again, as in a notebook
        x: int

        def moved(self):
            return Point(-self.x)

    Point.__qualname__ = "Point"
    run = system.run(entry("rows").map(move).collect())
    run.send("rows", [Point(1), Point(2)])
    assert run.finish(timeout=60) == [Point(-1), Point(-2)]

    @dataclass
    class spec:  # a name that the process has for itself
        x: int

    run = system.run(entry("rows").map(lambda one: spec(one.x + 1)).collect())
    run.send("rows", [spec(1)])
    assert run.finish(timeout=60) == [spec(2)]
    print("done")
"""


def test_a_script_without_a_guard_runs_with_its_own_classes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(PROGRAM))
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


KILLED = """
import os, sys, threading
from callboard import ActorSystem
from callboard.streams import entry

system = ActorSystem(processes=1)
run = system.run(entry("rows").map(lambda _: os.getpid()).collect())
results = run.results()
run.send("rows", [1])
print(next(results), flush=True)
run = system.run(entry("rows").map(lambda _: threading.Event().wait()).collect())
run.send("rows", [1])
sys.stdin.read()
"""


def test_a_killed_program_leaves_no_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        worker = int(program.stdout.readline())
        descriptor = os.pidfd_open(worker)
        program.kill()
        try:
            assert select.select([descriptor], [], [], 60)[0]
        finally:
            os.close(descriptor)
