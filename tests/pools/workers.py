"""Actors that the processes of the tests' pools import."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callboard import Actor
from callboard.pools.parent_link import ParentLink


@dataclass(frozen=True)
class Point:
    x: int
    y: int


@dataclass(frozen=True)
class Unregistered:
    x: int


class Work(Actor[Any]):
    """Notes numbers in a file of its process, and answers."""

    def __init__(self, folder: str, *, factor: int = 1) -> None:
        self.factor = factor
        self.file = os.open(Path(folder, f"{os.getpid()}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def receive(self, message: Any) -> Any:
        match message:
            case "pid":
                return os.getpid()
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "fail":
                raise ValueError("told to")
            case "stop":
                self.stop()
            case ["sleep", seconds]:
                time.sleep(seconds)
            case {"key": key}:
                self.note(key)
            case int():
                self.note(message)
                return message * self.factor
        return message

    def note(self, number: int) -> None:
        os.write(self.file, b"%d\n" % number)


class Double(Actor[int, int]):
    def receive(self, number: int) -> int:
        return 2 * number


class Broken(Actor[Any]):
    def __init__(self) -> None:
        raise ValueError("it is broken")

    def receive(self, message: Any) -> None: ...


def noted(folder: Path) -> list[list[int]]:
    """Return the numbers that each process has noted, in its order."""
    return [[int(line) for line in file.read_text().split()] for file in sorted(folder.iterdir())]


class Called(Actor[Any]):
    """Has arguments with the names of options."""

    def __init__(self, name: str, *, types: int = 0, supervision: str = "none") -> None:
        self.given = [name, types, supervision]

    def receive(self, message: Any) -> Any:
        return self.given


def leave(*_: Any) -> Any:
    sys.exit("not here")


class Unpicklable:
    """Raises what is no `Exception`, where it is pickled."""

    def __reduce__(self) -> Any:
        leave()


class Undecodable:
    """The same, where it is made again."""

    def __reduce__(self) -> Any:
        return leave, ()


def in_the_child(parent: int) -> Any:
    if parent != os.getppid():
        leave()
    return OneWay()


class OneWay:
    """Can be made again in a process of a pool, and not in the program."""

    def __reduce__(self) -> Any:
        return in_the_child, (os.getpid(),)

    def __repr__(self) -> str:
        return "OneWay()"


def scribble() -> None:
    """Overwrite the memory of the channel to the parent, again and again."""
    (place,) = (
        line.split()[0]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "memfd:callboard" in line
    )
    begin, end = (int(address, 16) for address in place.split("-"))
    while True:
        ctypes.memset(begin, 0xA5, end - begin)


class Odd(Actor[Any]):
    """Answers with what can hardly travel, and forks."""

    def receive(self, message: Any) -> Any:
        match message:
            case "unpicklable":
                return Unpicklable()
            case "undecodable":
                return Undecodable()
            case OneWay():
                raise ValueError("of one way")
            case "fork":
                child = os.fork()
                if not child:
                    time.sleep(600)
                    os._exit(0)
                return child
            case "end":
                os._exit(3)
            case "pid":
                return os.getpid()
            case "scribble":
                threading.Thread(target=scribble, daemon=True).start()
            case "nonsense":
                for link in gc.get_objects():
                    if isinstance(link, ParentLink):
                        link.send(200)
        return message
