"""`async def receive`: an actor that waits in the middle of a message."""

import asyncio
import threading
from collections.abc import Awaitable, Generator
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorStopped,
    ActorSystem,
    AskDeadlock,
    AskTimeout,
    DeadLetter,
    Future,
    Supervision,
)


class Doubler(Actor[int]):
    def receive(self, message: int) -> int:
        return message * 2


class Keeper(Actor[Any]):
    """Leaves asks unanswered until it is told to release them."""

    def receive(self, message: Any) -> Any:
        if message == "release":
            self.become(self.answer)
            self.unstash_all()
        else:
            self.stash()

    def answer(self, message: Any) -> Any:
        return message


class Asker(Actor[Any]):
    """Asks another for every message, and notes when it began and ended."""

    def __init__(self, target: ActorRef[Any]) -> None:
        self.target = target
        self.notes: list[tuple[str, Any]] = []

    async def receive(self, message: Any) -> Any:
        if message == "notes":
            return self.notes
        self.notes.append(("begin", message))
        answer = await self.target.ask(message)
        self.notes.append(("end", message))
        return answer


def test_a_coroutines_answer_answers_the_ask(system: ActorSystem) -> None:
    asker = system.spawn(Asker, system.spawn(Doubler))
    assert [asker.ask(number).result(timeout=30) for number in range(50)] == list(range(0, 100, 2))


def test_while_it_waits_the_actor_takes_no_other_message(system: ActorSystem) -> None:
    keeper = system.spawn(Keeper)
    asker = system.spawn(Asker, keeper)
    asker.tell(1)
    asker.tell(2)
    notes = asker.ask("notes")
    assert keeper.ask("release").result(timeout=30) is None
    expected = [("begin", 1), ("end", 1), ("begin", 2), ("end", 2)]
    assert notes.result(timeout=30) == expected


def test_while_it_waits_the_worker_runs_others() -> None:
    with ActorSystem(workers=1) as system:
        keeper = system.spawn(Keeper)
        waiting = system.spawn(Asker, keeper).ask("x")
        assert system.spawn(Doubler).ask(1).result(timeout=30) == 2
        assert not waiting.done()
        keeper.tell("release")
        assert waiting.result(timeout=30) == "x"


def test_many_actors_wait_at_the_same_time(system: ActorSystem) -> None:
    keeper = system.spawn(Keeper)
    answers = [system.spawn(Asker, keeper).ask(number) for number in range(1_000)]
    keeper.tell("release")
    assert [answer.result(timeout=30) for answer in answers] == list(range(1_000))


def test_the_handlers_exception_is_raised_at_the_await(system: ActorSystem) -> None:
    class Careful(Actor[Any]):
        def __init__(self, target: ActorRef[Any]) -> None:
            self.target = target

        async def receive(self, message: Any) -> str:
            try:
                await self.target.ask(message)
            except TypeError as error:
                return f"caught {type(error).__name__}"
            return "no error"

    careful = system.spawn(Careful, system.spawn(Doubler))
    assert careful.ask(None).result(timeout=30) == "caught TypeError"
    assert careful.is_alive


def test_a_coroutine_that_fails_after_a_wait_fails_its_message(system: ActorSystem) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    asker = system.spawn(Asker, system.spawn(Doubler))
    failing = asker.ask(None)
    with pytest.raises(TypeError):
        failing.result(timeout=30)
    system.drain()
    assert not asker.is_alive
    letter = letters[-1]
    assert (letter.message, letter.recipient, letter.reason) == (None, asker, "failed")
    assert isinstance(letter.error, TypeError)


def test_the_timeout_of_an_ask_is_raised_at_the_await(system: ActorSystem) -> None:
    class Impatient(Actor[Any]):
        def __init__(self, target: ActorRef[Any]) -> None:
            self.target = target

        async def receive(self, message: Any) -> str:
            try:
                await self.target.ask(message, timeout=0.01)
            except AskTimeout:
                return "no answer in time"
            return "an answer"

    ref = system.spawn(Impatient, system.spawn(Keeper))
    assert ref.ask("x").result(timeout=30) == "no answer in time"


