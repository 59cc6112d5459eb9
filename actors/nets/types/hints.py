"""Signatures of boxes from type hints: parameters and the fields of results name labels."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Annotated, Any, NotRequired, Required, TypeAlias, get_args, get_origin

from callboard.core.text import safe_repr
from callboard.nets.terms.labels import Label, tag, text_of
from callboard.nets.terms.network import Box, without_partial
from callboard.nets.terms.patterns import BoxSignature

MARK = "a tag of nets"
Tag: TypeAlias = Annotated[int, MARK]
"""The hint of a parameter or a field that is a tag: an integer that nets can read."""

GENERATORS = (AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator)
MOST_OPTIONAL = 4  # keys of a TypedDict, each of which doubles the variants


def signature_of(function: Callable[..., Any]) -> tuple[BoxSignature, type | None]:
    """Return a function's signature by its hints, and the class whose instance it takes, if one.

    TypeError says what of the hints names no labels.
    """
    called = called_function(function)
    hints = _hints(called)
    parameters = required_parameters(function)
    accepts = hints.get(parameters[0]) if len(parameters) == 1 else None
    if accepts is not None and _is_record(accepts):
        inputs = _labels_taken(accepts)
    else:
        accepts = None
        inputs = tuple(_label(name, hints.get(name)) for name in parameters)
    outputs: tuple[tuple[Label, ...], ...] | None = None
    if "return" in hints:
        outputs = _outputs(called, hints["return"])
    return BoxSignature(inputs, outputs), accepts


def note_on_hints(box: Box, missing: Iterable[Label]) -> str:
    """Explain how a box's hints led to labels that a record lacks, or return nothing."""
    if box.function is None:
        return ""
    if box._accepts is not None:
        return f"; the box's only parameter stands for a record, {box._accepts.__name__}"
    hints = _hints(called_function(box.function))
    for label in sorted(missing):
        if _is_record(hints.get(label)):
            return (
                f"; {label} is a field with a value of the class {hints[label].__name__}: a class "
                "stands for the record as the hint of an only parameter"
            )
    return ""


def called_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a box calls; of a class, its instances' `__call__`."""
    function = without_partial(function)
    if inspect.isclass(function):
        if "__call__" not in dir(function) or not inspect.isfunction(function.__call__):
            raise TypeError(
                f"the class {function.__name__} is not a box: it has no __call__ method"
            )
        return typing.cast(Callable[..., Any], function.__call__)
    if not callable(function):
        raise TypeError(
            f"box() expects a function or a class with __call__, got {safe_repr(function)}"
        )
    if inspect.isroutine(function):
        return function
    wrapped = getattr(function, "__wrapped__", None)  # functools.lru_cache
    return called_function(wrapped) if callable(wrapped) else type(function).__call__


def name_of_function(function: Callable[..., Any]) -> str:
    """Return the name of a function, of a class, or of an object's class."""
    function = without_partial(function)
    return str(getattr(function, "__name__", type(function).__name__))


def check_arguments(name: str, function: Callable[..., Any], signature: BoxSignature) -> None:
    """Check that a box's function takes the labels of a signature."""
    try:
        parameters = parameters_of(function)
    except TypeError:  # a function in C without this
        return
    inputs = signature.inputs or ()
    try:
        inspect.Signature(parameters).bind(*inputs)
    except TypeError as error:
        raise TypeError(
            f"the box {name} cannot be called with {text_of(inputs)} of its signature: {error}"
        ) from None


def check_class(function: Callable[..., Any]) -> None:
    """Check that an instance can be made, if the function of a box is a class."""
    cls = without_partial(function)
    if not inspect.isclass(cls):
        return
    try:
        if isinstance(function, partial):
            inspect.signature(cls).bind(*function.args, **function.keywords)
        else:
            inspect.signature(cls).bind()
    except ValueError:  # it is unknown
        return
    except TypeError as error:
        raise TypeError(
            f"the class {cls.__name__} cannot make an instance for the box: {error}. Pass its "
            f"arguments by functools.partial({cls.__name__}, ...)"
        ) from None


