"""Builds the stages, pools and lanes of a run, by the threading models of the plan's parts.

    dynamic     all such stages in one pool, with a lane for each worker; native operators that need
                no order, one behind the other, are one stage, unless a heuristic is to choose
    manual      a thread's steps fused into a stage; a pool with a lane for each thread but the
                caller's, who works on its stage when it has admitted a round
    dedicated   a stage and a pool for each operator; its lane has a thread of its own
    assigned    the same; its lane lives on a worker, as other actors do, and can move

With one lane, an operator is one stage that is not divided, with a ring for each input, which has
one producer and one consumer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from callboard.streams.planning.plan import Plan
from callboard.streams.planning.units import Unit
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.answers import Answers
from callboard.streams.running.call_lock import worker_here
from callboard.streams.running.flow import GraphFlow, NativeLane
from callboard.streams.running.graph_builder import LONGEST_CHAIN, GraphBuilder
from callboard.streams.running.inspection import record_slices
from callboard.system import ActorSystem
from callboard.timers import Timer


class PythonLane(Actor[object]):
    """A lane that holds the interpreter. Any message means: look for work."""

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
            if self.alarm is not None:  # a round that came meanwhile woke the lane before it
                self.alarm.cancel()
            self.alarm = self.after(seconds, None)

    def on_stop(self) -> None:
        """Keep nobody from being idle."""
        self._note_rest(False)

    def _note_rest(self, rests: bool) -> None:
        """Keep the team from idleness while rows wait: a timer alone does not."""
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
        """Have all of them end."""
        for lane in self:
            lane.stop()


_DYNAMIC = 0  # the pool that a flow begins with
_MANUAL_LANES = 3  # that take turns in a manual system
_MOST_LANES = 64  # of a pool: a bit of a word for each; the workers beyond have none


@dataclass(frozen=True)
class LaneSite:
    """Where an operator runs: its model, and a thread, or a lane that lives on a worker."""

    model: Model
    thread: str = ""
    lane: ActorRef[Any] | None = None

    @property
    def where(self) -> str:
        """Name the thread; of `dynamic`, where any may be, it has no name."""
        if self.lane is None:
            return self.thread
        worker = self.lane.worker
        return "" if worker is None else worker.name


@dataclass
class Crew:
    """The lanes of a run, and what they work on."""

    lanes: Lanes
    sites: list[LaneSite]
    """The site of each step."""
    has_caller: bool = False
    """Some steps are run by the thread that sends."""
    released: bool = False
    """Some steps need no interpreter lock."""
    is_dynamic: bool = False
    workers: Sequence[WorkerThread] = ()
    assigned: list[tuple[int, ActorRef[Any], bool]] = field(default_factory=list)
    """(pool, lane, whether it follows the token) of each assigned operator."""

    def shared_pools(self) -> list[int]:
        """List the pools whose operators have no thread of their own."""
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


def build(
    system: ActorSystem,
    flow: GraphFlow,
    plan: Plan,
    programs: Sequence[Program],
    units: Sequence[Unit],
    placement: PlacementPolicy,
    *,
    chains: bool,
) -> Crew:
    """Make a flow of programs, one for each step of the plan, and give it its lanes.

    With `chains`, neighbours may be one stage.
    """
    builder = _Builder(system, flow, plan, programs)
    return builder.build(builder.chained(units) if chains else units, placement)


def lane_of(unit: Unit) -> object:
    """Return what has the one lane that works on a unit: a thread, or the unit.

    None: all lanes of the pool do, or the caller does.
    """
    if unit.model == "dynamic":
        return None
    return (unit.thread or None) if unit.model == "manual" else unit


class _Builder:
    def __init__(
        self, system: ActorSystem, flow: GraphFlow, plan: Plan, programs: Sequence[Program]
    ) -> None:
        self.system = system
        self.flow = flow
        self.stages = GraphBuilder(flow)
        self.programs = programs
        self.sources = [step.sources for step in plan.steps]
        self.max_workers = [step.max_workers for step in plan.steps]
        manual = system._runtime.manual
        self.workers = _MANUAL_LANES if manual else system.config.workers
        self.locked = has_gil() and not manual
        self.crew = Crew(
            Lanes(system, flow),
            [LaneSite("dynamic")] * len(programs),
            workers=system._runtime.team.workers,
        )

    def build(self, units: Sequence[Unit], placement: PlacementPolicy) -> Crew:
        crew = self.crew
        of_lanes: dict[object, list[Unit]] = {}
        for unit in units:
            of_lanes.setdefault(lane_of(unit), []).append(unit)
        pools: dict[object, int] = {}  # of the same lanes
        for unit in units:
            crew.released |= any(map(self.is_free, unit.steps))
            if unit.model == "dynamic":
                crew.is_dynamic = True
                self.add_dynamic(unit)
            elif (lane := lane_of(unit)) is None:
                crew.has_caller = True
                self.stages.add_called(self.members(unit), not self.is_mixed([unit]))
                self.settle([unit], LaneSite("manual", "the caller"))
            else:
                if lane not in pools:
                    pools[lane] = self.flow.add_pool(latest=True)
                # The program runs on the lane's kind: on another kind it would wait for ever.
                self.add_undivided(unit, self.runs_on(of_lanes[lane]), pools[lane])
        self.stages.connect()
        if (records := self.system._runtime.records) is not None:
            records.note_operators(partial(record_slices, self.flow))
        try:
            if crew.is_dynamic:
                self.add_dynamic_lanes(units)
            for lane, pool in pools.items():
                self.add_lane(pool, of_lanes[lane], placement)
            if not crew.lanes:  # by one the system knows the run: dead letters name it
                crew.lanes.add(_DYNAMIC, "python")
        except BaseException:
            crew.lanes.stop()
            raise
        return crew

    # --- stages ----------------------------------------------------------------------------------

    def chained(self, units: Sequence[Unit]) -> list[Unit]:
        """Join dynamic units whose steps can be a chain: see scheduling/flow/chain.hpp."""
        edges = Counter(source for sources in self.sources for source, _ in sources)
        joined: list[Unit] = []
        place: dict[int | None, int] = {}  # of the unit that ends with a step, among these
        for unit in units:
            if unit.model == "dynamic" and self.may_chain(unit.steps[0]):
                (step,) = unit.steps
                before = self.sources[step][0][0]
                at = place.pop(before, None) if edges[before] == 1 else None
                if at is not None and len(joined[at].steps) < LONGEST_CHAIN:
                    joined[at] = Unit("dynamic", (*joined[at].steps, step))
                    place[step] = at
                    continue
                place[step] = len(joined)
            joined.append(unit)
        return joined

    def may_chain(self, step: int) -> bool:
        program = self.programs[step]
        is_limited = self.max_workers[step] is not None
        return isinstance(program, NativeProgram) and program.needs_no_order and not is_limited

    def is_free(self, step: int) -> bool:
        """Return whether a step needs no interpreter lock, or there is none."""
        return self.programs[step].releases_gil or not self.locked

    def runs_on(self, units: Sequence[Unit]) -> str:
        if not self.locked:
            return "all"
        free = all(self.is_free(step) for unit in units for step in unit.steps)
        return "native" if free else "python"

    def is_mixed(self, units: Sequence[Unit]) -> bool:
        """Return whether workers on units should let the interpreter go for some of them."""
        programs = [self.programs[step] for unit in units for step in unit.steps]
        return any(isinstance(program, NativeProgram) for program in programs)

    def members(self, unit: Unit) -> list[tuple[int, Program, Any]]:
        for step in unit.steps:
            if self.system._runtime.manual and isinstance(self.programs[step], Answers):
                raise ConfigError(
                    f"{self.programs[step].name!r} waits for answers, and a thread of a manual "
                    "system cannot: its threading is 'assigned' there, not 'manual'"
                )
        return [(step, self.programs[step], self.sources[step]) for step in unit.steps]

    def add_dynamic(self, unit: Unit) -> None:
        if len(unit.steps) > 1:
            self.stages.add_chain(self.members(unit), self.runs_on([unit]), self.workers, _DYNAMIC)
            return
        (step,) = unit.steps
        program = self.programs[step]
        free = self.is_free(step)
        lanes = min(self.workers, self.max_workers[step] or self.workers) if free else 1
        by_parts = (
            program.kind == "partitioned"
            and free
            and (lanes > 1 or isinstance(program, NativeProgram))
        )
        partitions = program.divided_among(lanes) if by_parts else 0
        sources = self.sources[step]
        self.stages.add(step, program, sources, self.runs_on([unit]), partitions, lanes, _DYNAMIC)

    def add_undivided(self, unit: Unit, runs_on: str, pool: int) -> None:
        waits = any(isinstance(self.programs[step], Answers) for step in unit.steps)
        if unit.model == "manual" or (len(unit.steps) > 1 and not waits):
            self.stages.add_fused(self.members(unit), runs_on, pool)
            return
        for step in unit.steps:  # of one that waits for answers, each has a stage: no lane waits
            program, sources = self.programs[step], self.sources[step]
            self.stages.add(step, program, sources, runs_on, 0, 1, pool)

    # --- lanes -----------------------------------------------------------------------------------

    def add_dynamic_lanes(self, units: Sequence[Unit]) -> None:
        """Give each worker a lane; with an interpreter lock, one lane works on what needs that."""
        free = any(self.is_free(unit.steps[0]) for unit in units if unit.model == "dynamic")
        python = 1 if self.locked else self.workers
        native = self.workers if self.locked and free else 0
        kind = "python" if self.locked else "all"
        lanes = [(kind, at) for at in range(python)] + [("native", at) for at in range(native)]
        for works_on, at in lanes[:_MOST_LANES]:
            placement = Fixed(at % self.system.config.workers)
            self.crew.lanes.add(_DYNAMIC, works_on, placement=placement, worker=at)
        self.system._runtime.team.follow_level(self.flow)

    def add_lane(self, pool: int, units: Sequence[Unit], placement: PlacementPolicy) -> None:
        """Give a pool its one lane."""
        crew = self.crew
        works_on = self.runs_on(units)
        keeps = not self.is_mixed(units)
        if units[0].model == "assigned":
            lane = crew.lanes.add(pool, works_on, keeps_interpreter=keeps, placement=placement)
            follows = works_on == "python" and self.workers > 1
            crew.assigned.append((pool, lane, follows))
            self.settle(units, LaneSite("assigned", lane=lane))
        else:
            lane = crew.lanes.add(pool, works_on, keeps_interpreter=keeps, dedicated=True)
            worker = lane.worker
            self.settle(units, LaneSite(units[0].model, "" if worker is None else worker.name))

    def settle(self, units: Sequence[Unit], site: LaneSite) -> None:
        for unit in units:
            for step in unit.steps:
                self.crew.sites[step] = site
