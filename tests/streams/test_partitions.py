"""Keyed programs, divided: the same outputs as undivided, in whichever order partitions run."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import RowCounts, StreamError, entry
from callboard.streams.programs.program import Batch, DividedBatch, Program
from tests.streams.counting import rows_of_partitions
from tests.streams.functions import Functions
from tests.streams.kinds import Op
from tests.streams.random_graphs import STATEFUL, ops, rows
from tests.streams.shapes import plain

keyed = ops(STATEFUL).filter(lambda op: op.key is not None)


def program_of(op: Op, row_counts: RowCounts) -> Program:
    """Make the program of an operator."""
    operator = op.add_to(entry("rows"))._outlet.operator
    while operator.kind != op.kind:  # past the union with its side outputs
        operator = operator.inputs[0].operator
    program = operator.make("op")
    program.row_counts = row_counts
    return program


def batches_of(rows: list[Any], size: int, with_lineages: bool) -> list[Batch]:
    """Cut rows into rounds, and add the last, which is empty."""
    cuts = [*range(0, len(rows), size), len(rows)]
    batches = []
    for first in cuts:
        part = rows[first : first + size] if first < len(rows) else []
        lineages = [7 * i for i in range(len(part))] if with_lineages else None
        batches.append(Batch(part, first, first == len(rows), lineages, 7 * len(part)))
    return batches


def alone(program: Program, batches: list[Batch]) -> list[list[Batch]]:
    outputs = []
    for batch in batches:
        outputs.append([batch.follower() for _ in program.ports])
        program.process(batch, outputs[-1])
    return outputs


def by_sub_batches(program: Program, batches: list[Batch], seed: int) -> list[list[Batch]]:
    """Give partitions turns by chance; each does its sub-batches in order."""
    chance = random.Random(seed)
    divided = [program.divide(batch) for batch in batches]
    waiting: dict[int, list[tuple[DividedBatch, int]]] = {}
    for one in divided:
        for number, partition in enumerate(one.partitions):
            waiting.setdefault(partition, []).append((one, number))
    while waiting:
        partition = chance.choice(list(waiting))
        program.process_sub_batch(*waiting[partition].pop(0))
        if not waiting[partition]:
            del waiting[partition]
    outputs = []
    for batch, one in zip(batches, divided, strict=True):
        outputs.append([batch.follower() for _ in program.ports])
        program.gather(one, outputs[-1])
    return outputs


def said(outputs: list[list[Batch]]) -> list[Any]:
    return [[(plain(batch.rows), batch.lineages) for batch in into] for into in outputs]


@given(keyed, rows, st.integers(1, 20), st.booleans(), st.integers(0, 1000))
def test_sub_batches_in_any_order_give_what_the_program_gives_alone(
    op: Op, rows: list[Any], size: int, with_lineages: bool, seed: int
) -> None:
    counts_of_runs = RowCounts(), RowCounts()
    batches = batches_of(rows, size, with_lineages)
    expected = alone(program_of(op, counts_of_runs[0]), batches)
    assert said(by_sub_batches(program_of(op, counts_of_runs[1]), batches, seed)) == said(expected)
    assert counts_of_runs[0].skips == counts_of_runs[1].skips
    assert counts_of_runs[0].lates == counts_of_runs[1].lates


@given(st.lists(st.integers(0, 60), max_size=30), st.booleans(), st.integers(0, 1000))
def test_sub_batches_fail_where_it_fails_alone(rows: list[Any], key_fails: bool, seed: int) -> None:
    failing = Functions(2, 11)
    key = failing if key_fails else Functions(2)
    op = Op("scan", Functions() if key_fails else failing, key=key, partitions=3)
    batch = Batch(rows)
    into, gathered = [Batch([])], [Batch([])]
    error = sub_batches_error = None
    try:
        program_of(op, RowCounts()).process(batch, into)
    except StreamError as raised:
        error = raised
    try:
        program = program_of(op, RowCounts())
        divided = program.divide(batch)
        numbers = list(range(len(divided.partitions)))
        random.Random(seed).shuffle(numbers)
        for number in numbers:
            program.process_sub_batch(divided, number)
        program.gather(divided, gathered)
    except StreamError as raised:
        sub_batches_error = raised
    assert gathered[0].rows == into[0].rows
    assert str(sub_batches_error) == str(error)
    assert (error is None) == all(row % 11 for row in rows)


def partitions_of(keys: list[Any], partitions: int = 64) -> list[int]:
    """Find the partition of each key."""
    counts = entry("rows").key_by(lambda key: key, partitions=partitions).count()
    program = counts._outlet.operator.make("counts")
    return [program.divide(Batch([key])).partitions[0] for key in keys]


@pytest.mark.parametrize("step", [64, 128, 2**10, 2**40, -64, 64.0, 2.0**-20])
def test_keys_whose_hashes_are_aligned_are_in_many_partitions(step: Any) -> None:
    assert len(set(partitions_of([step * i for i in range(1, 641)]))) > 50


@given(st.integers(-(2**53), 2**53))
def test_equal_keys_of_different_types_are_in_one_partition(number: int) -> None:
    keys = [number, float(number), Fraction(number), Decimal(number), complex(number)]
    assert len(set(partitions_of(keys))) == 1
    for same in ([1, 1.0, True], [0, 0.0, -0.0, False]):
        assert len(set(partitions_of(same))) == 1


@pytest.mark.parametrize(("workers", "partitions"), [(2, 8), (3, 12), (20, 64)])
def test_a_run_has_four_partitions_for_each_worker(workers: int, partitions: int) -> None:
    rows = list(range(100))
    with ActorSystem(workers=workers) as system:
        for told, there in ((None, partitions), (5, 5), (200, 200)):
            keyed = entry("rows").key_by(lambda row: row % 90, partitions=told)
            counted = keyed.stateful(Numbered, name="count", releases_gil=True)
            run = system.run(counted.collect())
            run.send("rows", rows)
            assert run.finish() == [1] * 90 + [2] * 10
            assert len(rows_of_partitions(run)) == there
            assert sum(rows_of_partitions(run)) == 100


class Numbered:
    """Numbers the rows of a key."""

    def __init__(self) -> None:
        self.rows = 0

    def receive(self, row: int) -> list[int]:
        self.rows += 1
        return [self.rows]
