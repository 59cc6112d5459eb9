"""Lanes: the actors by which the workers of a system take part in a run."""

from __future__ import annotations

from typing import Any
from weakref import ReferenceType, ref

from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.scheduling.placement import Fixed
from callboard.streams.running.flow import GraphFlow, NativeLane
from callboard.system import ActorSystem
from callboard.timers import Timer

_MOST = 64  # lanes of a flow


class PythonLane(Actor[object]):
    """A lane that holds the interpreter. Any message means: look for work."""

    def __init__(self, flow: ReferenceType[GraphFlow], number: int) -> None:
        self.flow = flow()
        self.number = number
        self.alarm: Timer | None = None  # the latest

    def receive(self, message: object) -> None:
        """Work until there is nothing to do, or a turn is over."""
        if self.flow is None:
            return
        seconds = self.flow.run_lane(self.number)
        if seconds == 0:
            self.ref.tell(None)  # other actors of this worker first
        elif seconds is not None:
            if self.alarm is not None:  # a round that came meanwhile woke the lane before it
                self.alarm.cancel()
            self.alarm = self.after(seconds, None)


def add_lanes(
    system: ActorSystem, flow: GraphFlow, *, python: int, native: int, kind: str
) -> list[ActorRef[Any]]:
    """Give a flow its lanes: so many of each sort, spread over the system's workers.

    `kind` is what those that hold the interpreter may work on: "python", or "all". A flow has 64 at
    most, a bit of a word for each; the workers beyond have none.

    A flow keeps its lanes' refs, and a ref keeps what its actor was made with, even when that has
    ended. So this is a weak reference: the lanes keep the flow while they live, the refs do not.
    """
    lanes: list[ActorRef[Any]] = []
    sorts: tuple[tuple[type[Any], int, str], ...] = (
        (PythonLane, python, kind),
        (NativeLane, native, "native"),
    )
    for cls, count, works_on in sorts:
        for number in range(min(count, _MOST - len(lanes))):
            home = Fixed(number % system.config.workers)
            lane = system.spawn(cls, ref(flow), len(lanes), placement=home)
            system.dead_letters.expect_wake_ups(lane)  # it may end with one in its mailbox
            flow.add_lane(lane, works_on)
            lanes.append(lane)
    return lanes
