"""Chameneos: 100 creatures come to a mall, which pairs them n times; each takes on a new colour."""

from collections.abc import Callable
from time import perf_counter

from hosts.base import Behaviour, Host, Ref
from savina.result import Result

CREATURES = 100
REPORT = -1


class Mall(Behaviour):
    """Bring together whoever waits and whoever comes; a visit is a creature's number and colour."""

    def __init__(self, meetings: int, creatures: list[Ref], done: Callable[[int], object]) -> None:
        self.left = meetings
        self.creatures = creatures
        self.done = done
        self.waiting: tuple[int, int] | None = None
        self.gone = 0

    def receive(self, visit: tuple[int, int]) -> None:
        if self.left == 0:
            self.gone += 1
            if self.gone == CREATURES:
                self.done(self.gone)
        elif self.waiting is None:
            self.waiting = visit
        else:
            (first, first_colour), (second, second_colour) = self.waiting, visit
            self.creatures[first].tell(second_colour)
            self.creatures[second].tell(first_colour)
            self.waiting = None
            self.left -= 1


class Creature(Behaviour):
    """Visit the mall, meet a colour, become the third of the two (or stay), and visit again."""

    def __init__(self, number: int, mall: Ref) -> None:
        self.number = number
        self.colour = number % 3
        self.mall = mall
        self.meetings = -1  # the first message is no meeting, but its own colour

    def receive(self, colour: int) -> int | None:
        if colour == REPORT:
            return self.meetings
        self.meetings += 1
        if colour != self.colour:
            self.colour = 3 - self.colour - colour
        self.mall.tell((self.number, self.colour))
        return None


def run(host: Host, n: int) -> Result:
    creatures: list[Ref] = []
    mall = host.spawn(Mall, n, creatures, host.done)
    creatures += [host.spawn(Creature, number, mall) for number in range(CREATURES)]
    begin = perf_counter()
    for number, creature in enumerate(creatures):
        host.feed(creature, [number % 3])
    host.wait()
    seconds = perf_counter() - begin
    meetings = [host.ask(creature, REPORT) for creature in creatures]
    return Result(4 * n, seconds, got=sum(meetings), want=2 * n)
