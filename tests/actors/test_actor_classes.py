"""The kinds of classes that can be spawned as actors."""

import abc
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pytest

from callboard import Actor, ActorRef, ActorSystem, CallboardError

M = TypeVar("M")


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


def ask(ref: ActorRef[Any], message: Any = "x") -> Any:
    return ref.ask(message).result(timeout=30)


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

    classes: list[Any] = [Typed, Free, Bound, Free[str], functools.partial(Free[str])]
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


def test_an_instance_made_by_an_actor_is_not_an_actor(system: ActorSystem) -> None:
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
