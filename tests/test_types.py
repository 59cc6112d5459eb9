"""Types of programs that use callboard, by a type checker."""

import pytest

from tests.checkers import by_mypy

pytest.importorskip("mypy")

# A line that ends in a comment `# -> ...` reveals a type or is an error, and that is a part of it.
PROGRAM = """
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from callboard import Actor, ActorRef, ActorSystem, Future, Recipient, Supervision, Terminated
from callboard.nets import Net
from callboard.policies import Blocks, PlacementPolicy
from callboard.remote import RemoteRef, Server, ShardedRef, serve_entries
from callboard.remote.errors import ConnectionLost
from callboard.streams import Graph, Stream, TumblingWindow, entry
from callboard.timers import Timer

class Counter(Actor[int]):
    def __init__(self, start: int = 0) -> None:
        self.count = start

    def receive(self, message: int) -> int:
        reveal_type(self.ref)  # -> ActorRef[int, Any]
        reveal_type(self.sender)  # -> ActorRef[Any, Any] | None
        reveal_type(self.system)  # -> ActorSystem
        reveal_type(self.after(1.0, 1))  # -> Timer
        reveal_type(self.children)  # -> list[ActorRef[Any, Any]]
        self.become(self.other)
        self.become(self.wrong)  # -> expected "Callable[[int], Any | Awaitable[Any]]"
        self.ref.tell("text")  # -> incompatible type "str"; expected "int"
        return self.count

    def other(self, message: int) -> None: ...
    def wrong(self, message: str) -> None: ...

class Waiting(Actor[str]):
    async def receive(self, message: str) -> str:
        counter = self.spawn(Counter)
        reveal_type(counter)  # -> ActorRef[int, Any]
        await self.sleep(1.0)
        reveal_type(await counter.ask(1))  # -> Any
        self.watch(counter)
        return message

class Wrong(Actor[int]):
    def receive(self, message: str) -> None: ...  # -> incompatible with supertype

M = TypeVar("M")

class Box(Actor[M], Generic[M]):
    def receive(self, message: M) -> M:
        return message

class TextBox(Box[str]): ...

def use(system: ActorSystem, anything: ActorRef[Any], objects: ActorRef[object]) -> None:
    counter = system.spawn(Counter, 7, name="counter", supervision=Supervision("restart"))
    reveal_type(counter)  # -> ActorRef[int, Any]
    counter.tell(1)
    counter.tell("text")  # -> incompatible type "str"; expected "int"
    counter.tell_many([1, 2])
    counter.tell_many(["text"])  # -> incompatible type "str"; expected "int"
    reveal_type(counter.ask(1))  # -> Future[Any]
    counter.ask("text")  # -> incompatible type "str"; expected "int"
    reveal_type(counter.ask(1, timeout=2.0).result(timeout=1.0))  # -> Any
    reveal_type(counter.is_alive)  # -> bool
    reveal_type(counter.path)  # -> str
    reveal_type(counter.ready)  # -> ActorRef[int, Any]]
    reveal_type(counter.ended)  # -> ActorEnd]
    counter.stop(after_queue=True)
    counter.stop(True)  # -> Too many positional arguments
    reveal_type(system.spawn(TextBox))  # -> ActorRef[str, Any]
    integers: ActorRef[int] = objects  # who takes any object takes an integer
    strings: ActorRef[str] = counter  # -> Incompatible types in assignment
    reveal_type(Terminated(counter).ref)  # -> ActorRef[Any, Any]
    future: Future[int] = Future()
    reveal_type(future.result())  # -> int
    reveal_type(future.exception())  # -> BaseException | None
    system.spawn(Counter())  # -> No overload variant of "spawn"
    system.spawn(int)  # -> expected "Callable[[], AnyActor

class Forwarding(Actor[int]):
    def __init__(self, to: Recipient[int]) -> None:
        self.to = to

    def receive(self, message: int) -> None:
        self.to.tell(message)
        self.to.tell("text")  # -> incompatible type "str"; expected "int"
        self.to.tell_many([message])
        reveal_type(self.to.ask(message, timeout=1.0))  # -> Future[Any]
        reveal_type(self.after(1.0, message, to=self.to))  # -> Timer
        self.every(1.0, message, to=print)  # -> incompatible type

class Own:
    def tell(self, message: int) -> None: ...
    def tell_many(self, messages: Iterable[int]) -> None: ...
    def ask(self, message: int, timeout: float | None = None) -> Future[Any]:
        return Future()

class Deaf:
    def tell(self, message: int) -> None: ...

def forward(
    system: ActorSystem,
    ref: ActorRef[int],
    there: RemoteRef,
    shards: ShardedRef,
    texts: ActorRef[str],
) -> None:
    numbers = entry("numbers", int)
    recipients: list[Recipient[int]] = [ref, there, shards, Own()]
    wrong: Recipient[int] = texts  # -> Incompatible types in assignment
    deaf: Recipient[int] = Deaf()  # -> Incompatible types in assignment
    for to in recipients:
        reveal_type(system.spawn(Forwarding, to))  # -> ActorRef[int, Any]
        reveal_type(numbers.to(to))  # -> Graph[None]
    numbers.to(texts)  # -> incompatible type
    numbers.to(Own())
    reveal_type(serve_entries(there))  # -> dict[str, ActorEntry
    reveal_type(ConnectionLost("text").unacknowledged)  # -> int
    policy: PlacementPolicy = Blocks(2)

class Visits:
    def receive(self, page: str) -> list[int]:
        return [len(page)]

def chain(pages: Stream[str], net: Net, system: ActorSystem) -> None:
    reveal_type(entry("pages"))  # -> Stream[Any]
    reveal_type(entry("pages", str))  # -> Stream[str]
    reveal_type(pages.map(len))  # -> Stream[int]
    pages.map(abs)  # -> incompatible type
    pages.filter(lambda page: page.nonsense)  # -> "str" has no attribute "nonsense"
    reveal_type(pages.flat_map(str.split))  # -> Stream[str]
    reveal_type(pages.stateless(Visits))  # -> Stream[int]
    reveal_type(pages.stateful(Visits))  # -> Stream[int]
    reveal_type(pages.scan(0, lambda total, page: total + len(page)))  # -> Stream[int]
    reveal_type(pages.batch(3))  # -> Stream[list[str]]
    reveal_type(pages.window(TumblingWindow(3)))  # -> Window[list[str]]
    reveal_type(pages.window(TumblingWindow(3), len))  # -> Window[int]
    reveal_type(pages.union(pages.map(len)))  # -> Stream[str | int]
    reveal_type(pages.branch(len)[0])  # -> Stream[str]
    reveal_type(pages.map(len, errors="side").failures)  # -> Stream[FailedRow]
    pages.map(len, errors="sometimes")  # -> No overload variant of "map"
    by_length = pages.key_by(len)
    reveal_type(by_length)  # -> KeyedStream[int, str]
    reveal_type(by_length.count())  # -> Stream[tuple[int, int]]
    reveal_type(by_length.stateful(Visits))  # -> Stream[int]
    reveal_type(by_length.window(TumblingWindow(3)))  # -> Window[list[str]]
    wider: Stream[object] = pages
    graph = pages.map(len).collect()
    reveal_type(graph)  # -> Graph[list[int]]
    reveal_type(graph.run_sequentially({"pages": ["a"]}))  # -> list[int]
    reveal_type(system.run(graph))  # -> Run[list[int]]
    reveal_type(system.run(graph).finish())  # -> list[int]
    reveal_type(system.run(graph).results())  # -> Results[int]
    system.run(graph, batch_size=3, restore="folder")
    system.run(graph, windows=3)  # -> Unexpected keyword argument "windows"
    system.run(net, window=3)
    system.run(net, batch_size=3)  # -> Unexpected keyword argument "batch_size"
    reveal_type(pages.to(print))  # -> Graph[None]
    reveal_type(Graph(graph, pages.collect(name="pages")))  # -> Graph[dict[str, list[Any]]]
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What mypy says about each line of the program."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "program.py").write_text(PROGRAM)
    return by_mypy(folder)


EXPECTED = {
    number: text.partition("# -> ")[2]
    for number, text in enumerate(PROGRAM.splitlines(), start=1)
    if "# -> " in text
}


@pytest.mark.parametrize("number", EXPECTED)
def test_a_line_has_the_type_or_the_error_that_it_names(found: dict[int, str], number: int) -> None:
    said = found.get(number, "nothing at all")
    assert EXPECTED[number] in said, PROGRAM.splitlines()[number - 1]


def test_no_other_line_is_an_error(found: dict[int, str]) -> None:
    assert {number: said for number, said in found.items() if number not in EXPECTED} == {}
