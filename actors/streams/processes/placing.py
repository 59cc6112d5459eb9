"""Finds the segments of a plan, and places their operators in the worker processes of a system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from callboard.core.captured import culprit
from callboard.core.text import safe_str
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import itself
from callboard.streams.planning.pipelines import Pipeline
from callboard.streams.planning.plan import Plan, PlannedOperator
from callboard.streams.processes.choice import ChosenSegment
from callboard.streams.processes.segments import Segment, StatefulSegment, States
from callboard.streams.processes.work import KeyedWork, SegmentWork
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.in_processes import InProcesses, SegmentMember
from callboard.streams.programs.rows.keyed_in_processes import KeyedInProcesses
from callboard.system import ActorSystem
from callboard.worker_processes.pickling import dumps
from callboard.worker_processes.processes import WorkerProcesses, count_of, processes_of

# Rounds that are sent to a process before it has answered the first of them.
_AHEAD = 3
# The arguments of programs that have the user's functions.
_CODE = "function", "functions", "make"


def segments_of(plan: Plan, pipelines: Sequence[Pipeline]) -> list[list[int]]:
    """Return the numbers of the operators of each segment, in the order of the graph."""
    edges = Counter(source for each in plan.operators for source in each.sources)
    dynamic = {number for each in pipelines if each.model == "dynamic" for number in each.operators}
    ends: dict[int | None, list[int]] = {}
    found: list[list[int]] = []
    for number, operator in enumerate(plan.operators):
        if operator.portable is None or number not in dynamic or operator.constraint.here:
            continue
        if operator.has_state:
            found.append([number])
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
) -> tuple[Plan, dict[int, Segment | States]]:
    """Return the plan whose programs send rounds to processes, and the segments of these operators.

    Raises GraphError if an operator cannot be pickled; with "auto", such an operator stays here.
    """
    chooses = system.config.processes == "auto"
    count = count_of(system.config)
    operators = [*plan.operators]
    encoded = []  # before any process is started
    for numbers in segments_of(plan, pipelines) if count else ():
        members = [operators[number] for number in numbers]
        if chooses and members[0].has_state:
            continue
        try:
            encoded.append((numbers, members, _encoded(members, count)))
        except GraphError:
            if not chooses:
                raise
    found: dict[int, Segment | States] = {}
    for numbers, members, pickled in encoded:
        segment = _segment_of(processes_of(system), members, pickled, count, chooses)
        made: list[SegmentMember] = []
        for number, operator in zip(numbers, members, strict=True):
            make: Callable[[], Program]
            if operator is not members[-1]:
                make = partial(_make_member, made, operator)
            elif isinstance(segment, States):
                make = partial(_make_keyed, _keyed(operator, count), segment)
            else:
                most = _AHEAD * (1 if operator.has_state else count)
                make = partial(_make_last, made, operator, segment, most)
            operators[number] = replace(operator, make=make)
            found[number] = segment
    return replace(plan, operators=tuple(operators)), found


def _segment_of(
    processes: WorkerProcesses,
    operators: Sequence[PlannedOperator],
    pickled: bytes,
    count: int,
    chooses: bool,
) -> Segment | States:
    last = operators[-1]
    if last.is_keyed:
        keyed = _keyed(last, count)
        return States(processes, pickled, min(count, keyed.keywords["partitions"]))
    if last.has_state:
        return StatefulSegment(processes, pickled)
    if chooses:
        makers = [operator.portable for operator in operators if operator.portable is not None]
        return ChosenSegment(processes, pickled, makers, count)
    return Segment(processes, pickled)


def _make_member(made: list[SegmentMember], operator: PlannedOperator) -> Program:
    assert operator.portable is not None
    member = SegmentMember(operator.name, errors=operator.portable.keywords["errors"])
    made.append(member)
    return member


def _make_last(
    made: Sequence[SegmentMember], operator: PlannedOperator, segment: Segment, most: int
) -> Program:
    assert operator.portable is not None
    return InProcesses(
        operator.name,
        segment=segment,
        members=tuple(made),
        most=most,
        has_state=operator.has_state,
        chooses=segment.chooses,
        **_ends_of(operator.portable),
    )


def _make_keyed(keyed: partial[Program], states: States) -> Program:
    (name,) = keyed.args
    most = _AHEAD * states.count
    return KeyedInProcesses(name, keyed=keyed(), states=states, most=most, **_ends_of(keyed))


def _ends_of(program: partial[Program]) -> dict[str, Any]:
    names = "ports", "errors", "late_is_counted"
    return {name: program.keywords[name] for name in names if name in program.keywords}


def _keyed(operator: PlannedOperator, count: int) -> partial[Program]:
    """Return what makes the program of a keyed operator, with its final number of partitions."""
    portable = operator.portable
    assert portable is not None
    partitions = count if portable.keywords["fewer"] else portable.keywords["partitions"]
    return partial(portable, partitions=partitions, fewer=False)


def _without_key(keyed: partial[Program]) -> partial[Program]:
    """Return the same for a process, which gets rows with their keys and partitions."""
    partition: list[Any] | None = None if keyed.keywords["partition"] is None else []
    return partial(keyed, key=itself, partition=partition)


def _encoded(operators: Sequence[PlannedOperator], count: int) -> bytes:
    """Encode operators for the processes. Raises GraphError, which names what cannot be pickled."""
    made = []
    for operator in operators:
        portable = operator.portable
        assert portable is not None
        if operator.is_keyed:
            portable = _without_key(_keyed(operator, count))
        made.append(portable)
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
    names = [operator.name for operator in operators]
    ports = len(made[-1].keywords["ports"])
    work = KeyedWork if operators[-1].is_keyed else SegmentWork
    return dumps(partial(work, names, ports, dumps(made)))
