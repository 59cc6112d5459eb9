"""What spawn() refuses, and what kinds of classes it takes."""

import abc
import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorStopped,
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    DeadLetter,
    Future,
    SpawnError,
    SystemClosed,
)
from callboard.scheduling.placement import PlacementPolicy

M = TypeVar("M")


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


def ask(ref: ActorRef[Any], message: Any = "x") -> Any:
    return ref.ask(message).result(timeout=30)


# --- what is no actor -----------------------------------------------------------------------------


class NotAnActor:
    def receive(self, message: Any) -> None:
        pass


@pytest.mark.parametrize(
    "what", [None, 7, "Echo", [], {}, Echo(), Echo.receive, Actor[int], lambda: Echo]
)
def test_what_is_no_class_is_refused_by_its_value(system: ActorSystem, what: Any) -> None:
    with pytest.raises(SpawnError, match=r"spawn\(\) wants a class, a subclass of Actor, not "):
        system.spawn(what)
    assert system.actors == []


@pytest.mark.parametrize("cls", [NotAnActor, int, type])
def test_a_class_that_is_no_actor_is_refused_by_its_name(system: ActorSystem, cls: Any) -> None:
    with pytest.raises(SpawnError, match=f"subclass of Actor, and {cls.__qualname__} is not one"):
        system.spawn(cls)


def test_a_class_without_receive_is_refused(system: ActorSystem) -> None:
    class Deaf(Actor[Any]):
        pass

    with pytest.raises(SpawnError, match=r"Deaf has no method `receive\(self, message\)`"):
        system.spawn(Deaf)
    with pytest.raises(SpawnError, match="Actor has no method `receive"):
        system.spawn(Actor)


@pytest.mark.parametrize("receive", [7, "receive", (), property(repr)])
def test_a_receive_that_cannot_be_called_is_refused(system: ActorSystem, receive: Any) -> None:
    cls: Any = type("Odd", (Actor,), {"receive": receive})
    with pytest.raises(SpawnError, match=r"Odd\.receive is .+, which cannot be called"):
        system.spawn(cls)


