"""`callboard net FILE`: a net's text as a program, from standard input to standard output."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from callboard.nets.errors import NetError
from callboard.nets.json_lines import read_json_lines, write_json_lines
from callboard.nets.language.parsing import parse
from callboard.nets.terms.network import Net
from callboard.system import ActorSystem


def main(arguments: list[str]) -> int:
    """Run a net until standard input ends. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="callboard net",
        description="Run a net in S-Net's text: records come from standard input, one a line as "
        "JSON, and go to standard output.",
    )
    parser.add_argument("file", type=Path, help="the text")
    parser.add_argument("--boxes", help="the module that has the functions of the boxes")
    parser.add_argument("--name", help="the net to run; by default the last one of the text")
    options = parser.parse_args(arguments)
    try:
        net = _net(options.file, options.boxes, options.name)
        with ActorSystem("net") as system, system.run(net) as run:
            write_json_lines(run.results(read_json_lines(sys.stdin)), sys.stdout)
    except (NetError, ImportError, OSError, UnicodeError) as error:
        print(f"callboard net: {error}", file=sys.stderr)
        return 1
    return 0


def _net(file: Path, module: str | None, name: str | None) -> Net:
    text = file.read_text(encoding="utf-8")
    sys.path.insert(0, "")  # a module of the working directory, as `callboard serve` finds it
    given = {} if module is None else vars(importlib.import_module(module))
    boxes = {word: value for word, value in given.items() if callable(value)}
    boxes |= {word: value for word, value in given.items() if isinstance(value, Net)}
    return parse(text, boxes, name=name)
