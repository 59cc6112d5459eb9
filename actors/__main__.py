"""`python -m callboard COMMAND`: callboard as a program of its own."""

from __future__ import annotations

import importlib
import sys

from callboard import __version__

# The commands of the capabilities. Nothing imports a capability; each has its name here, and a
# `main(arguments)`.
COMMANDS = {"serve": "callboard.remote.server.serve", "health": "callboard.remote.client.look"}


def main(arguments: list[str]) -> int:
    """Run the command that comes first. Returns the exit status."""
    command = arguments[0] if arguments else ""
    if command == "--version":
        print(f"callboard {__version__}")
        return 0
    if command not in COMMANDS:
        names = ",".join(COMMANDS)
        print(f"usage: python -m callboard [--version] {{{names}}} ...", file=sys.stderr)
        return 0 if command in ("-h", "--help") else 2
    status: int = importlib.import_module(COMMANDS[command]).main(arguments[1:])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
