"""The arguments of a spawn: options, and arguments of the class, checked at the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Literal, TypedDict, get_origin

from callboard.core.errors import ArgumentsError, SpawnError
from callboard.core.text import did_you_mean, safe_repr
from callboard.mailboxes import Mailbox
from callboard.scheduling.placement import PlacementPolicy
from callboard.supervision import Directive, Supervision


class ActorOptions(TypedDict, total=False):
    """The options of actors, for `spawn`, for routers and for pools."""

    mailbox: Mailbox | None
    """A BoundedMailbox or a PriorityMailbox; by default one without a limit."""
    placement: PlacementPolicy | type[PlacementPolicy] | str | Mapping[str, Any] | None
    """A placement policy for this actor alone, or its name."""
    priority: int | None
    """A number for priority policies that use one; 0 by default."""
    supervision: Supervision | Directive | Callable[[BaseException], Directive] | None
    """A Supervision, or one of its directives."""
    dedicated: bool
    """Give the actor its own thread, because it blocks."""
    context: Literal["own", "sender"] | None
    """With "own", the actor has its own context variables, none of which is set at first. With
    "sender", it handles each message with a copy of the sender's variables. The default is the
    system's; if that is "sender", native actors and those with `receive_many` still have their own.
    """
    event_loop: bool
    """Run its coroutines on the system's event loop, where asyncio can be used."""
    concurrency: int
    """The most messages that its `async def receive` may be handling at once; 1 by default. They
    begin in order, and only one runs at any moment.
    """


class SpawnOptions(ActorOptions, total=False):
    """The options of `spawn`: those of ActorOptions, and the actor's name."""

    name: str | None
    """Unique among the top-level actors, or the siblings; without `/`."""


OF_ACTORS: frozenset[str] = ActorOptions.__optional_keys__
OF_SPAWN: frozenset[str] = SpawnOptions.__optional_keys__


def taken_apart(cls: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return a call's class, and its arguments by position and in a `partial`.

    `Box[int]` is the class `Box`: its parameter is for type checkers.
    """
    fixed = {}
    if isinstance(cls, partial):
        cls, args, fixed = cls.func, cls.args + args, cls.keywords
    return get_origin(cls) or cls, args, fixed


def divided(
    call: str,
    cls: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[type, tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """Return the class of a call, its arguments by position and by name, and its actors' options.

    `options` are the call's own ones; those that are None were not given. Raises SpawnError.
    """
    cls, args, fixed = taken_apart(cls, args)
    if not isinstance(cls, type):
        raise SpawnError(f"{call} expects a subclass of Actor, got {safe_repr(cls)}")
    given = {name: value for name, value in options.items() if value is not None}
    refuse_misfit(cls, args, fixed, {**given, **kwargs}, OF_ACTORS | options.keys(), call)
    own = {name: value for name, value in kwargs.items() if name not in OF_ACTORS}
    of_actors = {name: value for name, value in kwargs.items() if name in OF_ACTORS}
    return cls, args, {**fixed, **own}, of_actors


def refuse_misfit(
    cls: type,
    args: tuple[Any, ...],
    fixed: Mapping[str, Any],
    kwargs: Mapping[str, Any],
    options: Collection[str] = OF_SPAWN,
    call: str = "spawn()",
) -> None:
    """Raise ArgumentsError if a class cannot be made with the arguments of a call.

    Those in `kwargs` with the name of one of the `options` are options, and may not have the name
    of an argument that the class is not given: such a call has two meanings. Arguments that are
    `fixed` by a `partial` are not options. Only what is written in Python says what it takes; of
    others the worker finds out.
    """
    own = {**fixed, **{name: kwargs[name] for name in kwargs if name not in options}}
    for signature in _signatures(cls):
        takes = list(signature.parameters.values())[1:]
        names = ", ".join(f"{_STARS.get(one.kind, '')}{one.name}" for one in takes)
        try:
            given = signature.bind_partial(None, *args, **own).arguments
            for one in takes:
                if one.name in kwargs and one.name not in {*own, *given} and one.kind in _NAMED:
                    raise ArgumentsError(
                        f"{call} cannot tell whether {one.name}={safe_repr(kwargs[one.name])} is "
                        f"its option or an argument of {cls.__qualname__}, which takes ({names}): "
                        f"pass the argument with partial({cls.__qualname__}, {one.name}=...)"
                    )
            signature.bind(None, *args, **own)
        except ArgumentsError:
            raise
        except TypeError as error:
            known = [*options, *(one.name for one in takes)]
            unknown = [name for name in own if name not in signature.parameters]
            hint = did_you_mean(unknown[0], known) if unknown else ""
            raise ArgumentsError(
                f"{call} cannot make a {cls.__qualname__}, which takes ({names}): {error}{hint}"
            ) from None


_STARS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _signatures(cls: type) -> Iterator[inspect.Signature]:
    """Yield what `__new__` and `__init__` take, with `self`, where that is known."""
    makers = [inspect.getattr_static(cls, name) for name in ("__new__", "__init__")]
    if makers == [object.__dict__["__new__"], object.__dict__["__init__"]]:
        yield inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)])
    for maker in makers:
        function = maker.__func__ if isinstance(maker, staticmethod) else maker
        # A wrapped one takes its wrapper's arguments.
        if inspect.isfunction(function) and not hasattr(function, "__signature__"):
            yield inspect.signature(function, follow_wrapped=False)
