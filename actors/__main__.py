"""`callboard COMMAND`, or `python -m callboard COMMAND`: the commands of callboard."""

from __future__ import annotations

import sys
from collections.abc import Callable

from callboard import __version__
from callboard.core.text import did_you_mean

# Each command imports its module only when it runs: tests/test_layering.py lists these imports.


def _demo(arguments: list[str]) -> int:
    """Run a small shop, to be looked at."""
    from callboard.demo.shop import main

    return main(arguments)


def _serve(arguments: list[str]) -> int:
    """Serve actors or a graph."""
    from callboard.remote.server.serve import main

    return main(arguments)


def _health(arguments: list[str]) -> int:
    """Print a server's health as JSON."""
    from callboard.remote.client.health_command import main

    return main(arguments)


def _info(arguments: list[str]) -> int:
    """Print a line for each system."""
    from callboard.observing.commands import info

    return info(arguments)


def _top(arguments: list[str]) -> int:
    """Show what a system does just now."""
    from callboard.observing.top import main

    return main(arguments)


def _dashboard(arguments: list[str]) -> int:
    """Show systems in a browser."""
    from callboard.dashboard.serving import main

    return main(arguments)


def _tree(arguments: list[str]) -> int:
    """Print a system's actors."""
    from callboard.observing.commands import tree

    return tree(arguments)


def _dump(arguments: list[str]) -> int:
    """Print all that is known of systems, as JSON."""
    from callboard.observing.commands import dump

    return dump(arguments)


def _net(arguments: list[str]) -> int:
    """Run a net in S-Net's text."""
    from callboard.nets.running.program import main

    return main(arguments)


def _bench(arguments: list[str]) -> int:
    """Measure this machine for some seconds."""
    from callboard.demo.bench import main

    return main(arguments)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "demo": _demo,
    "serve": _serve,
    "health": _health,
    "info": _info,
    "top": _top,
    "dashboard": _dashboard,
    "tree": _tree,
    "dump": _dump,
    "net": _net,
    "bench": _bench,
}


def main(arguments: list[str]) -> int:
    """Run the command that comes first. Returns the exit status."""
    command = arguments[0] if arguments else ""
    if command == "--version":
        print(f"callboard {__version__}")
        return 0
    if command not in COMMANDS:
        is_wanted = command in ("-h", "--help")
        if command and not is_wanted:
            hint = did_you_mean(command, COMMANDS)
            print(f"callboard: expected a command, got {command!r}{hint}", file=sys.stderr)
        lines = [f"  {name:<9}  {_summary(run)}" for name, run in COMMANDS.items()]
        usage = "\n".join(["usage: callboard [--version] COMMAND ...", "", *lines])
        print(usage, file=sys.stdout if is_wanted else sys.stderr)
        return 0 if is_wanted else 2
    return COMMANDS[command](arguments[1:])


def _summary(command: Callable[[list[str]], int]) -> str:
    """Return what a command does, as the usage says it; nothing under `python -OO`."""
    text = (command.__doc__ or "").rstrip(".")
    return text[:1].lower() + text[1:]


def program() -> int:
    """Run the command that the program's arguments say. Returns the exit status."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program())
