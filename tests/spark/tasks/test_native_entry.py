"""A native actor as the entry point of record batches; it needs a compiler, and no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from callboard import ActorRef, ActorSystem
from callboard.spark import PartitionContext, map_in_arrow, map_partitions
from callboard.spark.errors import PartitionFailed

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def batches() -> Iterator[Any]:
    """The native actors that the benchmark of Spark's costs uses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        import natives

        if missing := natives.missing():
            pytest.skip(missing)
        patch.syspath_prepend(str(natives.compile_actors("batches")))
        yield import_module("batches")


def pass_on(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(import_module("batches").PassOn, name="native")


def test_record_batches_go_through_a_native_actor_without_a_copy(batches: Any) -> None:
    sent = [pa.record_batch({"number": range(start, start + 10)}) for start in range(0, 100, 10)]
    back = list(map_in_arrow(pass_on)(sent))
    assert back == sent
    assert [one.column(0).buffers()[1].address for one in back] == [
        one.column(0).buffers()[1].address for one in sent
    ]


def test_a_native_actor_that_fails_is_readable_too(batches: Any) -> None:
    with pytest.raises(PartitionFailed, match=r"'/native' failed .*: not a record batch"):
        list(map_in_arrow(pass_on)([b"bytes"]))


def test_a_value_that_a_native_actor_cannot_take_is_shown(batches: Any) -> None:
    with pytest.raises(TypeError, match=r"got \[{'a': 1}\]"):
        list(map_partitions(pass_on)([{"a": 1}]))
