"""However a program with pools ends, no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pools.test_pool import is_running
from tests.remote.conftest import eventually

LIMIT = 60
PROGRAM = """
import os, sys, time
from callboard import Actor, ActorSystem

class Work(Actor):
    def receive(self, message):
        if message == "pid":
            return os.getpid()
        time.sleep(message)

def main():
    {body}

if __name__ == "__main__":
    main()
"""
START = """
    system = ActorSystem()
    pool = system.pool(Work, processes=2)
    print(*[ref.ask("pid").result(60) for ref in pool.refs], flush=True)
"""


def start(tmp_path: Path, body: str) -> tuple[subprocess.Popen[str], list[int]]:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(body=(START + body).strip()))
    program = subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    processes = [int(word) for word in program.stdout.readline().split()]
    assert len(processes) == 2
    return program, processes


def expect_ends(program: subprocess.Popen[str], processes: list[int]) -> None:
    program.communicate(timeout=LIMIT)
    eventually(lambda: not any(map(is_running, processes)), "all processes have ended")


def test_the_end_of_the_interpreter_ends_the_processes(tmp_path: Path) -> None:
    program, processes = start(tmp_path, "")
    expect_ends(program, processes)
    assert program.returncode == 0


@pytest.mark.parametrize("busy", ["", "    pool.tell_many([3600] * 2)\n"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_parent_ends_all(tmp_path: Path, number: signal.Signals, busy: str) -> None:
    program, processes = start(tmp_path, busy + "    print(flush=True)\n    time.sleep(3600)")
    assert program.stdout is not None
    program.stdout.readline()
    program.send_signal(number)
    expect_ends(program, processes)
    assert program.returncode != 0


def test_ctrl_c_goes_to_all_and_the_parent_decides(tmp_path: Path) -> None:
    body = """
    with system:
        try:
            print(flush=True)
            time.sleep(3600)
        except KeyboardInterrupt:
            print(*[ref.ask("pid").result(60) for ref in pool.refs])
    """
    program, processes = start(tmp_path, body)
    assert program.stdout is not None
    program.stdout.readline()
    for process in (*processes, program.pid):
        os.kill(process, signal.SIGINT)
    said, _ = program.communicate(timeout=LIMIT)
    assert [int(word) for word in said.split()] == processes
    eventually(lambda: not any(map(is_running, processes)), "all processes have ended")


def test_a_pool_of_a_program_without_a_guard_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    text = PROGRAM.replace('if __name__ == "__main__":\n    main()', "main()")
    file.write_text(text.format(body=START.strip()))
    ran = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert ran.returncode != 0
    assert 'put the program\'s start under `if __name__ == "__main__":`' in ran.stderr


def test_a_class_of_an_interactive_program_is_refused(tmp_path: Path) -> None:
    text = PROGRAM.format(body=START.strip())
    ran = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert "put it into a module" in ran.stderr


def test_a_program_that_is_run_as_a_module_has_its_classes_found(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(body=START.strip()))
    ran = subprocess.run(
        [sys.executable, "-m", "program"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    assert len(ran.stdout.split()) == 2


OWN = """
from dataclasses import dataclass
from callboard import Actor, ActorSystem

@dataclass
class Point:
    x: int
    y: int

class TooFar(Exception):
    pass

def far():
    return "far"

class Mirror(Actor):
    def receive(self, message):
        if message.x == 3:
            raise TooFar(message)
        return [Point(message.y, message.x), far, TooFar("here"), type(message)]

if __name__ == "__main__":
    with ActorSystem() as system:
        found = []
        system.dead_letters.subscribe(found.append)
        pool = system.pool(Mirror, processes=1, pickle=True)
        point, function, error, cls = pool.ask(Point(2, 1)).result(60)
        print(point == Point(1, 2), function is far, type(error) is TooFar, cls is Point)
        pool.tell(Point(3, 3))
        system.drain(60)
    print([(letter.message == Point(3, 3), letter.reason) for letter in found])
"""


def test_pickled_objects_of_the_programs_own_file_come_back(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(OWN)
    ran = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=LIMIT, check=True
    )
    assert ran.stdout.split("\n")[:2] == ["True True True True", "[(True, 'failed')]"]