def test_a_receive_that_yields_is_refused(system: ActorSystem) -> None:
    class Yields(Actor[Any]):
        def receive(self, message: Any) -> Generator[Any, None, None]:
            yield message

    class AsyncYields(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            yield message

    with pytest.raises(SpawnError, match=r"Yields\.receive has a `yield`"):
        system.spawn(Yields)
    with pytest.raises(SpawnError, match=r"AsyncYields\.receive has a `yield`"):
        system.spawn(AsyncYields)


@pytest.mark.parametrize("hook", ["on_start", "on_stop", "on_failure"])
def test_a_hook_that_is_a_coroutine_function_is_refused(system: ActorSystem, hook: str) -> None:
    async def coroutine(self: Any, *args: Any) -> None:
        pass

    cls: Any = type("Hooked", (Echo,), {hook: coroutine})
    with pytest.raises(SpawnError, match=rf"Hooked\.{hook} is `async`; only `receive` may be"):
        system.spawn(cls)


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a/b", "/", 7, b"name", ("a",)])
def test_a_name_that_is_none_is_refused(system: ActorSystem, name: Any) -> None:
    with pytest.raises(SpawnError, match=r"a non-empty string without '/', not "):
        system.spawn(Echo, name=name)
    assert system.actors == []


def test_a_name_is_given_once(system: ActorSystem) -> None:
    first = system.spawn(Echo, name="echo")
    with pytest.raises(SpawnError, match="the system has an actor named 'echo' already"):
        system.spawn(Echo, name="echo")
    assert system.actors == [first]


def test_a_name_is_free_again_when_its_actor_has_stopped(system: ActorSystem) -> None:
    first = system.spawn(Echo, name="echo")
    first.stop()
    system.drain()
    second = system.spawn(Echo, name="echo")
    assert second != first
    assert ask(second) == "x"


def test_a_name_is_free_again_when_a_spawn_failed(system: ActorSystem) -> None:
    with pytest.raises(CallboardError):
        system.spawn(Echo, name="echo", placement="nowhere")
    assert ask(system.spawn(Echo, name="echo")) == "x"


def test_who_asks_an_actor_whose_spawn_fails_is_told_so(system: ActorSystem) -> None:
    class Early(PlacementPolicy):
        def place(self, actor: Any, workers: Any) -> Any:
            asked.append(actor.ask("x"))
            watching.append(actor)
            raise ValueError("no place")

    asked: list[Future[Any]] = []
    watching: list[ActorRef[Any]] = []
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    with pytest.raises(CallboardError, match="no place"):
        system.spawn(Echo, name="echo", placement=Early())
    with pytest.raises(ActorStopped, match="/echo has stopped"):
        asked[0].result(timeout=30)
    assert [(letter.message, letter.reason) for letter in letters] == [("x", "stopped")]
    assert not watching[0].is_alive
    with pytest.raises(ActorStopped):
        ask(watching[0])


def test_siblings_have_different_names_and_cousins_may_have_the_same(system: ActorSystem) -> None:
    class Parent(Actor[Any]):
        def receive(self, message: Any) -> ActorRef[Any]:
            return self.spawn(Echo, name=message)

    first, second = system.spawn(Parent, name="first"), system.spawn(Parent, name="second")
    paths = [ask(first, "child").path, ask(second, "child").path]
    assert paths == ["/first/child", "/second/child"]
    with pytest.raises(SpawnError, match="/first has an actor named 'child' already"):
        ask(first, "child")


def test_of_many_who_want_a_name_one_gets_it() -> None:
    with ActorSystem(workers=2) as system:
        start = threading.Barrier(4)
        got: list[Any] = []

        def spawn() -> None:
            start.wait()
            for number in range(50):
                with contextlib.suppress(SpawnError):
                    got.append(system.spawn(Echo, name=f"echo-{number}").name)

        threads = [threading.Thread(target=spawn) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == sorted(f"echo-{number}" for number in range(50))


@pytest.mark.parametrize("mailbox", [7, "bounded", BoundedMailbox, {"capacity": 1}])
def test_what_is_no_mailbox_is_refused(system: ActorSystem, mailbox: Any) -> None:
    with pytest.raises(SpawnError, match="wants a BoundedMailbox or a PriorityMailbox as mailbox"):
        system.spawn(Echo, mailbox=mailbox)
    assert system.actors == []


@pytest.mark.parametrize("priority", [-1, 2**32, "high", 1.5])
def test_what_is_no_priority_is_refused(system: ActorSystem, priority: Any) -> None:
    with pytest.raises(SpawnError, match="priority is a whole number from 0 to 4294967295, not "):
        system.spawn(Echo, priority=priority)


def test_every_option_may_be_none(system: ActorSystem) -> None:
    ref = system.spawn(
        Echo, name=None, mailbox=None, placement=None, priority=None, supervision=None
    )
    assert ask(ref) == "x"


def test_a_spawn_that_failed_leaves_nothing_behind(system: ActorSystem) -> None:
    wrong: list[dict[str, Any]] = [
        {"placement": "nowhere"},
        {"priority": -1, "dedicated": True},
        {"mailbox": 7, "dedicated": True},
        {"name": "/", "dedicated": True},
    ]
    before = set(threading.enumerate())
    for options in wrong:
        with pytest.raises(CallboardError):
            system.spawn(Echo, **options)
    assert system.actors == []
    assert set(threading.enumerate()) <= before


def test_a_stopped_system_spawns_no_actors() -> None:
    with ActorSystem(name="shop") as system:
        pass
    with pytest.raises(SystemClosed, match="the actor system 'shop' was stopped"):
        system.spawn(Echo)


def test_a_spawn_that_races_with_the_systems_stop_is_refused_or_stopped() -> None:
    for _ in range(50):
        system = ActorSystem()
        start = threading.Barrier(2)
        refs: list[ActorRef[Any]] = []

        def spawn(
            system: ActorSystem = system,
            start: threading.Barrier = start,
            refs: list[ActorRef[Any]] = refs,
        ) -> None:
            start.wait()
            with contextlib.suppress(SystemClosed):
                while True:
                    refs.append(system.spawn(Echo))

        spawner = threading.Thread(target=spawn)
        spawner.start()
        start.wait()
        system.stop(timeout=30)
        spawner.join()
        assert not any(ref.is_alive for ref in refs)


# --- kinds of classes -----------------------------------------------------------------------------


def test_subclasses_may_call_super_init_or_not(system: ActorSystem) -> None:
    class Calls(Echo):
        def __init__(self, value: int) -> None:
            super().__init__()
            self.value = value

    class CallsNot(Echo):
        def __init__(self, value: int) -> None:
            self.value = value

    class Inherits(Calls):
        pass

    for cls in [Calls, CallsNot, Inherits]:
        assert ask(system.spawn(cls, 7)) == "x"
        assert ask(system.spawn(cls, value=7)) == "x"


def test_an_actors_ref_is_known_in_its_init(system: ActorSystem) -> None:
    class Early(Actor[Any]):
        def __init__(self) -> None:
            self.early = self.ref
            self.child = self.spawn(Echo)
            self.home = self.system

        def receive(self, message: Any) -> Any:
            return self.early, self.child, self.home

    ref = system.spawn(Early)
    early, child, home = ask(ref)
    assert (early, child.parent, home) == (ref, ref, system)


def test_a_class_may_have_slots(system: ActorSystem) -> None:
    class Slotted(Actor[Any]):
        __slots__ = ("count",)

        def __init__(self) -> None:
            self.count = 0

        def receive(self, message: Any) -> int:
            self.count += 1
            return self.count

    ref = system.spawn(Slotted)
    assert [ask(ref), ask(ref)] == [1, 2]


def test_a_class_may_be_generic(system: ActorSystem) -> None:
    class Typed(Actor[int]):
        def receive(self, message: int) -> int:
            return message

    class Free(Actor[M], Generic[M]):
        def receive(self, message: M) -> M:
            return message

    class Bound(Free[str]):
        pass

    classes: list[Any] = [Typed, Free, Bound]
    for cls in classes:
        assert ask(system.spawn(cls)) == "x"


def test_a_class_may_be_a_dataclass(system: ActorSystem) -> None:
    @dataclass
    class Cart(Actor[Any]):
        owner: str
        items: list[Any] = field(default_factory=list)

        def receive(self, message: Any) -> Any:
            self.items.append(message)
            return self.owner, self.items

    assert ask(system.spawn(Cart, "ada")) == ("ada", ["x"])
    assert ask(system.spawn(Cart, owner="bob", items=[])) == ("bob", ["x"])


def test_a_class_may_be_frozen(system: ActorSystem) -> None:
    @dataclass(frozen=True)
    class Constant(Actor[Any]):
        value: int

        def receive(self, message: Any) -> Any:
            return self.value, self.ref

    ref = system.spawn(Constant, 7)
    assert ask(ref) == (7, ref)


def test_a_class_may_have_other_bases_and_a_metaclass(system: ActorSystem) -> None:
    class Mixin:
        def hello(self) -> str:
            return "hello"

    class Abstract(Actor[Any], abc.ABC):
        @abc.abstractmethod
        def receive(self, message: Any) -> Any: ...

    class Concrete(Mixin, Abstract):
        def receive(self, message: Any) -> Any:
            return self.hello()

    assert ask(system.spawn(Concrete)) == "hello"
    abstract: Any = Abstract
    ref = system.spawn(abstract)
    system.drain()
    assert not ref.is_alive
    assert "abstract" in str(system.dead_letters.failures[-1][1])


def test_an_attribute_of_any_name_is_the_actors_own(system: ActorSystem) -> None:
    class Named(Actor[Any]):
        def __init__(self) -> None:
            self._ref = self.cell = self.instance = self.handler = self._system = "mine"

        def receive(self, message: Any) -> Any:
            return self.ref, self._ref

    ref = system.spawn(Named)
    assert ask(ref) == (ref, "mine")


def test_equality_of_instances_is_the_users_business(system: ActorSystem) -> None:
    class Equal(Echo):
        def __eq__(self, other: object) -> bool:
            raise LookupError("do not compare")

        __hash__ = None  # type: ignore[assignment]

    assert ask(system.spawn(Equal)) == "x"


class CallableHandler:
    def __call__(self, message: Any) -> Any:
        return ("called", message)


def answer(prefix: str, message: Any) -> Any:
    return (prefix, message)


@pytest.mark.parametrize(
    ("receive", "expected"),
    [
        (staticmethod(lambda message: ("static", message)), ("static", "x")),
        (classmethod(lambda cls, message: (cls.__name__, message)), ("Odd", "x")),
        # Bare, a partial is no method before Python 3.14, and one from then on.
        (staticmethod(functools.partial(answer, "partial")), ("partial", "x")),
        (functools.partialmethod(lambda self, p, message: (p, message), "bound"), ("bound", "x")),
        (CallableHandler(), ("called", "x")),
        (lambda self, message: (type(self).__name__, message), ("Odd", "x")),
    ],
)
def test_receive_may_be_any_callable(
    system: ActorSystem, receive: Callable[..., Any], expected: Any
) -> None:
    cls: Any = type("Odd", (Actor,), {"receive": receive})
    assert ask(system.spawn(cls)) == expected


def test_an_object_made_by_calling_the_class_says_that_it_lives_nowhere() -> None:
    echo = Echo()
    assert echo.receive("x") == "x", "good for tests of the class alone"
    uses: list[Callable[[], Any]] = [
        lambda: echo.ref,
        lambda: echo.sender,
        lambda: echo.system,
        lambda: echo.stop(),
        lambda: echo.spawn(Echo),
        lambda: echo.become(repr),
        lambda: echo.stash(),
        lambda: echo.after(1, "x"),
    ]
    for use in uses:
        with pytest.raises(CallboardError, match="this Echo was made by calling the class"):
            use()


def test_an_actor_that_makes_another_by_calling_the_class_has_made_no_actor(
    system: ActorSystem,
) -> None:
    class Maker(Actor[Any]):
        def __init__(self, depth: int = 0) -> None:
            self.other = Maker(depth + 1) if depth < 2 else None

        def receive(self, message: Any) -> Any:
            assert self.other is not None
            with pytest.raises(CallboardError, match="made by calling the class"):
                self.other.ref  # noqa: B018
            return self.ref

    ref = system.spawn(Maker)
    assert ask(ref) is ref


def test_a_class_with_a_new_of_its_own_is_made_with_it(system: ActorSystem) -> None:
    class Made(Actor[Any]):
        def __new__(cls, *args: Any, **kwargs: Any) -> "Made":
            made = super().__new__(cls)
            made.given = (args, kwargs)
            return made

        given: Any

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            pass

        def receive(self, message: Any) -> Any:
            return self.given

    assert ask(system.spawn(Made, 1, two=2)) == ((1,), {"two": 2})


# --- arguments ------------------------------------------------------------------------------------


class Sized(Actor[Any]):
    def __init__(self, size: int, *, color: str = "red") -> None:
        self.size = size
        self.color = color

    def receive(self, message: Any) -> Any:
        return self.size, self.color


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"a Sized, which takes \(size, color\): missing a required argument: 'size'"),
        ((1, 2), {}, "too many positional arguments"),
        (
            (1,),
            {"prioritty": 5},
            "unexpected keyword argument 'prioritty'; did you mean 'priority'",
        ),
        ((1,), {"colour": "red"}, "'colour'; did you mean 'color'"),
        ((1,), {"size": 2}, "multiple values for argument 'size'"),
        ((1,), {"zzz": 2}, "unexpected keyword argument 'zzz'$"),
    ],
)
def test_arguments_that_a_class_does_not_take_are_refused_at_the_spawn(
    system: ActorSystem, args: Any, kwargs: Any, message: str
) -> None:
    for kind in (SpawnError, TypeError):
        with pytest.raises(kind, match=message):
            system.spawn(Sized, *args, **kwargs)
    assert system.actors == []
    assert system.spawn(Sized, 1, color="blue").ask("x").result(30) == (1, "blue")


