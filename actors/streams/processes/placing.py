"""Finds the segments of a plan, and places their operators in the worker processes of a system."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from callboard.core.captured import culprit
from callboard.core.text import safe_str
from callboard.core.threads.interpreter import has_gil
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import itself
from callboard.streams.planning.pipelines import Pipeline
from callboard.streams.planning.plan import Plan, PlannedOperator
from callboard.streams.processes.choice import ChosenSegment
from callboard.streams.processes.chosen_states import ChosenStates
from callboard.streams.processes.segments import Segment, ShuffledStates, StatefulSegment, States
from callboard.streams.processes.work import KeyedWork, LaneWork, SegmentWork, ShufflingWork
from callboard.streams.programs.joins.lanes_in_processes import LanesInProcesses, ProcessLane
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.chosen_state import ChosenState
from callboard.streams.programs.rows.in_processes import InProcesses, ProcessAnswers, SegmentMember
from callboard.streams.programs.rows.keyed_in_processes import KeyedInProcesses, given_key
from callboard.system import ActorSystem
from callboard.worker_processes.pickling import dumps
from callboard.worker_processes.processes import WorkerProcesses, count_of, processes_of

AnySegment = Segment | States | ChosenStates

# Rounds that are sent to a process before it has answered the first of them.
_AHEAD = 3
# The seed of the hashes by which keys are divided: an attacker must not know it.
_SEED = secrets.randbits(64)

# Operators for the processes: those with a state or without; before these, the operators that any
# process runs for them, and which divide the rounds.
Encoded = tuple[bytes] | tuple[bytes, bytes]

# The arguments of programs that have the user's functions.
_CODE = "function", "functions", "make", "index"


def segments_of(
    plan: Plan, pipelines: Sequence[Pipeline], shuffles: bool = False
) -> list[list[int]]:
    """Return the numbers of the operators of each segment, in the order of the graph.

    If it `shuffles`, a keyed operator behind stateless ones is the last one of their segment.
    """
    edges = Counter(source for each in plan.operators for source in each.sources)
    dynamic = {number for each in pipelines if each.model == "dynamic" for number in each.operators}
    ends: dict[int | None, list[int]] = {}
    found: list[list[int]] = []
    for number, operator in enumerate(plan.operators):
        if operator.portable is None or number not in dynamic or operator.constraint.here:
            continue
        source, port = operator.sources[0]
        segment = None
        if edges[source, port] == 1 and (
            not operator.has_state or _can_shuffle(operator, shuffles)
        ):
            segment = ends.pop(source, None)
        if segment is None:
            segment = []
            found.append(segment)
        segment.append(number)
        if not operator.has_state and len(operator.portable.keywords["ports"]) == 1:
            ends[number] = segment
    return found


def placed_in_processes(
    system: ActorSystem, plan: Plan, pipelines: Sequence[Pipeline]
) -> tuple[Plan, dict[int, AnySegment], dict[int, str]]:
    """Return the plan whose programs send rounds to processes, and the segments of these operators.

    The last are the reasons why other operators stay in the program.

    Raises GraphError if an operator cannot be pickled; with "auto", such an operator stays here.
    """
    chooses = system.config.processes == "auto"
    count = count_of(system.config)
    reasons = _reasons_to_stay(plan, pipelines, count)
    operators = [*plan.operators]
    encoded: list[tuple[list[int], list[PlannedOperator], Encoded]] = []  # before a process starts
    for numbers in segments_of(plan, pipelines, not chooses) if count else ():
        members = [operators[number] for number in numbers]
        if chooses and _is_lanes(members[-1]):
            reasons[numbers[-1]] = 'with "auto", joins stay in the program'
            continue
        try:
            encoded.append((numbers, members, _encoded(members, count)))
        except GraphError as error:
            if not chooses:
                raise
            for number in numbers:
                reasons[number] = f"its function cannot be pickled: {safe_str(error.__cause__)}"
    found: dict[int, AnySegment] = {}
    for numbers, members, pickled in encoded:
        segment = _segment_of(processes_of(system), members, pickled, count, chooses)
        made: list[SegmentMember] = []
        for number, operator in zip(numbers, members, strict=True):
            make: Callable[[], Program]
            if operator is not members[-1]:
                make = partial(_make_member, made, operator)
            elif isinstance(segment, ChosenStates):
                make = partial(_make_chosen, operator, segment, count)
            elif isinstance(segment, States):
                if _is_lanes(operator):
                    make = partial(_make_lanes, operator, segment)
                else:
                    most = _AHEAD * (segment.count if len(members) == 1 else count)
                    make = partial(_make_keyed, made, _keyed(operator, count), segment, most)
            else:
                most = _AHEAD * (1 if operator.has_state else count)
                make = partial(_make_last, made, operator, segment, most)
            operators[number] = replace(operator, make=make)
            found[number] = segment
    return replace(plan, operators=tuple(operators)), found, reasons


def _reasons_to_stay(plan: Plan, pipelines: Sequence[Pipeline], count: int) -> dict[int, str]:
    """Say why operators stay in the program, whatever their functions are."""
    models = {number: each.model for each in pipelines for number in each.operators}
    reasons = {}
    for number, operator in enumerate(plan.operators):
        if operator.portable is None:
            reasons[number] = operator.stays
        elif operator.constraint.here:
            reasons[number] = "here()"
        elif (model := models[number]) != "dynamic":
            reasons[number] = f"its threading model is {model!r}"
        elif not count:
            reasons[number] = (
                "there is one usable core" if has_gil() else "threads run Python side by side"
            )
    return reasons


def _segment_of(
    processes: WorkerProcesses,
    operators: Sequence[PlannedOperator],
    encoded: Encoded,
    count: int,
    chooses: bool,
) -> AnySegment:
    last = operators[-1]
    *dividing, pickled = encoded
    if _is_lanes(last):
        return States(processes, pickled, count)
    if dividing:
        return ShuffledStates(processes, dividing[0], pickled, _owners(last, count))
    if last.has_state:
        states: Callable[[], States | StatefulSegment]
        states, among = partial(StatefulSegment, processes, pickled), 1
        if last.is_keyed:
            among = _owners(last, count)
            states = partial(States, processes, pickled, among)
        return ChosenStates(states, among, count) if chooses else states()
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
    made: Sequence[SegmentMember],
    operator: PlannedOperator,
    segment: Segment | ChosenStates,
    most: int,
) -> InProcesses:
    assert operator.portable is not None
    return InProcesses(
        operator.name,
        segment=segment,
        members=tuple(made),
        most=most,
        has_state=operator.has_state,
        chooses=isinstance(segment, ChosenSegment),
        **_ends_of(operator.portable),
    )


def _make_keyed(
    made: Sequence[SegmentMember],
    keyed: partial[Program],
    states: States | ChosenStates,
    most: int,
) -> KeyedInProcesses:
    (name,) = keyed.args
    program = keyed(key=given_key) if made else keyed()
    return KeyedInProcesses(
        name, keyed=program, states=states, members=tuple(made), most=most, **_ends_of(keyed)
    )


def _is_lanes(operator: PlannedOperator) -> bool:
    return operator.portable is not None and operator.portable.func is ProcessLane


def _make_lanes(operator: PlannedOperator, states: States) -> Program:
    assert operator.portable is not None
    (rule,) = operator.portable.keywords["index"].args
    most = _AHEAD * states.count
    return LanesInProcesses(operator.name, rule=rule, states=states, most=most)


def _make_chosen(operator: PlannedOperator, states: ChosenStates, count: int) -> Program:
    local = operator.portable
    assert local is not None
    most = _AHEAD * states.count
    away: ProcessAnswers
    if operator.is_keyed:
        away = _make_keyed((), _keyed(operator, count), states, most)
    else:
        away = _make_last((), operator, states, most)
    ends = _ends_of(local)
    return ChosenState(operator.name, make=local, away=away, segment=states, most=most, **ends)


def _ends_of(program: partial[Program]) -> dict[str, Any]:
    names = "ports", "errors", "late_is_counted"
    return {name: program.keywords[name] for name in names if name in program.keywords}


def _keyed(operator: PlannedOperator, count: int) -> partial[Program]:
    """Return what makes the program of a keyed operator, with its final number of partitions."""
    portable = operator.portable
    assert portable is not None
    partitions = count if portable.keywords["fewer"] else portable.keywords["partitions"]
    return partial(portable, partitions=partitions, fewer=False, hash_seed=_SEED)


def _owners(operator: PlannedOperator, count: int) -> int:
    """Return the number of processes that have states of a keyed operator."""
    return int(min(count, _keyed(operator, count).keywords["partitions"]))


def _can_shuffle(operator: PlannedOperator, shuffles: bool) -> bool:
    """Return whether the key of an operator can be computed where its rows are."""
    if not (shuffles and operator.is_keyed):
        return False
    assert operator.portable is not None
    try:
        dumps([operator.portable.keywords[name] for name in ("key", "partition")])
    except Exception:  # the program has it
        return False
    return True


def _without_key(keyed: partial[Program]) -> partial[Program]:
    """Return the same for a process, which gets rows with their keys and partitions."""
    partition: list[Any] | None = None if keyed.keywords["partition"] is None else []
    return partial(keyed, key=itself, partition=partition)


def _encoded(operators: Sequence[PlannedOperator], count: int) -> Encoded:
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
    last = operators[-1]
    if not last.is_keyed:
        work = LaneWork if _is_lanes(last) else SegmentWork
        return (dumps(partial(work, names, len(made[-1].keywords["ports"]), dumps(made))),)
    states = dumps(partial(KeyedWork, names[-1], len(made) == 1, dumps(made[-1:])))
    if len(made) == 1:
        return (states,)
    made[-1] = _keyed(last, count)
    return dumps(partial(ShufflingWork, names, _owners(last, count), dumps(made))), states