def required_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters that a box is called with: those without a default."""
    name = name_of_function(function)
    names = []
    for parameter in parameters_of(function):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"the box {name} has *{parameter.name}: write its signature as text")
        if parameter.default is not parameter.empty:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            raise TypeError(
                f"the box {name} is called by position, and {parameter.name} is keyword-only"
            )
        names.append(parameter.name)
    return names


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return a function's parameters; of a class, those of its instances' `__call__`."""
    called = called_function(function)
    is_class = inspect.isclass(without_partial(function))
    try:
        found = inspect.signature(called if is_class else function)
    except ValueError as error:
        text = safe_repr(function)
        raise TypeError(f"the parameters of {text} are unknown: write a signature") from error
    return list(found.parameters.values())[is_class:]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, SyntaxError) as error:
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(
            f"the hints of {name} cannot be read ({error}): write its signature as text"
        ) from error


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and (is_dataclass(hint) or typing.is_typeddict(hint))


def _label(name: str, hint: Any) -> Label:
    if get_origin(hint) in (Required, NotRequired):
        (hint,) = get_args(hint)
    is_tag = get_origin(hint) is Annotated and MARK in hint.__metadata__
    return tag(name) if is_tag else name


def _labels_taken(record: Any) -> tuple[Label, ...]:
    """Return the labels with which an instance can be made: what has a default is left out."""
    hints = _hints(record)
    if typing.is_typeddict(record):
        names = [name for name, hint in hints.items() if not _may_be_missing(record, name, hint)]
    else:
        names = [
            field.name
            for field in fields(record)
            if field.init and field.default is MISSING and field.default_factory is MISSING
        ]
    return tuple(_label(name, hints[name]) for name in names)


def _outputs(function: Callable[..., Any], hint: Any) -> tuple[tuple[Label, ...], ...] | None:
    """Return the variants that a hint of a result says, or None if it leaves them open."""
    if _generates(function):
        if hint in GENERATORS or get_origin(hint) not in GENERATORS:
            return None
        hint = get_args(hint)[0]
    variants: dict[tuple[Label, ...], None] = {}
    for alternative in _alternatives(hint):
        found = _variants(function, alternative)
        if found is None:
            return None
        variants |= dict.fromkeys(found)
    return tuple(variants)


def _generates(function: Callable[..., Any]) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (typing.Union, types.UnionType):
        return get_args(hint)
    return (hint,)


def _variants(function: Callable[..., Any], hint: Any) -> list[tuple[Label, ...]] | None:
    if hint in (None, type(None), typing.NoReturn, typing.Never):
        return []
    if _is_record(hint):
        hints = _hints(hint)
        if is_dataclass(hint):
            names = [field.name for field in fields(hint)]
            return [tuple(_label(name, hints[name]) for name in names)]
        return _subsets(hint, hints)
    origin = get_origin(hint) or hint
    if origin is Any or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return None
    name = getattr(function, "__qualname__", repr(function))
    text = getattr(hint, "__name__", repr(hint)) if isinstance(hint, type) else repr(hint)
    raise TypeError(
        f"the box {name} returns {text}, which names no labels: "
        "return a dataclass or a TypedDict, or write its signature as text"
    )


def _may_be_missing(record: Any, name: str, hint: Any) -> bool:
    if get_origin(hint) in (Required, NotRequired):  # in a string, the class does not see it
        return get_origin(hint) is NotRequired
    return name not in record.__required_keys__


def _subsets(record: Any, hints: dict[str, Any]) -> list[tuple[Label, ...]]:
    optional = [name for name, hint in hints.items() if _may_be_missing(record, name, hint)]
    if len(optional) > MOST_OPTIONAL:
        raise TypeError(
            f"{record.__name__} has {len(optional)} keys that may be missing, "
            f"and a box's output has at most {MOST_OPTIONAL}"
        )
    found = []
    for chosen in range(2 ** len(optional)):
        absent = {name for at, name in enumerate(optional) if chosen >> at & 1}
        found.append(
            tuple(_label(name, hint) for name, hint in hints.items() if name not in absent)
        )
    return found
