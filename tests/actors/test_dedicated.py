"""`dedicated=True`: an actor that blocks gets its own thread."""

import threading
from typing import Any

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, DeadLetter


class Where(Actor[Any]):
    """Tells in which thread it runs."""

    def __init__(self, threads: list[Any]) -> None:
        self.threads = threads
        threads.append(threading.current_thread())

    def on_start(self) -> None:
        self.threads.append(threading.current_thread())

    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise ValueError("as told")
        if callable(message):
            return message(self)
        self.threads.append(threading.current_thread())
        return message

    def on_stop(self) -> None:
        self.threads.append(threading.current_thread())


def test_all_of_a_dedicated_actor_runs_on_one_thread_of_its_own(system: ActorSystem) -> None:
    threads: list[Any] = []
    ref = system.spawn(Where, threads, dedicated=True, supervision="restart")
    assert ref.ask("x").result(timeout=30) == "x"
    ref.tell("fail")
    assert ref.ask("y").result(timeout=30) == "y"
    ref.stop()
    system.drain()
    assert len(set(threads)) == 1
    assert threads[0] not in [worker.thread for worker in system._runtime.team.workers]


def test_a_dedicated_actors_thread_ends_with_it(system: ActorSystem) -> None:
    threads: list[threading.Thread] = []
    refs = [system.spawn(Where, threads, dedicated=True) for _ in range(10)]
    for ref in refs:
        ref.ask("x").result(timeout=30)
        ref.stop()
    for thread in set(threads):
        thread.join(30)
        assert not thread.is_alive()
    assert ref.ask("late").exception(timeout=30) is not None


def test_a_dedicated_actor_that_blocks_holds_nobody_up() -> None:
    gate, entered = threading.Event(), threading.Event()

    def block(actor: Where) -> str:
        entered.set()
        assert gate.wait(60)
        return "done"

    with ActorSystem(workers=1) as system:
        blocked = system.spawn(Where, [], dedicated=True).ask(block)
        assert entered.wait(30)
        assert system.spawn(Where, []).ask("x").result(timeout=30) == "x"
        gate.set()
        assert blocked.result(timeout=30) == "done"


def test_a_child_of_a_dedicated_actor_lives_on_a_worker(system: ActorSystem) -> None:
    threads: list[Any] = []
    parent = system.spawn(Where, [], dedicated=True)
    child = parent.ask(lambda actor: actor.spawn(Where, threads)).result(timeout=30)
    child.ask("x").result(timeout=30)
    assert set(threads) <= {worker.thread for worker in system._runtime.team.workers}


def test_messages_between_dedicated_actors_and_others_all_arrive(system: ActorSystem) -> None:
    class Pong(Actor[Any]):
        def receive(self, message: int) -> None:
            if message:
                assert self.sender is not None
                self.sender.tell(message - 1)
            else:
                done.release()

    class Ping(Pong):
        def receive(self, message: Any) -> None:
            if isinstance(message, ActorRef):
                message.tell(300)
            else:
                super().receive(message)

    done = threading.Semaphore(0)
    for first, second in [(True, False), (False, True), (True, True)]:
        pong = system.spawn(Pong, dedicated=second)
        system.spawn(Ping, dedicated=first).tell(pong)
    for _ in range(3):
        assert done.acquire(timeout=60)


def test_a_stopped_dedicated_actor_makes_dead_letters_of_what_waits(system: ActorSystem) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    gate, entered = threading.Event(), threading.Event()

    def block(actor: Where) -> None:
        entered.set()
        assert gate.wait(60)

    ref = system.spawn(Where, [], dedicated=True, mailbox=BoundedMailbox(10))
    ref.tell(block)
    assert entered.wait(30)
    ref.tell_many([1, 2, 3])
    ref.stop()
    gate.set()
    system.drain()
    assert [letter.message for letter in letters] == [1, 2, 3]
