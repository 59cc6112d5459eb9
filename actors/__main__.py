"""`callboard COMMAND`, or `python -m callboard COMMAND`: callboard as a program of its own."""

from __future__ import annotations

import importlib
import sys

from callboard import __version__

# The modules of the commands, which nothing imports before, and the function of each that is called
# with its arguments.
COMMANDS = {
    "demo": ("callboard.demo.shop", "main"),
    "serve": ("callboard.remote.server.serve", "main"),
    "health": ("callboard.remote.client.look", "main"),
    "info": ("callboard.observing.commands", "info"),
    "top": ("callboard.observing.top", "main"),
    "dashboard": ("callboard.dashboard.serving", "main"),
    "tree": ("callboard.observing.commands", "tree"),
    "dump": ("callboard.observing.commands", "dump"),
    "net": ("callboard.nets.running.program", "main"),
    "bench": ("callboard.demo.bench", "main"),
}


def main(arguments: list[str]) -> int:
    """Run the command that comes first. Returns the exit status."""
    command = arguments[0] if arguments else ""
    if command == "--version":
        print(f"callboard {__version__}")
        return 0
    if command not in COMMANDS:
        names = ",".join(COMMANDS)
        print(f"usage: callboard [--version] {{{names}}} ...", file=sys.stderr)
        return 0 if command in ("-h", "--help") else 2
    module, function = COMMANDS[command]
    status: int = getattr(importlib.import_module(module), function)(arguments[1:])
    return status


def program() -> int:
    """Run the command that the program's arguments say. Returns the exit status."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program())
