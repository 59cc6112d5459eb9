"""Errors of spawn(), and the arguments that it takes."""

import contextlib
import functools
import inspect
import threading
from collections.abc import Generator
from typing import Any

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
from callboard.policies import PlacementPolicy
from tests.waiting import in_threads


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


def ask(ref: ActorRef[Any], message: Any = "x") -> Any:
    return ref.ask(message).result(timeout=30)


# --- not an actor --------------------------------------------------------------------------------


class NotAnActor:
    def receive(self, message: Any) -> None:
        pass


@pytest.mark.parametrize("what", [7, "Echo", Echo(), lambda: Echo])
def test_a_value_that_is_not_a_class_is_refused(system: ActorSystem, what: Any) -> None:
    with pytest.raises(SpawnError, match=r"spawn\(\) expects a subclass of Actor, got "):
        system.spawn(what)
    assert system.actors == []


@pytest.mark.parametrize("cls", [NotAnActor, type])
def test_a_class_that_is_not_an_actor_is_refused(system: ActorSystem, cls: Any) -> None:
    with pytest.raises(SpawnError, match=f"subclass of Actor, got {cls.__qualname__}"):
        system.spawn(cls)


def test_a_class_without_receive_is_refused(system: ActorSystem) -> None:
    class Deaf(Actor[Any]):
        pass

    with pytest.raises(SpawnError, match=r"Deaf has no method `receive\(self, message\)`"):
        system.spawn(Deaf)
    with pytest.raises(SpawnError, match="Actor has no method `receive"):
        system.spawn(Actor)


@pytest.mark.parametrize("receive", [7, property(repr)])
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


def test_on_failure_may_not_be_a_coroutine_function(system: ActorSystem) -> None:
    async def coroutine(self: Any, *args: Any) -> None:
        pass

    cls: Any = type("Hooked", (Echo,), {"on_failure": coroutine})
    with pytest.raises(SpawnError, match=r"Hooked\.on_failure is `async`, but only `receive`, "):
        system.spawn(cls)


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a/b", 7])
def test_a_wrong_name_is_refused(system: ActorSystem, name: Any) -> None:
    with pytest.raises(SpawnError, match=r"a non-empty string without '/', got "):
        system.spawn(Echo, name=name)
    assert system.actors == []


def test_a_name_is_given_once(system: ActorSystem) -> None:
    first = system.spawn(Echo, name="echo")
    with pytest.raises(SpawnError, match="the system already has an actor named 'echo'"):
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


def test_an_asker_of_an_actor_whose_spawn_fails_is_told(system: ActorSystem) -> None:
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
    with pytest.raises(ActorStopped, match="/echo was stopped"):
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
    with pytest.raises(SpawnError, match="/first already has an actor named 'child'"):
        ask(first, "child")


def test_a_contested_name_goes_to_one_actor() -> None:
    with ActorSystem(workers=2) as system:
        start = threading.Barrier(4)
        got: list[Any] = []

        def spawn() -> None:
            start.wait()
            for number in range(50):
                with contextlib.suppress(SpawnError):
                    got.append(system.spawn(Echo, name=f"echo-{number}").name)

        in_threads(lambda _: spawn(), range(4))
        assert sorted(got) == sorted(f"echo-{number}" for number in range(50))


@pytest.mark.parametrize("mailbox", [7, BoundedMailbox])
def test_a_wrong_mailbox_is_refused(system: ActorSystem, mailbox: Any) -> None:
    with pytest.raises(SpawnError, match="expects a BoundedMailbox or a PriorityMailbox"):
        system.spawn(Echo, mailbox=mailbox)
    assert system.actors == []


def test_a_priority_beyond_32_bits_is_refused(system: ActorSystem) -> None:
    with pytest.raises(
        SpawnError, match="priority must be a whole number from 0 to 4294967295, got "
    ):
        system.spawn(Echo, priority=2**32)


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


class Named(Actor[Any]):
    def __init__(self, name: str = "Ada", *, priority: int = 3, context: str = "plain") -> None:
        self.given = name, priority, context

    def receive(self, message: Any) -> Any:
        return self.given


