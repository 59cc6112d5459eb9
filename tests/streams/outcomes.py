"""The outcome of a run that may fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callboard import ActorSystem
from callboard.policies import Fixed
from callboard.streams import Graph, Run, StreamError, entry
from tests.streams.shapes import Chain

Way = Callable[[Graph[Any]], object]


def move_operators(run: Run[Any], turn: int) -> None:
    """Move all operators that are assigned, if there are any, to one worker after the other."""
    if run._work.deployment.assigned:
        run.rebalance(Fixed((turn + 1) % run._work.system.config.workers))


def outcome_of(chain: Chain, run: Way) -> tuple[list[Any], str]:
    """Run a chain from the entry "rows"; what came out of it, and the error that ended it."""
    seen: list[Any] = []
    try:
        run(chain.add_to(entry("rows")).to(seen.append, name="seen"))
    except StreamError as error:
        return seen, str(error)
    return seen, "no error"


def in_sequence(rows: list[Any], batch_size: int) -> Way:
    """Run on the calling thread."""
    return lambda graph: graph.run_sequentially({"rows": rows}, batch_size=batch_size)


def in_system(system: ActorSystem, rows: list[Any], options: dict[str, Any]) -> Way:
    """Run in an actor system."""

    def run(graph: Graph[Any]) -> None:
        with system:
            run = system.run(graph, **options)
            # One by one, so that some are sent after the failure.
            for turn, row in enumerate(rows):
                run.send("rows", [row])
                move_operators(run, turn)
            run.finish()

    return run