def test_the_sender_is_the_same_after_a_wait(system: ActorSystem) -> None:
    class Senders(Actor[Any]):
        def __init__(self, target: ActorRef[int]) -> None:
            self.target = target

        async def receive(self, message: Any) -> list[ActorRef[Any] | None]:
            before = self.sender
            await self.target.ask(1)
            between = self.sender
            await self.target.ask(1)
            return [before, between, self.sender]

    class Client(Actor[Any]):
        def __init__(self, target: ActorRef[Any]) -> None:
            self.target = target

        def receive(self, message: Any) -> Future[Any]:
            return self.target.ask(message)

    senders = system.spawn(Senders, system.spawn(Doubler))
    client = system.spawn(Client, senders)
    assert client.ask("go").result(timeout=30) == [client] * 3
    assert senders.ask("go").result(timeout=30) == [None] * 3


def test_sleep_lets_time_pass_without_the_worker(system: ActorSystem) -> None:
    class Sleeper(Actor[Any]):
        async def receive(self, message: float) -> str:
            await self.sleep(message)
            return "awake"

    sleeper = system.spawn(Sleeper)
    assert sleeper.ask(0).result(timeout=30) == "awake"
    assert sleeper.ask(0.01).result(timeout=30) == "awake"
    with pytest.raises(ValueError, match="a number of seconds from 0 to 1e9, got -1"):
        sleeper.ask(-1).result(timeout=30)


