"""Builds the stages, pools and lanes of a run, by the threading models of the plan's pipelines.

    dynamic     all such stages in one pool, with a lane for each worker; native operators that need
                no order, one behind the other, are one stage, unless a heuristic is to choose
    manual      a thread's operators fused into a stage; a pool with a lane for each thread but the
                caller's, who works on its stage when it has admitted a round
    dedicated   a stage and a pool for each operator; its lane has a dedicated thread
    assigned    the same; its lane lives on a worker, as other actors do, and can move

With one lane, an operator is one stage that is not divided, with a ring for each input, which has
one producer and one consumer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import ReferenceType, ref

from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.core.errors import ConfigError
from callboard.core.threads.interpreter import has_gil
from callboard.scheduling.flow.threading_models import Model
from callboard.scheduling.placement import Fixed, PlacementPolicy
from callboard.scheduling.team import Team
from callboard.scheduling.worker import WorkerThread
from callboard.streams.native import NativeProgram
from callboard.streams.planning.pipelines import Pipeline
from callboard.streams.planning.plan import Plan
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.answers import Answers
from callboard.streams.running.call_lock import worker_here
from callboard.streams.running.flow import GraphFlow, NativeLane
from callboard.streams.running.graph_builder import LONGEST_CHAIN, GraphBuilder
from callboard.streams.running.inspection import record_slices
from callboard.streams.running.options import RunSettings
from callboard.system import ActorSystem
from callboard.timers import Timer


class PythonLane(Actor[object]):
    """A lane that holds the interpreter. Any message makes it look for work."""

    _instead_of_waiting = (
        "in a function of a stream use stream.ask(ref, in_flight=n), or stream.map(function, "
        "in_flight=n) with an async function; or give the operator a thread, by "
        "stream.run_on('dedicated')"
    )

    def __init__(self, flow: ReferenceType[GraphFlow], number: int, team: Team) -> None:
        self.flow = flow()
        self.number = number
        self.team = team
        self.alarm: Timer | None = None  # the latest
        self.rests = False  # until the alarm, while rows wait

    def receive(self, message: object) -> None:
        """Work until there is nothing to do, or a turn is over."""
        if self.flow is None:
            return
        seconds = self.flow.run_lane(self.number)
        self._note_rest(bool(seconds))
        if seconds == 0:
            self.ref.tell(None)  # other actors of this worker first
        elif seconds is not None:
            if self.alarm is not None:  # a round woke the lane before it
                self.alarm.cancel()
            self.alarm = self.after(seconds, None)

    def on_stop(self) -> None:
        """Let the team be idle."""
        self._note_rest(False)

    def _note_rest(self, rests: bool) -> None:
        """Keep the team from counting as idle while rows wait: a timer alone does not."""
        if rests != self.rests:
            self.rests = rests
            self.team.add_waiting(1 if rests else -1)


class Lanes(list[ActorRef[Any]]):
    """The lanes of a flow, in the order of their numbers.

    A flow keeps its lanes' refs, and a ref keeps what its actor was made with, even when that has
    ended. So that is a weak reference: the lanes keep the flow while they live, the refs do not.
    """

    def __init__(self, system: ActorSystem, flow: GraphFlow) -> None:
        self._system = system
        self._flow = flow

    def add(
        self,
        pool: int,
        works_on: str,
        *,
        keeps_interpreter: bool = True,
        worker: int = 0,
        **options: Any,
    ) -> ActorRef[Any]:
        """Give a pool a lane that works on "native", "python" or "all" stages.

        `options` are those of a spawn, and say where it lives; so does `worker`, where lanes follow
        the level of workers.
        """
        made: tuple[Any, ...] = (NativeLane, ref(self._flow), len(self))
        if works_on != "native":
            made = (PythonLane, *made[1:], self._system._runtime.team)
        lane = self._system.spawn(*made, **options)
        self.append(lane)
        self._system.dead_letters.expect_wake_ups(lane)  # it may end with one in its mailbox
        self._flow.add_lane(lane, works_on, pool, keeps_interpreter, worker)
        return lane

    def stop(self) -> None:
        """Stop all lanes."""
        for lane in self:
            lane.stop()


_DYNAMIC = 0  # the pool that a flow begins with
_MANUAL_LANES = 3  # that take turns in a manual system
_MOST_LANES = 64  # of a pool: a bit of a word for each; the workers beyond have none


@dataclass(frozen=True)
class OperatorPlace:
    """The place of an operator: its model, and a thread, or a lane that lives on a worker."""

    model: Model
    thread: str = ""
    lane: ActorRef[Any] | None = None
    segment: Any = None
    """That of an operator that may run in worker processes: it has `where` and `reason`."""
    stays: str = ""
    """Why it runs in no worker process, if the system has some."""

    @property
    def reason(self) -> str:
        """The reason for the place, if the system has worker processes."""
        return self.stays if self.segment is None else str(self.segment.reason)

    @property
    def where(self) -> str:
        """Name the thread; of `dynamic`, where any may be, it has no name."""
        if self.segment is not None:
            return str(self.segment.where)
        if self.lane is None:
            return self.thread
        worker = self.lane.worker
        return "" if worker is None else worker.name


@dataclass
class Deployment:
    """The lanes of a run, and the stages that they work on."""

    lanes: Lanes
    places: list[OperatorPlace]
    """The place of each operator."""
    has_caller: bool = False
    """Some operators are run by the thread that sends."""
    released: bool = False
    """Some operators need no interpreter lock."""
    is_dynamic: bool = False
    workers: Sequence[WorkerThread] = ()
    assigned: list[tuple[int, ActorRef[Any], bool]] = field(default_factory=list)
    """(pool, lane, whether it follows the token) of each assigned operator."""

    def note_processes(self, segments: Mapping[int, Any], reasons: Mapping[int, str]) -> None:
        """Note which operators may run in worker processes, and why others stay here."""
        for number, segment in segments.items():
            self.places[number] = OperatorPlace("dynamic", segment=segment)
        for number, reason in reasons.items():
            self.places[number] = replace(self.places[number], stays=reason)

    def shared_pools(self) -> list[int]:
        """List the pools whose operators share the workers."""
        pools = [_DYNAMIC] if self.is_dynamic else []
        return pools + [pool for pool, _, _ in self.assigned]

    def pools_here(self) -> list[int]:
        """List the pools that the calling thread, a worker's that waits, may work on.

        All of the dynamic one; of assigned operators those that live here. Python operators that
        follow the interpreter's token live on any worker that has it.
        """
        here = worker_here()
        pools = [_DYNAMIC] if self.is_dynamic else []
        return pools + [
            pool
            for pool, lane, follows in self.assigned
            if lane.worker is here or (follows and here in self.workers)
        ]


def deploy(
    system: ActorSystem,
    flow: GraphFlow,
    plan: Plan,
    programs: Sequence[Program],
    settings: RunSettings,
    *,
    chains: bool,
) -> Deployment:
    """Make a flow of programs, one for each operator of the plan, and give it its lanes.

    With `chains`, neighbours may be one stage.
    """
    builder = _Builder(system, flow, plan, programs)
    pipelines = builder.chained(settings.pipelines) if chains else settings.pipelines
    return builder.build(pipelines, settings.placement)


def lane_of(pipeline: Pipeline) -> object:
    """Return the owner of a pipeline's only lane: a thread, or the pipeline.

    None: all lanes of the pool work on it, or the caller does.
    """
    if pipeline.model == "dynamic":
        return None
    return (pipeline.thread or None) if pipeline.model == "manual" else pipeline


class _Builder:
    def __init__(
        self, system: ActorSystem, flow: GraphFlow, plan: Plan, programs: Sequence[Program]
    ) -> None:
        self.system = system
        self.flow = flow
        self.stages = GraphBuilder(flow)
        self.programs = programs
        self.sources = [operator.sources for operator in plan.operators]
        self.max_workers = [operator.max_workers for operator in plan.operators]
        manual = system._runtime.manual
        self.workers = _MANUAL_LANES if manual else system.config.workers
        self.locked = has_gil() and not manual
        self.deployment = Deployment(
            Lanes(system, flow),
            [OperatorPlace("dynamic")] * len(programs),
            workers=system._runtime.team.workers,
        )

    def build(self, pipelines: Sequence[Pipeline], placement: PlacementPolicy) -> Deployment:
        deployment = self.deployment
        of_lanes: dict[object, list[Pipeline]] = {}
        for pipeline in pipelines:
            of_lanes.setdefault(lane_of(pipeline), []).append(pipeline)
        pools: dict[object, int] = {}  # of the same lanes
        for pipeline in pipelines:
            deployment.released |= any(map(self.is_free, pipeline.operators))
            if pipeline.model == "dynamic":
                deployment.is_dynamic = True
                self.add_dynamic(pipeline)
            elif (lane := lane_of(pipeline)) is None:
                deployment.has_caller = True
                self.stages.add_called(self.members(pipeline), not self.is_mixed([pipeline]))
                self.settle([pipeline], OperatorPlace("manual", "the caller"))
            else:
                if lane not in pools:
                    pools[lane] = self.flow.add_pool(latest=True)
                # The program runs on the lane's kind: on another kind it would wait for ever.
                self.add_undivided(pipeline, self.runs_on(of_lanes[lane]), pools[lane])
        self.stages.connect()
        if (records := self.system._runtime.records) is not None:
            records.note_operators(partial(record_slices, self.flow))
        try:
            if deployment.is_dynamic:
                self.add_dynamic_lanes(pipelines)
            for lane, pool in pools.items():
                self.add_lane(pool, of_lanes[lane], placement)
            if not deployment.lanes:  # by one the system knows the run: dead letters name it
                deployment.lanes.add(_DYNAMIC, "python")
        except BaseException:
            deployment.lanes.stop()
            raise
        return deployment

    # --- stages ----------------------------------------------------------------------------------

    def chained(self, pipelines: Sequence[Pipeline]) -> list[Pipeline]:
        """Join dynamic pipelines whose operators can be a chain: see scheduling/flow/chain.hpp."""
        edges = Counter(source for sources in self.sources for source, _ in sources)
        joined: list[Pipeline] = []
        place: dict[int | None, int] = {}  # of the pipeline that ends with an operator, among these
        for pipeline in pipelines:
            if pipeline.model == "dynamic" and self.may_chain(pipeline.operators[0]):
                (number,) = pipeline.operators
                before = self.sources[number][0][0]
                at = place.pop(before, None) if edges[before] == 1 else None
                if at is not None and len(joined[at].operators) < LONGEST_CHAIN:
                    joined[at] = Pipeline("dynamic", (*joined[at].operators, number))
                    place[number] = at
                    continue
                place[number] = len(joined)
            joined.append(pipeline)
        return joined

    def may_chain(self, number: int) -> bool:
        program = self.programs[number]
        is_limited = self.max_workers[number] is not None
        return isinstance(program, NativeProgram) and program.needs_no_order and not is_limited

    def is_free(self, number: int) -> bool:
        """Return whether an operator runs without an interpreter lock."""
        return self.programs[number].releases_gil or not self.locked

    def runs_on(self, pipelines: Sequence[Pipeline]) -> str:
        if not self.locked:
            return "all"
        free = all(self.is_free(number) for pipeline in pipelines for number in pipeline.operators)
        return "native" if free else "python"

    def is_mixed(self, pipelines: Sequence[Pipeline]) -> bool:
        """Return whether workers should release the interpreter for some of these pipelines."""
        programs = [
            self.programs[number] for pipeline in pipelines for number in pipeline.operators
        ]
        return any(isinstance(program, NativeProgram) for program in programs)

    def members(self, pipeline: Pipeline) -> list[tuple[int, Program, Any]]:
        for number in pipeline.operators:
            if self.system._runtime.manual and isinstance(self.programs[number], Answers):
                raise ConfigError(
                    f"{self.programs[number].name!r} waits for answers, and a thread of a manual "
                    "system cannot: its threading is 'assigned' there, not 'manual'"
                )
        return [
            (number, self.programs[number], self.sources[number]) for number in pipeline.operators
        ]

    def add_dynamic(self, pipeline: Pipeline) -> None:
        if len(pipeline.operators) > 1:
            members, runs_on = self.members(pipeline), self.runs_on([pipeline])
            self.stages.add_chain(members, runs_on, self.workers, _DYNAMIC)
            return
        (number,) = pipeline.operators
        program = self.programs[number]
        free = self.is_free(number)
        lanes = min(self.workers, self.max_workers[number] or self.workers) if free else 1
        by_parts = (
            program.kind == "partitioned"
            and free
            and (lanes > 1 or isinstance(program, NativeProgram))
        )
        partitions = program.divided_among(lanes) if by_parts else 0
        sources = self.sources[number]
        self.stages.add(
            number, program, sources, self.runs_on([pipeline]), partitions, lanes, _DYNAMIC
        )

    def add_undivided(self, pipeline: Pipeline, runs_on: str, pool: int) -> None:
        waits = any(isinstance(self.programs[number], Answers) for number in pipeline.operators)
        if pipeline.model == "manual" or (len(pipeline.operators) > 1 and not waits):
            self.stages.add_fused(self.members(pipeline), runs_on, pool)
            return
        for number in pipeline.operators:  # a stage for each, as no lane waits for answers
            program, sources = self.programs[number], self.sources[number]
            self.stages.add(number, program, sources, runs_on, 0, 1, pool)

    # --- lanes -----------------------------------------------------------------------------------

    def add_dynamic_lanes(self, pipelines: Sequence[Pipeline]) -> None:
        """Give each worker a lane; with an interpreter lock, one lane works on what needs that."""
        free = any(self.is_free(one.operators[0]) for one in pipelines if one.model == "dynamic")
        python = 1 if self.locked else self.workers
        native = self.workers if self.locked and free else 0
        kind = "python" if self.locked else "all"
        lanes = [(kind, at) for at in range(python)] + [("native", at) for at in range(native)]
        for works_on, at in lanes[:_MOST_LANES]:
            placement = Fixed(at % self.system.config.workers)
            self.deployment.lanes.add(_DYNAMIC, works_on, placement=placement, worker=at)
        self.system._runtime.team.follow_level(self.flow)

    def add_lane(
        self, pool: int, pipelines: Sequence[Pipeline], placement: PlacementPolicy
    ) -> None:
        """Give a pool its one lane."""
        deployment = self.deployment
        works_on = self.runs_on(pipelines)
        keeps = not self.is_mixed(pipelines)
        if pipelines[0].model == "assigned":
            lane = deployment.lanes.add(
                pool, works_on, keeps_interpreter=keeps, placement=placement
            )
            follows = works_on == "python" and self.workers > 1
            deployment.assigned.append((pool, lane, follows))
            self.settle(pipelines, OperatorPlace("assigned", lane=lane))
        else:
            lane = deployment.lanes.add(pool, works_on, keeps_interpreter=keeps, dedicated=True)
            worker = lane.worker
            self.settle(
                pipelines, OperatorPlace(pipelines[0].model, "" if worker is None else worker.name)
            )

    def settle(self, pipelines: Sequence[Pipeline], place: OperatorPlace) -> None:
        for pipeline in pipelines:
            for number in pipeline.operators:
                self.deployment.places[number] = place
