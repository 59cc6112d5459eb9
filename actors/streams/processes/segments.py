"""Segments: stateless operators in a row that worker processes run, and the processes of a system.

A segment's operators pass rows to each other in one process. Any process takes any round: so a
round whose process has ended is sent to another one.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from callboard._inside.answers.future import Future
from callboard.core.captured import culprit
from callboard.core.text import safe_str
from callboard.streams.errors import GraphError, ProcessLost
from callboard.streams.planning.pipelines import Pipeline
from callboard.streams.planning.plan import Plan, PlannedOperator
from callboard.streams.processes.pickling import dumps
from callboard.streams.processes.processes import WorkerProcesses, processes_of
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.in_processes import InProcesses, SegmentMember
from callboard.system import ActorSystem

# The rows of a round that cannot be pickled, with their places; and the places of the others, if
# the round does not end there.
Refused = tuple[list[tuple[int, Exception]], list[int] | None]
Request = tuple[bytes, Refused | None]

# Rounds that are sent to a process before it has answered the first of them.
_AHEAD = 3
# The arguments of programs that have the user's functions.
_CODE = "function", "functions", "make"


class Segment:
    """The operators of a segment, and the encoding of its rounds."""

    def __init__(self, processes: WorkerProcesses, operators: bytes) -> None:
        self._processes = processes
        self._code = processes.add(operators)

    def encode(
        self, rows: list[Any], lineages: list[int] | None, final: bool, fails: bool, /
    ) -> Request:
        """Encode a round.

        Returns the encoded round and None; or, if rows cannot be pickled, these with their places,
        and the places of the others. With `fails` the round ends before the first such row.
        """
        try:
            return dumps((rows, lineages, final)), None
        except Exception as error:
            refused = _refused(rows, error, fails)
        kept = [*range(len(rows))]
        if fails:
            kept = kept[: refused[0][0]]
        else:
            bad = {place for place, _ in refused}
            kept = [place for place in kept if place not in bad]
        left = None if lineages is None else [lineages[place] for place in kept]
        found: Refused = refused, (None if fails else kept)
        return dumps(([rows[place] for place in kept], left, final)), found

    def send(self, request: Request, /) -> Future[bytes]:
        """Send a round to a process."""
        return self._processes.send(self._code, request[0])

    def decode(self, answer: bytes, /) -> Sequence[Any]:
        """Decode what a process made of a round."""
        outcome: Sequence[Any] = pickle.loads(answer)
        return outcome

    def is_lost(self, error: BaseException | None, /) -> bool:
        """Return whether an exception says that the process ended with the round."""
        return isinstance(error, ProcessLost)

    def close(self) -> None:
        """Let the processes forget the segment."""
        self._processes.forget(self._code)


def _refused(rows: list[Any], error: Exception, only_first: bool) -> list[tuple[int, Exception]]:
    refused: list[tuple[int, Exception]] = []
    for place, row in enumerate(rows):
        try:
            dumps(row)
        except Exception as raised:
            raised.add_note("A row that a worker process receives must be picklable.")
            refused.append((place, raised))
            if only_first:
                break
    if not refused:
        raise error
    return refused


def segments_of(plan: Plan, pipelines: Sequence[Pipeline]) -> list[list[int]]:
    """Return the numbers of the operators of each segment, in the order of the graph."""
    edges = Counter(source for each in plan.operators for source in each.sources)
    dynamic = {number for each in pipelines if each.model == "dynamic" for number in each.operators}
    ends: dict[int | None, list[int]] = {}
    found: list[list[int]] = []
    for number, operator in enumerate(plan.operators):
        if operator.portable is None or number not in dynamic or operator.constraint.here:
            continue
        source, port = operator.sources[0]
        segment = ends.pop(source, None) if edges[source, port] == 1 else None
        if segment is None:
            segment = []
            found.append(segment)
        segment.append(number)
        if len(operator.portable.keywords["ports"]) == 1:
            ends[number] = segment
    return found


def placed_in_processes(
    system: ActorSystem, plan: Plan, pipelines: Sequence[Pipeline]
) -> tuple[Plan, list[int]]:
    """Return the plan whose programs send rounds to processes, and the numbers of these operators.

    Raises GraphError if an operator cannot be pickled.
    """
    segments = segments_of(plan, pipelines)
    if not segments:
        return plan, []
    operators = [*plan.operators]
    encoded = [_encoded([operators[number] for number in segment]) for segment in segments]
    processes = processes_of(system)
    for numbers, pickled in zip(segments, encoded, strict=True):
        made: list[SegmentMember] = []
        for number in numbers[:-1]:
            operators[number] = replace(
                operators[number], make=partial(_make_member, made, operators[number])
            )
        last = operators[numbers[-1]]
        make = partial(_make_last, made, last, Segment(processes, pickled), processes.count)
        operators[numbers[-1]] = replace(last, make=make)
    numbers = [number for segment in segments for number in segment]
    return replace(plan, operators=tuple(operators)), numbers


def _make_member(made: list[SegmentMember], operator: PlannedOperator) -> Program:
    assert operator.portable is not None
    member = SegmentMember(operator.name, errors=operator.portable.keywords["errors"])
    made.append(member)
    return member


def _make_last(
    made: list[SegmentMember], operator: PlannedOperator, segment: Segment, count: int
) -> Program:
    assert operator.portable is not None
    given = {name: operator.portable.keywords[name] for name in ("ports", "errors")}
    most = _AHEAD * count
    return InProcesses(operator.name, segment=segment, members=tuple(made), most=most, **given)


def _encoded(operators: Sequence[PlannedOperator]) -> bytes:
    """Encode operators for the processes. Raises GraphError, which names what cannot be pickled."""
    for operator in operators:
        portable = operator.portable
        assert portable is not None
        try:
            dumps(portable)
        except Exception as error:
            what = next(portable.keywords[name] for name in _CODE if name in portable.keywords)
            path, found, reason = culprit(operator.name, what, dumps, error)
            raise GraphError(
                f"operator {operator.name!r} cannot run in a worker process: "
                f"{path} ({type(found).__name__}) cannot be pickled: {safe_str(reason)}; make it "
                "inside the function or the class, or keep the operator in the program by here()"
            ) from error
    last = operators[-1].portable
    assert last is not None
    code = dumps([operator.portable for operator in operators])
    return dumps(([operator.name for operator in operators], len(last.keywords["ports"]), code))
