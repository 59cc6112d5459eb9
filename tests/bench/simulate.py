"""Simulate the stream scheduler on more cores than exist (docs/design/simulator.md).

python tests/bench/simulate.py measure                   this machine's parameters, into a file
python tests/bench/simulate.py predict OPTION=VALUE ...  one graph (simulator/shapes.hpp)
python tests/bench/simulate.py validate                  predictions beside the real runtime
python tests/bench/simulate.py validate --rounds 0 --workers 1 2 4 8 16 --cores 16   alone
python tests/bench/simulate.py threads --into FILE       figures 8 and 9: 1 to 184 threads
python tests/bench/simulate.py check                     laws that hold on any machine
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from simulator import figures, laws, machine, validation
from simulator.programs import Kept, simulated

WHAT = ("measure", "predict", "validate", "threads", "check")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("options", nargs="*", metavar="OPTION=VALUE", help="of the graph")
    parser.add_argument("--machine", type=Path, default=machine.MEASURED, help="its parameters")
    parser.add_argument("--rounds", type=int, default=5, help="of `validate`")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="of `validate`")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="of `validate`")
    parser.add_argument("--into", type=Path, default=Path("simulated.jsonl"), metavar="FILE",
                        help="keeps the results of `threads`")  # fmt: skip
    options = parser.parse_args(arguments)
    for word in options.options:
        if "=" not in word:
            parser.error(f"not OPTION=VALUE: {word}")
    return options


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    if options.what == "measure":
        machine.save(machine.measure(), options.machine)
        return
    here = machine.load(options.machine)
    given = dict(word.split("=", 1) for word in options.options)
    if options.what == "validate":
        validation.validate(here, options.rounds, options.workers, options.cores)
    elif options.what == "threads":
        figures.threads(Kept(here, options.into))
    elif options.what == "check":
        laws.check()
    else:
        print(json.dumps(simulated(here, **given)))


if __name__ == "__main__":
    main(sys.argv[1:])
