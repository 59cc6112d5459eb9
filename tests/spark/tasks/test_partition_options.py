"""Options of partition functions: checked when the function is made, and their effects."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import graphs
from callboard import Actor
from callboard.core.errors import ConfigError
from callboard.policies import RoundRobin
from callboard.spark import foreach_partition, map_partitions


@pytest.fixture(autouse=True)
def no_kept_graph() -> None:
    """Run another graph, so that none is kept from an earlier test."""
    foreach_partition(graphs.echo)([])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"in_flight": -1}, "in_flight must be a whole number of at least 1, got -1"),
        ({"workers": 1.5}, "workers must be .* got 1.5"),
        ({"drain_timeout": 0}, "drain_timeout must be a number of seconds above 0 .* got 0"),
        ({"flush": "no"}, "flush must be True or False, got 'no'"),
        ({"lifetime": "job"}, "lifetime must be one of task, process, got 'job'"),
        ({"entry": 3}, "entry expects an entry point's name or None, got 3"),
        ({"config": 3}, "config expects a dict or the path of a TOML file, got 3"),
        ({"config": "absent.toml"}, "'absent.toml' cannot be read: No such file"),
        ({"config": {"wokers": 2}}, "no setting 'wokers'"),
    ],
)
def test_a_wrong_option_is_refused_with_its_value(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        foreach_partition(graphs.echo, **options)


def test_a_configuration_is_read_when_the_function_is_made(tmp_path: Path) -> None:
    class Name(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return [self.system.name]

    file = tmp_path / "actors.toml"
    file.write_text('name = "of the driver"')
    told = map_partitions(lambda system, context: system.spawn(Name), config=file)
    file.unlink()  # as on a worker's machine, where it never was
    assert list(told([1])) == ["of the driver"]


class Mine(RoundRobin):
    """Knows nothing of what it is equal to."""


def test_a_policy_in_the_configuration_does_not_make_the_system_anew_for_each_task() -> None:
    count = map_partitions(graphs.tally, flush=True, config={"placement": Mine()})
    dumps: Any = cloudpickle.dumps
    shipped = [cloudpickle.loads(dumps(count)) for _ in range(2)]
    (first,), (second,) = (list(task([1])) for task in shipped)
    assert first[4] == second[4]


def test_a_build_is_a_function() -> None:
    with pytest.raises(ConfigError, match="'graph'"):
        foreach_partition("graph")  # type: ignore[arg-type]


def test_a_build_that_does_not_take_a_system_and_a_context_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"build\(system, context\), and .*lambda>\(system\)"):
        foreach_partition(lambda system: system.spawn(graphs.Echo))  # type: ignore[arg-type,misc]
    foreach_partition(partial(lambda actor, system, context: system.spawn(actor), graphs.Echo))([1])
