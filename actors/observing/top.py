"""`python -m callboard top`: a running system in the terminal."""

from __future__ import annotations

import argparse
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from callboard.core.errors import CallboardError
from callboard.observing.commands import none_found, say_silent, systems_of
from callboard.observing.conversation import Watcher
from callboard.observing.endpoint import refuse_another_user
from callboard.observing.top_frames import frame_of

Systems = list[tuple[Path, dict[str, Any]]]

SORTS = {"l": "load", "r": "rate", "u": "queue", "t": "total"}
"""The orders of actors, by their keys."""
KEYS = "q quit  p pause  s stacks  / filter  + - lines  sort by: l load  r rate  u queue  t total"


class Keyboard:
    """Reads the keys that are pressed, one at a time, until its `with` block is left.

    There are none if the standard input is not a terminal. One thread.
    """

    def __init__(self) -> None:
        self._input = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        if self._input is not None:
            self._before = termios.tcgetattr(self._input)
            tty.setcbreak(self._input)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._input is not None:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """Wait for input, at most this number of seconds. It may be several keys."""
        watched = [] if self._input is None else [self._input]
        ready, _, _ = select.select(watched, [], [], max(seconds, 0.0))
        return os.read(ready[0], 1024).decode(errors="replace") if ready else ""


@dataclass
class View:
    """The user's choices, which keys change."""

    sort: str = "load"
    part: str = ""
    most: int = 20
    paused: bool = False
    stacks: bool = False
    over: bool = False
    typed: str | None = None
    """The filter, while it is being typed."""

    def press(self, key: str) -> None:
        """Act on a key. Unknown keys do nothing."""
        if self.typed is not None:
            self._type(key, self.typed)
        elif key in SORTS:
            self.sort = SORTS[key]
        elif key == "/":
            self.typed = ""
        elif key in ("q", "\x03", "\x04"):
            self.over = True
        elif key == "p":
            self.paused = not self.paused
        elif key == "s":
            self.stacks = not self.stacks
        elif key in ("+", "-"):
            self.most = min(max(self.most + (5 if key == "+" else -5), 5), 1000)

    def _type(self, key: str, typed: str) -> None:
        if key in ("\r", "\n"):
            self.part, self.typed = typed, None
        elif key == "\x1b":
            self.typed = None
        elif key in ("\x7f", "\b"):
            self.typed = typed[:-1]
        elif key.isprintable():
            self.typed = typed + key

    def footer(self) -> str:
        """Return the last line: the keys, or the text being typed."""
        if self.typed is not None:
            return f"actors whose path or class has: {self.typed}_  (Enter, or Escape)"
        found = f"actors with {self.part!r}  " if self.part else ""
        return f"{'PAUSED  ' if self.paused else ''}{found}{KEYS}"


def main(arguments: Sequence[str]) -> int:
    """Show the workers, actors and operators of a system, sorted by their present load."""
    options = _options(arguments)
    try:
        from callboard.observing.screen import draw  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "rich":
            raise
        return _fail("needs Rich: pip install 'callboard[top]'")
    try:
        systems = without_children(systems_of(options.which, say_silent))
        if not systems:
            return _fail(none_found(options.which))
        if len(systems) > 1:
            names = ", ".join(f"{found['pid']} {found['system']}" for _, found in systems)
            return _fail(f"there are several systems, so name one: {names}")
        with closing(Watcher(systems[0][0], refuse_another_user)) as watcher:
            prints = options.once or not sys.stdout.isatty()
            return _print(watcher, options) if prints else _live(watcher, options)
    except (CallboardError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 0


def without_children(systems: Systems) -> Systems:
    """Leave out the systems of child processes, such as those of pools."""
    pids = {found["pid"] for _, found in systems}
    return [(path, found) for path, found in systems if found["parent"] not in pids]


def _fail(text: str) -> int:
    print(f"callboard top: {text}", file=sys.stderr)
    return 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m callboard top", description=main.__doc__)
    parser.add_argument("which", metavar="PID|NAME", nargs="?", help="of one process or system")
    parser.add_argument("--once", action="store_true", help="print one frame, and end")
    parser.add_argument("--sort", choices=list(SORTS.values()), default="load")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two looks")
    parser.add_argument("--lines", type=int, default=20, help="of actors")
    parser.add_argument("--filter", default="", help="only actors with this in path or class")
    parser.add_argument("--stacks", action="store_true", help="of the actors that are stuck")
    options = parser.parse_args(arguments)
    if not 0.05 <= options.every <= 30:
        parser.error(f"--every expects 0.05 to 30 seconds, got {options.every}")
    if not 1 <= options.lines <= 1000:
        parser.error(f"--lines expects 1 to 1000, got {options.lines}")
    return options


def _view(options: argparse.Namespace) -> View:
    return View(options.sort, options.filter, options.lines, stacks=options.stacks)


def _look(watcher: Watcher, view: View) -> dict[str, Any]:
    return watcher.look(sort=view.sort, most=view.most, part=view.part)


def _print(watcher: Watcher, options: argparse.Namespace) -> int:
    """Print frames, each of the time between two looks: one, or until the system ends."""
    from rich.console import Console

    from callboard.observing.screen import draw

    view = _view(options)
    console = Console(width=None if sys.stdout.isatty() else 160)
    before = _look(watcher, view)
    while True:
        time.sleep(options.every)
        try:
            now = _look(watcher, view)
        except ConnectionError:
            if options.once:
                raise
            print(f"{before['system']} has ended", file=sys.stderr)
            return 0
        frame, before = frame_of(before, now), now
        console.print(draw(frame, view.sort, stacks=view.stacks))
        if options.once:
            return 0
        sys.stdout.flush()


def _live(watcher: Watcher, options: argparse.Namespace) -> int:
    """Show frames until the user quits, or the system ends."""
    from rich.console import Console
    from rich.live import Live

    from callboard.observing.screen import draw

    view = _view(options)
    before = _look(watcher, view)
    frame = frame_of(None, before)
    due = time.monotonic() + min(options.every, 0.5)
    try:
        with (
            Keyboard() as keyboard,
            Live(console=Console(), screen=True, auto_refresh=False) as live,
        ):
            while not view.over:
                live.update(
                    draw(frame, view.sort, stacks=view.stacks, footer=view.footer()), refresh=True
                )
                for key in keyboard.wait(due - time.monotonic()):
                    view.press(key)
                if time.monotonic() >= due:
                    due = time.monotonic() + options.every
                    now = _look(watcher, view)  # also while it is paused, so that rates stay recent
                    frame, before = frame if view.paused else frame_of(before, now), now
    except ConnectionError:
        print(f"{frame.system} has ended", file=sys.stderr)
    return 0
