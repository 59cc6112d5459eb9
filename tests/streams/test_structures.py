"""A run on the baselines gives what it gives on the paper's structures."""

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


@pytest.mark.parametrize("reordering", ["non_blocking", "locked"])
@pytest.mark.parametrize("partitioning", ["hybrid", "partitioned", "shared"])
def test_outputs_are_the_same_on_every_structure(reordering: str, partitioning: str) -> None:
    with ManualSystem(seed=5) as system:
        run = system.run(GRAPH, batch_size=3, reordering=reordering, partitioning=partitioning)
        run.send("n", ROWS)
        assert run.finish() == GRAPH.run_sequentially({"n": ROWS})


@pytest.mark.parametrize("option", ["reordering", "partitioning"])
def test_an_unknown_structure_is_refused(option: str) -> None:
    with ActorSystem() as system, pytest.raises(ConfigError, match=f"{option} is one of .*'fast'"):
        system.run(GRAPH, **{option: "fast"})
