"""The arguments of a spawn: that the class takes them, said at the call and not by a worker."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from callboard.core.errors import ArgumentsError
from callboard.core.text import did_you_mean


def refuse_misfit(
    cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Collection[str]
) -> None:
    """Raise ArgumentsError if a class cannot be made with these, which are no options of spawn().

    Only what is written in Python says what it takes; of others the worker finds out.
    """
    for signature in _signatures(cls):
        try:
            signature.bind(None, *args, **kwargs)
        except TypeError as error:
            takes = list(signature.parameters.values())[1:]
            names = ", ".join(f"{_STARS.get(one.kind, '')}{one.name}" for one in takes)
            known = [*options, *(one.name for one in takes)]
            unknown = [name for name in kwargs if name not in signature.parameters]
            hint = did_you_mean(unknown[0], known) if unknown else ""
            raise ArgumentsError(
                f"spawn() cannot make a {cls.__qualname__}, which takes ({names}): {error}{hint}"
            ) from None


_STARS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


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
