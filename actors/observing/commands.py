"""`python -m callboard info`, `tree` and `dump`, which inspect systems of the same user."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.text import printable
from callboard.observing import endpoint
from callboard.observing.endpoint import ask, folder_of_sockets

# Reading an answer of another form, such as that of another version, raises these.
_ODD = (TypeError, AttributeError, LookupError, ValueError)

HINT = "make it with ActorSystem(observable=True), and run this as the same user"


def info(arguments: Sequence[str]) -> int:
    """Print a line for each system that can be observed: its process, name and actors."""
    return _each("info", arguments, _print_info)


def tree(arguments: Sequence[str]) -> int:
    """Print the actors of systems as a tree with why each waits, and then the operators."""
    return _each("tree", arguments, _print_tree)


def dump(arguments: Sequence[str]) -> int:
    """Print all that is known of systems, as a line of JSON for each."""
    return _each("dump", arguments, lambda path, _: print(json.dumps(ask(path, "dump"))))


def systems_of(
    which: str | None, silent: Callable[..., object] = lambda *_: None
) -> list[tuple[Path, dict[str, Any]]]:
    """Find the systems of a process or of a name, or all.

    `silent` is called with the number of each process that does not answer soon, and in some cases
    with a text. Raises CallboardError, OSError.
    """
    return [
        (path, found)
        for path, found in _systems(silent)
        if which is None or which in (str(found["pid"]), found["system"])
    ]


def none_found(which: str | None) -> str:
    """Return an error text: no such process or system was found; it names those that there are."""
    if which is None:
        return f"no system can be observed: {HINT}"
    there = [f"{found['pid']} {found['system']}" for _, found in _systems(lambda *_: None)]
    what = f"no system or process {which!r} can be observed"
    return f"{what}; others can: {printable(', '.join(there))}" if there else f"{what}: {HINT}"


def say_silent(pid: int, what: str = "does not answer") -> None:
    """Print that a process does not answer as it should."""
    print(f"process {pid} {what}", file=sys.stderr)


def _each(
    command: str, arguments: Sequence[str], show: Callable[[Path, dict[str, Any]], None]
) -> int:
    """Show each system that the arguments mean. Returns 1 if there is none."""
    doc = globals()[command].__doc__
    parser = argparse.ArgumentParser(prog=f"python -m callboard {command}", description=doc)
    parser.add_argument("which", metavar="PID|NAME", nargs="?", help="of one process or system")
    which = parser.parse_args(arguments).which
    shown = 0
    try:
        for path, found in systems_of(which, say_silent):
            try:
                show(path, found)
                shown += 1
            except (TimeoutError, BlockingIOError):
                say_silent(found["pid"])
            except (ConnectionError, FileNotFoundError, *_ODD):
                print(f"process {found['pid']} has ended, or failed to answer", file=sys.stderr)
    except (CallboardError, OSError) as error:
        print(f"callboard {command}: {error}", file=sys.stderr)
        return 1
    if not shown:
        print(f"callboard {command}: {none_found(which)}", file=sys.stderr)
    return 0 if shown else 1


def _systems(silent: Callable[..., object]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Find the systems that answer; forget the sockets of processes that have ended."""
    for path in sorted(folder_of_sockets().glob("*-*.sock")):
        if not (number := path.name.partition("-")[0]).isdecimal():
            continue  # it is not of a system
        pid = int(number)
        try:
            found = ask(path, "who", endpoint.BRIEF_PATIENCE)
        except (ConnectionError, FileNotFoundError):
            if not _is_alive(pid):
                path.unlink(missing_ok=True)
            continue
        except (TimeoutError, BlockingIOError):
            silent(pid)
            continue
        if _says_who(found):
            yield path, found
        elif found is not None:
            silent(pid, "answers without the name of a system")


def _says_who(found: Any) -> bool:
    """Tell whether an answer is that of a system of this version."""
    return (
        isinstance(found, dict)
        and isinstance(found.get("system"), str)
        and all(isinstance(found.get(key), int) for key in ("pid", "parent"))
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _print_info(path: Path, found: dict[str, Any]) -> None:
    counts = (ask(path, "info") or {"reasons": {}})["reasons"]
    reasons = ", ".join(f"{reason} {count}" for reason, count in counts.items())
    print(printable(f"{found['pid']} {found['system']}: {reasons or 'no actors'}"))


def _print_tree(path: Path, found: dict[str, Any]) -> None:
    waits = ask(path, "waits") or []
    print(printable(f"{found['pid']} {found['system']}"))
    for wait in waits:
        name: str = wait["name"]
        depth, last = (name.count("/"), name.rpartition("/")[2]) if name[:1] == "/" else (1, name)
        print(printable(f"{'  ' * depth}{last} {wait['words']}"))