def test_a_child_with_wrong_arguments_is_refused_where_it_is_spawned(system: ActorSystem) -> None:
    class Parent(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return self.spawn(Sized, 1, nmae="child")

    with pytest.raises(TypeError, match="did you mean 'name'"):
        system.spawn(Parent).ask("spawn").result(30)


def test_a_class_without_an_init_takes_nothing(system: ActorSystem) -> None:
    with pytest.raises(SpawnError, match="'supervison'; did you mean 'supervision'"):
        system.spawn(Echo, supervison="restart")
    with pytest.raises(SpawnError, match="too many positional arguments"):
        system.spawn(Echo, 1)


def test_what_a_class_takes_is_asked_once_for_each_kind_of_call(
    system: ActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counted(Actor[Any]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            pass

        def receive(self, message: Any) -> None:
            pass

    class Derived(Counted):
        def __init__(self) -> None:
            super().__init__()

    calls: list[Any] = []
    bind = inspect.Signature.bind

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return bind(*args, **kwargs)

    monkeypatch.setattr(inspect.Signature, "bind", counted)
    for _ in range(10):
        system.spawn(Counted, 1, a=2)
        system.spawn(Counted, 1, b=2)
    assert len(calls) == 2
    with pytest.raises(SpawnError):
        system.spawn(Derived, 1, a=2)  # its base's calls are not its own


def test_a_wrapped_init_takes_what_its_wrapper_takes(system: ActorSystem) -> None:
    def giving(function: Any) -> Any:
        @functools.wraps(function)
        def given(self: Any, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("extra", None)
            function(self, 7, *args, **kwargs)

        return given

    class Given(Sized):
        __init__ = giving(Sized.__init__)

    assert system.spawn(Given, extra=1).ask("x").result(30) == (7, "red")


def test_a_class_with_a_new_of_its_own_says_what_it_takes_there(system: ActorSystem) -> None:
    class Made(Actor[Any]):
        size: int

        def __new__(cls, size: int) -> "Made":
            made = super().__new__(cls)
            made.size = size
            return made

        def receive(self, message: Any) -> int:
            return self.size

    assert system.spawn(Made, 3).ask("x").result(30) == 3
    with pytest.raises(SpawnError, match=r"takes \(size\)"):
        system.spawn(Made)
