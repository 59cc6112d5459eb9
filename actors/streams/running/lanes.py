"""Lanes: the actors by which the workers of a system take part in a run."""

from __future__ import annotations

from typing import Any
from weakref import ReferenceType, ref

from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.scheduling.team import Team
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.native_lane import NativeLane
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
