"""Programs that use channels, and must end by themselves."""

from __future__ import annotations

import subprocess
import sys
import textwrap

HEAD = """
import asyncio, gc, os, sys, threading, warnings
from callboard import ActorSystem, ForkedSystem
from callboard.channels import *
"""


def run(program: str) -> str:
    """Run a program to its end, and return its output."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", HEAD + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return done.stdout
