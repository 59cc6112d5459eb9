"""A run on the rivals gives what it gives on the paper's structures."""

from __future__ import annotations

import pytest

from callboard import ActorSystem
from callboard.core.errors import ConfigError
from callboard.streams import entry
from callboard.testing import ManualSystem

GRAPH = (
    entry("n").map(lambda n: n * 7 % 100).key_by(lambda n: n % 10, partitions=8).count().collect()
)
ROWS = list(range(500))


@pytest.mark.parametrize("ordered_by", ["", "locked"])
@pytest.mark.parametrize("divided_by", ["", "partitioned", "shared"])
def test_outputs_are_the_same_on_every_structure(ordered_by: str, divided_by: str) -> None:
    with ManualSystem(seed=5) as system:
        run = system.run(GRAPH, batch_size=3, rivals=f"{ordered_by} {divided_by}")
        run.send("n", ROWS)
        assert run.finish() == GRAPH.run_sequentially({"n": ROWS})


def test_an_unknown_structure_is_refused() -> None:
    with ActorSystem() as system, pytest.raises(ConfigError, match=r"rivals is one of .*'fast'"):
        system.run(GRAPH, rivals="locked fast")
