"""Plays calls: the main thread calls a function elsewhere n times, `at_once` in each batch.

    callboard       asks an actor of this process
    pool            asks an actor in a process of its own
    ray             calls a method of Ray's actor, which is in a process of its own
    ray_compiled    the same by a compiled graph
    shared_memory   a process that answers through iceoryx2
    pipe            a process that answers on a pipe, whose buffer holds a batch and its answers

All answers have to be right. Processes are there before the clock starts.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from callboard import Actor, ActorSystem
from calling.shared_memory import called
from savina.result import Result
from usage import Watch
from with_ray import cpu_of_children, ray_with

AT_ONCE = 500  # calls of the largest batch

CallAll = Callable[[list[int]], list[int]]


class Next(Actor[int, int]):
    def receive(self, message: int) -> int:
        return message + 1


class PlainNext:
    def receive(self, message: int) -> int:
        return message + 1


def run(n: int, *, by: str, at_once: int = 1) -> Result:
    batches = [[*range(first, min(first + at_once, n))] for first in range(0, n, at_once)]
    got: list[int] = []
    with BY[by]() as call_all:
        call_all([0])
        elsewhere = cpu_of_children()
        watch = Watch()
        for batch in batches:
            got += call_all(batch)
        spent = watch.stop()
        spent["cpu"] += cpu_of_children() - elsewhere
    return Result(n, got=hash(tuple(got)), want=hash(tuple(range(1, n + 1))), **spent)


@contextmanager
def by_actor() -> Iterator[CallAll]:
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Next)
        yield lambda batch: [answer.result(60.0) for answer in [ref.ask(each) for each in batch]]


@contextmanager
def by_pool() -> Iterator[CallAll]:
    with ActorSystem(workers=1) as system:
        pool = system.pool(Next, processes=1)
        yield lambda batch: [answer.result(60.0) for answer in [pool.ask(each) for each in batch]]


@contextmanager
def by_ray() -> Iterator[CallAll]:
    with ray_with(1) as ray:
        receive: Any = ray.remote(PlainNext).remote().receive
        yield lambda batch: ray.get([receive.remote(each) for each in batch])


@contextmanager
def by_compiled_graph() -> Iterator[CallAll]:
    with ray_with(1) as ray:
        from ray.dag import InputNode

        actor: Any = ray.remote(PlainNext).remote()
        with InputNode() as message:
            graph = actor.receive.bind(message)
        compiled = graph.experimental_compile(_max_inflight_executions=AT_ONCE)
        yield lambda batch: [ray.get(each) for each in [compiled.execute(each) for each in batch]]
        compiled.teardown()


def answer_on(pipe: Connection) -> None:
    plain = PlainNext()
    while (message := pipe.recv()) is not None:
        pipe.send(plain.receive(message))


@contextmanager
def by_pipe() -> Iterator[CallAll]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=answer_on, args=(theirs,))
    process.start()

    def call_all(batch: list[int]) -> list[int]:
        for each in batch:
            ours.send(each)
        return [ours.recv() for _ in batch]

    yield call_all
    ours.send(None)
    process.join()


BY: dict[str, Callable[[], AbstractContextManager[CallAll]]] = {
    "callboard": by_actor,
    "pool": by_pool,
    "ray": by_ray,
    "ray_compiled": by_compiled_graph,
    "shared_memory": partial(called, PlainNext().receive),
    "pipe": by_pipe,
}