def test_a_future_that_is_done_is_not_waited_for(system: ActorSystem) -> None:
    class Eager(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            future: Future[Any] = Future()
            future.set_result(message)
            return await future

    assert system.spawn(Eager).ask("x").result(timeout=30) == "x"


class Foreign:
    """An awaitable of some event loop."""

    def __await__(self) -> Generator[str, None, None]:
        yield "for the event loop"


@pytest.mark.parametrize("awaitable", [Foreign(), asyncio.sleep(1)], ids=["foreign", "asyncio"])
def test_only_callboards_futures_can_be_awaited(
    system: ActorSystem, awaitable: Awaitable[Any]
) -> None:
    class Confused(Actor[Any]):
        async def receive(self, message: Any) -> None:
            await awaitable

    with pytest.raises((TypeError, RuntimeError), match=r"await|event loop"):
        system.spawn(Confused).ask("x").result(timeout=30)


# --- cycles ---------------------------------------------------------------------------------------


class Link(Actor[Any]):
    """Asks the next link of a chain."""

    next_link: ActorRef[Any] | None = None

    async def receive(self, message: Any) -> Any:
        if isinstance(message, ActorRef):
            self.next_link = message
            return None
        assert self.next_link is not None
        return await self.next_link.ask(message)


@pytest.mark.parametrize("length", [1, 2, 3, 10])
def test_a_cycle_of_asks_is_named(system: ActorSystem, length: int) -> None:
    links = [system.spawn(Link, name=f"link-{number}") for number in range(length)]
    for number, link in enumerate(links):
        link.ask(links[(number + 1) % length]).result(timeout=30)
    with pytest.raises(AskDeadlock, match="each waits for the next: ") as caught:
        links[0].ask("round and round").result(timeout=30)
    path = str(caught.value).removeprefix("each waits for the next: ").split(" -> ")
    assert len(path) == length + 1
    assert path[0] == path[-1]
    assert set(path) == {link.path for link in links}


def test_asks_that_meet_at_one_actor_are_no_cycle(system: ActorSystem) -> None:
    doubler = system.spawn(Doubler)
    left, right = system.spawn(Asker, doubler), system.spawn(Asker, doubler)

    class Both(Actor[int]):
        async def receive(self, message: int) -> int:
            first, second = left.ask(message), right.ask(message)
            total: int = await first + await second
            return total

    assert system.spawn(Both).ask(1).result(timeout=30) == 4


def test_an_actor_that_catches_the_cycle_goes_on(system: ActorSystem) -> None:
    class Narcissus(Actor[Any]):
        async def receive(self, message: Any) -> str:
            if message == "reflection":
                return "answered later"
            answer = self.ref.ask("reflection")
            try:
                await answer
            except AskDeadlock:
                answers.append(answer)
                return "waits for nobody"
            return "answered itself"

    answers: list[Future[Any]] = []
    assert system.spawn(Narcissus).ask("look").result(timeout=30) == "waits for nobody"
    assert answers[0].result(timeout=30) == "answered later"


# --- the end in the middle ------------------------------------------------------------------------


class Unfinished(Actor[Any]):
    """Awaits what never comes, and notes how that ends."""

    def __init__(self, keeper: ActorRef[Any], notes: list[str], entered: threading.Event) -> None:
        self.keeper, self.notes, self.entered = keeper, notes, entered

    async def receive(self, message: Any) -> Any:
        try:
            self.entered.set()
            return await self.keeper.ask(message)
        finally:
            self.notes.append("finally")

    def on_stop(self) -> None:
        self.notes.append("on_stop")


def test_an_actor_that_is_stopped_while_it_waits_closes_its_coroutine(system: ActorSystem) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    notes: list[str] = []
    entered = threading.Event()
    keeper = system.spawn(Keeper)
    ref = system.spawn(Unfinished, keeper, notes, entered)
    in_work, behind = ref.ask("in work"), ref.ask("behind")
    assert entered.wait(30)
    ref.stop()
    with pytest.raises(ActorStopped, match=f"{ref.path} was stopped; it was in the middle"):
        in_work.result(timeout=30)
    with pytest.raises(ActorStopped, match=f"{ref.path} was stopped"):
        behind.result(timeout=30)
    system.drain()
    assert notes == ["finally", "on_stop"]
    assert [(letter.message, letter.reason) for letter in letters] == [
        ("in work", "stopped"),
        ("behind", "stopped"),
    ]
    keeper.tell("release")  # the answer comes too late, to nobody


def test_an_actor_that_restarts_while_it_waits_keeps_what_is_behind(system: ActorSystem) -> None:
    class Fragile(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise ValueError("for the whole family")

    class Parent(Actor[Any]):
        def receive(self, message: Any) -> tuple[ActorRef[Any], ActorRef[Any]]:
            together = Supervision("restart", scope="all")
            waiting = self.spawn(Unfinished, keeper, notes, entered, supervision=together)
            return waiting, self.spawn(Fragile, supervision=together)

    notes: list[str] = []
    entered = threading.Event()
    keeper = system.spawn(Keeper)
    waiting, fragile = system.spawn(Parent).ask("children").result(timeout=30)
    in_work = waiting.ask("in work")
    assert entered.wait(30)
    behind = waiting.ask("behind")
    fragile.tell("break")
    with pytest.raises(ValueError, match="for the whole family"):
        in_work.result(timeout=30)
    keeper.tell("release")
    assert behind.result(timeout=30) == "behind"
    assert notes[:2] == ["finally", "on_stop"]


def test_an_actor_that_stops_itself_is_stopped_at_its_next_await(system: ActorSystem) -> None:
    class Quitter(Actor[Any]):
        def __init__(self, keeper: ActorRef[Any]) -> None:
            self.keeper = keeper

        async def receive(self, message: Any) -> Any:
            self.stop()
            return await self.keeper.ask(message)

    with pytest.raises(ActorStopped, match="stopped; it was in the middle"):
        system.spawn(Quitter, system.spawn(Keeper)).ask("x").result(timeout=30)


def test_a_coroutine_that_refuses_to_end_does_not_hold_its_actor(system: ActorSystem) -> None:
    entered = threading.Event()

    class Stubborn(Actor[Any]):
        def __init__(self, keeper: ActorRef[Any]) -> None:
            self.keeper = keeper

        async def receive(self, message: Any) -> Any:
            try:
                entered.set()
                await self.keeper.ask(message)
            except GeneratorExit:
                await self.keeper.ask(message)

    ref = system.spawn(Stubborn, system.spawn(Keeper))
    answer = ref.ask("x")
    assert entered.wait(30)
    ref.stop()
    with pytest.raises(ActorStopped):
        answer.result(timeout=30)
    system.drain()
    assert not ref.is_alive


@pytest.mark.parametrize("fails", [False, True])
def test_a_message_stashed_before_a_wait_is_handled_once_more(
    system: ActorSystem, fails: bool
) -> None:
    class Later(Actor[Any]):
        ready = False

        async def receive(self, message: Any) -> Any:
            if message == "ready":
                self.ready = True
                self.unstash_all()
                return None
            if self.ready:
                return "answered when ready"
            self.stash()
            await doubler.ask(1)
            if fails:
                raise LookupError("after the wait")
            return "answered too early"

    doubler = system.spawn(Doubler)
    ref = system.spawn(Later, supervision="resume")
    answer = ref.ask("x")
    ref.ask("ready").result(timeout=30)
    assert answer.result(timeout=30) == "answered when ready"
    assert system.dead_letters.count == 0
    assert system.dead_letters.failure_count == fails


def test_a_dedicated_actor_may_wait_in_the_middle(system: ActorSystem) -> None:
    asker = system.spawn(Asker, system.spawn(Doubler), dedicated=True)
    assert [asker.ask(number).result(timeout=30) for number in range(20)] == list(range(0, 40, 2))
