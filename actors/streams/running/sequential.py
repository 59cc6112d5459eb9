"""A run on the calling thread, row by row: the reference for all other runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import copy_context
from typing import Any

from callboard.core.text import safe_repr
from callboard.rows.batches import Batches, is_table
from callboard.streams.checks import check_entry
from callboard.streams.errors import GraphError, StreamError
from callboard.streams.planning.plan import Plan, close, collected_by, result_of, start
from callboard.streams.programs.program import Batch, Program
from callboard.streams.running.row_counts import RowCounts

Pair = tuple[str, Iterable[Any]]


def pairs(
    inputs: Mapping[str, Iterable[Any]] | Iterable[Pair], entries: tuple[str, ...]
) -> Iterable[Pair]:
    """Check, as far as they are there, the inputs of a run: pairs of an entry and rows for it."""
    if isinstance(inputs, Mapping):
        for name in inputs:
            check_entry(name, entries)
        return inputs.items()
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable) or is_table(inputs):
        raise GraphError(f"inputs must be rows by their entries, got {safe_repr(inputs)}")
    return inputs


def run(plan: Plan, inputs: Iterable[Pair], batch_size: int, row_counts: RowCounts) -> Any:
    """Run a graph, and return its result."""
    context = copy_context()  # so that variables which functions set stay here
    programs = context.run(plan.make_programs, row_counts)
    try:
        rounds = _Rounds(plan, programs)
        for pair in inputs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise GraphError(
                    f"inputs must be pairs of an entry and rows, got {safe_repr(pair)}"
                )
            name, rows = pair
            check_entry(name, plan.entries)
            for batch in Batches("run_sequentially()", rows, batch_size):
                context.run(rounds.send, plan.entries.index(name), batch)
        context.run(rounds.send, None, [])
    finally:
        close(programs)
    return result_of(collected_by(programs))


class _Rounds:
    def __init__(self, plan: Plan, programs: list[Program]) -> None:
        self.operators = [*zip(plan.operators, programs, strict=True)]
        self.started = False
        self.passed_entries = [0] * len(plan.entries)
        self.passed = [[0] * len(program.ports) for program in programs]

    def send(self, entry: int | None, rows: list[Any]) -> None:
        """Take a batch for an entry through the graph; or, for None, the end of the stream."""
        if not self.started:
            start(program for _, program in self.operators)
            self.started = True
        final = entry is None
        entries = [Batch([], final=final) for _ in self.passed_entries]
        if entry is not None:
            entries[entry].rows = rows
        _count(entries, self.passed_entries)
        outputs: list[list[Batch]] = []
        error: StreamError | None = None
        for (operator, program), passed in zip(self.operators, self.passed, strict=True):
            batches = [entries[p] if n is None else outputs[n][p] for n, p in operator.sources]
            into = [batches[0].follower() for _ in passed]
            try:
                program.process_many(batches, into)
            except StreamError as raised:
                error = raised
                for batch in into:  # the stream goes on up to the failure, but not to its end
                    batch.final = False
            _count(into, passed)
            outputs.append(into)
        if error is not None:
            raise error


def _count(batches: list[Batch], passed: list[int]) -> None:
    """Give batches the number of their first row, at each place that they pass."""
    for place, batch in enumerate(batches):
        batch.first = passed[place]
        passed[place] += len(batch)
