"""`callboard COMMAND`, or `python -m callboard COMMAND`: callboard as a program of its own."""

from __future__ import annotations

import importlib
import sys

from callboard import __version__
from callboard.core.text import did_you_mean

# The modules of the commands, which nothing imports before, the function of each that is called
# with its arguments, and what it does.
COMMANDS = {
    "demo": ("callboard.demo.shop", "main", "run a small shop, to be looked at"),
    "serve": ("callboard.remote.server.serve", "main", "serve actors or a graph"),
    "health": ("callboard.remote.client.look", "main", "print a server's health as JSON"),
    "info": ("callboard.observing.commands", "info", "print a line for each system"),
    "top": ("callboard.observing.top", "main", "show what a system does just now"),
    "dashboard": ("callboard.dashboard.serving", "main", "show systems in a browser"),
    "tree": ("callboard.observing.commands", "tree", "print a system's actors"),
    "dump": ("callboard.observing.commands", "dump", "print all that is known of systems, as JSON"),
    "net": ("callboard.nets.running.program", "main", "run a net in S-Net's text"),
    "bench": ("callboard.demo.bench", "main", "measure this machine for some seconds"),
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
        lines = [f"  {name:<9}  {does}" for name, (*_, does) in COMMANDS.items()]
        usage = "\n".join(["usage: callboard [--version] COMMAND ...", "", *lines])
        print(usage, file=sys.stdout if is_wanted else sys.stderr)
        return 0 if is_wanted else 2
    module, function, _ = COMMANDS[command]
    status: int = getattr(importlib.import_module(module), function)(arguments[1:])
    return status


def program() -> int:
    """Run the command that the program's arguments say. Returns the exit status."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program())
