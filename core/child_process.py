"""Processes that a program starts for itself: their start, and their standard input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

# A process reads first where modules are. It does not import the program's main module.
_PROGRAM = """
import json, sys
spec = json.loads(sys.stdin.buffer.readline())
sys.path[:] = spec["modules"]
sys.argv[:] = spec["argv"]
from {module} import main
sys.exit(main(spec))
"""


def start(module: str, spec: dict[str, Any], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a process that calls `main(spec)` of a module, and leave its standard input open.

    It inherits the descriptors. The end of its input is that of this process, or wanted. Raises
    OSError.
    """
    known = {"modules": [str(folder) for folder in sys.path], "argv": sys.argv}
    line = json.dumps({**known, **spec}).encode() + b"\n"
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    process = subprocess.Popen(
        [sys.executable, *flags, "-P", "-c", _PROGRAM.format(module=module)],
        stdin=subprocess.PIPE,
        pass_fds=descriptors,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended, and the parent learns that otherwise
        process.stdin.write(line)
        process.stdin.flush()
    return process


def take_standard_input() -> int:
    """Return a descriptor of the parent's pipe; the standard input of the process is empty."""
    life = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    return life
