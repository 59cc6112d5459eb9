"""All players of worker processes return the outputs of a loop."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("bench_modules")

MODULES = {
    "ray_data": "ray.data",
    **{name: name for name in ("bytewax", "grain", "joblib", "mpire")},
}
POOLS = ("multiprocessing", "futures", "joblib", "mpire")


def check(by: str, n: int, **options: Any) -> None:
    import one

    if by in MODULES:
        pytest.importorskip(MODULES[by])
    options |= {"by": by, "processes": options.get("processes", 2)}
    result = one.play("processes.playing", "none", n, options)
    assert result.want == [n]
    assert result.got == result.want


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("by", ["loop", "callboard", *POOLS, "bytewax", "ray_data"])
def test_the_outputs_of_rows_are_those_of_a_loop(by: str, keyed: bool) -> None:
    check(by, 1_100, microseconds=5, keyed=keyed)


def test_the_outputs_of_grain_are_those_of_a_loop() -> None:
    check("grain", 5_000, microseconds=5)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("processes", [0, 2, "auto"])
def test_the_outputs_behind_those_of_the_first_seconds_are_those_of_a_loop(
    processes: int | str, keyed: bool
) -> None:
    import one

    options = {"processes": processes, "keyed": keyed, "seconds": 0.01, "microseconds": 0.2}
    result = one.play("processes.steady", "none", 100, options)
    assert result.want[0] >= 100
    assert result.got == result.want


@pytest.mark.parametrize("keyed", ["false", "true"])
def test_the_outputs_of_spark_are_those_of_a_loop(keyed: str) -> None:
    """In a process of its own: this one may have a session of other tests."""
    pytest.importorskip("pyspark")
    from players import Game

    game = Game("processes.playing", 300, 1, smoke=False)
    played = game.alone("Spark", "peer", by="spark", processes=2, microseconds=5, keyed=keyed).run()
    assert not played.error
    assert played.value is not None


@pytest.mark.parametrize(
    ("by", "value"),
    [
        *product(
            ["callboard", *POOLS], ["tuples", "dicts", "dataclasses", "texts", "arrays", "batches"]
        )
    ],
)
def test_values_return_from_a_process(by: str, value: str) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    check(by, 5, value=value)


def test_arrays_are_copied_to_and_fro() -> None:
    pytest.importorskip("numpy")
    check("copies", 3, value="arrays")


@pytest.mark.parametrize("processes", [0, 1])
def test_a_stream_runs_in_any_number_of_processes(processes: int) -> None:
    check("callboard", 700, keyed=True, processes=processes)


def test_a_process_that_was_spawned_finds_the_functions() -> None:
    from processes.work import calculation, divided, loop, tuples

    works = [calculation(10, 1, keyed=False), tuples(10)]
    keyed = calculation(10, 1, keyed=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for work in works:
            assert pool.map(work.function, work.rows) == [*loop(work, work.rows)]
        assert pool.apply(loop, (keyed, keyed.rows)) == loop(keyed, keyed.rows)
        assert pool.map(len, divided(keyed.rows, 3)) == [4, 3, 3]


def test_outputs_of_lists_are_merged_in_the_order_of_the_rows() -> None:
    from processes.work import divided, merged

    rows = [(7, 1), (2, 2), (4, 3), (7, 4), (2, 5), (9, 6)]
    lists = divided(rows, 3)
    assert lists == [[(9, 6)], [(7, 1), (4, 3), (7, 4)], [(2, 2), (2, 5)]]
    assert [*merged(rows, lists)] == rows


def test_outputs_in_another_order_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from processes import playing

    @contextmanager
    def by_reversed(*_: Any) -> Iterator[Callable[[list[Any]], Any]]:
        yield lambda rows: reversed(rows)

    monkeypatch.setitem(playing.BY, "reversed", by_reversed)
    result = playing.run(3, by="reversed", value="tuples")
    assert result.got == [3, ((2, 2), (0, 0))]
    assert result.got != result.want


@pytest.mark.parametrize("processes", [1, 2])
def test_a_stream_gets_all_answers_of_a_pool(processes: int) -> None:
    import one

    result = one.play("processes.asking", "none", 200, {"processes": processes})
    assert result.got == result.want


@pytest.mark.parametrize("by", ["callboard", "multiprocessing", "interpreters"])
def test_each_process_that_is_started_has_a_row(by: str) -> None:
    import one

    result = one.play("processes.starting", "none", 1, {"by": by, "processes": 2})
    assert (result.got, result.want) == (2, 2)


def test_each_target_can_be_measured() -> None:
    import judging
    from calling_suite import CALLING
    from competitor import Sample, Score
    from processes_suite import PROCESSES, targets

    made = [make(True) for make in (PROCESSES | CALLING).values()]
    results = {
        each.name: {player.name: Score([Sample(2.0, cpu=1.0)]) for player in each.competitors}
        for each in made
    }
    measured = {each.text: each.measured for each in judging.judge(results)}
    texts = [each.text for each in targets()]
    assert len({*texts}) == len(texts)
    assert {measured[text] for text in texts} == {0.0, 1.0, 2.0}
