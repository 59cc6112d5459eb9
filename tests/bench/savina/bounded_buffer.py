"""Bounded buffer: 40 producers and 40 consumers share a buffer of 50 items, kept by an actor."""

from collections import deque
from collections.abc import Callable
from time import perf_counter

from hosts.base import Behaviour, Host, Ref
from savina.result import Result

PRODUCERS = CONSUMERS = 40
CAPACITY = 50
START = -1
REPORT = -2


class Buffer(Behaviour):
    """Keep the items; a message is (an item, its producer) or (None, a consumer that is ready).

    A producer is told to continue only while there is room for an item of every producer.
    """

    def __init__(self, items: int, done: Callable[[int], object]) -> None:
        self.left = items
        self.done = done
        self.items: deque[int] = deque()
        self.hungry: deque[Ref] = deque()  # consumers that wait for an item
        self.held: deque[Ref] = deque()  # producers that wait for room
        self.most = 0

    def receive(self, message: tuple[int | None, Ref]) -> None:
        item, ref = message
        if item is not None:
            self.left -= 1
            if self.hungry:
                self.hungry.popleft().tell(item)
            else:
                self.items.append(item)
                self.most = max(self.most, len(self.items))
            if len(self.items) + PRODUCERS - len(self.held) > CAPACITY:
                self.held.append(ref)
            else:
                ref.tell(START)
        elif self.items:
            ref.tell(self.items.popleft())
            if self.held:
                self.held.popleft().tell(START)
        else:
            self.hungry.append(ref)
            if self.left == 0 and len(self.hungry) == CONSUMERS:
                self.done(self.most)


class Producer(Behaviour):
    """Bring the next item at each message."""

    def __init__(self, place: int, producers: list[Ref], items: range, buffer: Ref) -> None:
        self.place = place
        self.producers = producers
        self.items = iter(items)
        self.buffer = buffer

    def receive(self, _: int) -> None:
        item = next(self.items, None)
        if item is not None:
            self.buffer.tell((item, self.producers[self.place]))


class Consumer(Behaviour):
    """Add up the items, and ask for another after each."""

    def __init__(self, place: int, consumers: list[Ref], buffer: Ref) -> None:
        self.place = place
        self.consumers = consumers
        self.buffer = buffer
        self.total = 0

    def receive(self, item: int) -> int:
        if item != REPORT:
            if item != START:
                self.total += item
            self.buffer.tell((None, self.consumers[self.place]))
        return self.total


def run(host: Host, n: int) -> Result:
    producers: list[Ref] = []
    consumers: list[Ref] = []
    items = n // PRODUCERS * PRODUCERS
    buffer = host.spawn(Buffer, items, host.done)
    for place in range(PRODUCERS):
        share = range(place, items, PRODUCERS)
        producers.append(host.spawn(Producer, place, producers, share, buffer))
    consumers += [host.spawn(Consumer, place, consumers, buffer) for place in range(CONSUMERS)]
    begin = perf_counter()
    host.feed_all(producers + consumers, [START])
    [most] = host.wait()
    seconds = perf_counter() - begin
    total = sum(host.ask(consumer, REPORT) for consumer in consumers)
    return Result(4 * items, seconds, got=[total, most <= CAPACITY], want=[sum(range(items)), True])