@pytest.mark.parametrize("option", [{"name": "x"}, {"priority": 1}, {"context": "own"}])
def test_an_option_that_may_be_an_argument_is_neither(system: ActorSystem, option: Any) -> None:
    ((name, value),) = option.items()
    why = (
        rf"spawn\(\) cannot tell whether {name}={value!r} is its option or an argument of Named, "
        rf"which takes \(name, priority, context\).* partial\(Named, {name}=\.\.\.\)"
    )
    for kind in (SpawnError, TypeError):
        with pytest.raises(kind, match=why):
            system.spawn(Named, **option)
    assert system.actors == []


def test_a_class_that_takes_any_arguments_by_name_is_not_given_options(system: ActorSystem) -> None:
    class Open(Actor[Any]):
        def __init__(self, **kwargs: Any) -> None:
            self.given = kwargs

        def receive(self, message: Any) -> Any:
            return self.given

    ref = system.spawn(Open, name="first", years=3)
    assert (ref.name, ref.ask("x").result(30)) == ("first", {"years": 3})


def test_a_positional_argument_leaves_its_name_to_the_option(system: ActorSystem) -> None:
    ref = system.spawn(Named, "Grace", name="first")
    assert (ref.name, ref.ask("x").result(30)) == ("first", ("Grace", 3, "plain"))


def test_arguments_in_a_partial_are_no_options(system: ActorSystem) -> None:
    grace = functools.partial(Named, name="Grace", priority=7)
    ref = system.spawn(grace, name="first", priority=5)
    assert (ref.name, ref.priority, ref.actor_class) == ("first", 5, Named)
    assert ref.ask("x").result(30) == ("Grace", 7, "plain")
    with pytest.raises(SpawnError, match="whether context='own' is its option"):
        system.spawn(grace, context="own")
    assert system.spawn(grace).ask("x").result(30) == ("Grace", 7, "plain")


def test_a_partial_takes_what_its_class_takes(system: ActorSystem) -> None:
    sized = functools.partial(Sized, 1)
    assert system.spawn(sized, color="blue").ask("x").result(30) == (1, "blue")
    with pytest.raises(SpawnError, match=r"Sized, which takes \(size, color\).* 'colour'"):
        system.spawn(functools.partial(sized, colour="red"))
    with pytest.raises(SpawnError, match="too many positional arguments"):
        system.spawn(sized, 2)
    with pytest.raises(SpawnError, match="expects a subclass of Actor, got <function"):
        system.spawn(functools.partial(ask))


def test_options_that_a_class_or_the_configuration_has_are_no_arguments() -> None:
    class Tuned(Actor[Any]):
        dedicated = True

        def __init__(self, *, dedicated: str = "mine", mailbox: str = "mine, too") -> None:
            self.given = dedicated, mailbox

        def receive(self, message: Any) -> Any:
            return self.given

    config = {"actors": {"tuned": {"mailbox": {"capacity": 7}}}}
    with ActorSystem(workers=1, config=config) as system:
        ref = system.spawn(Tuned, name="tuned")
        assert ref.ask("x").result(30) == ("mine", "mine, too")
        assert (ref._is_dedicated, ref._room) == (True, 7)


def test_a_restart_gives_the_arguments_of_a_partial_again(system: ActorSystem) -> None:
    class Mended(Named):
        def receive(self, message: Any) -> Any:
            if message == "fail":
                raise ValueError(message)
            return self.given

    mended = functools.partial(Mended, name="Grace")
    ref = system.spawn(mended, name="m", supervision="restart")
    ref.tell("fail")
    assert ref.ask("x").result(30) == ("Grace", 3, "plain")


def test_a_child_with_wrong_arguments_is_refused_where_it_is_spawned(system: ActorSystem) -> None:
    class Parent(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return self.spawn(Sized, 1, nmae="child")  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="did you mean 'name'"):
        system.spawn(Parent).ask("spawn").result(30)


def test_a_class_without_an_init_takes_nothing(system: ActorSystem) -> None:
    with pytest.raises(SpawnError, match="'supervison'; did you mean 'supervision'"):
        system.spawn(Echo, supervison="restart")  # type: ignore[call-overload]
    with pytest.raises(SpawnError, match="too many positional arguments"):
        system.spawn(Echo, 1)  # type: ignore[arg-type]


def test_a_signature_is_read_once_for_each_kind_of_call(
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
        system.spawn(Derived, 1, a=2)  # type: ignore[call-arg]  # its base's calls are not its own


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
        system.spawn(Made)  # type: ignore[call-arg,arg-type]
