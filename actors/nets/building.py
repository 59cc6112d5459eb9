"""The functions that make nets: `box` makes one from a function, the others combine nets.

Patterns, filters and signatures may be written as text, in S-Net's notation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, get_args, overload

from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.nets.terms.labels import (
    Label,
    Variant,
    binding_tag,
    is_tag,
    name_of,
    tag,
)
from callboard.nets.terms.network import (
    Box,
    BoxOptions,
    Choice,
    Effect,
    Feedback,
    NamedNet,
    Net,
    Ordered,
    RecordFilter,
    Split,
    Star,
    Sync,
    Ties,
    checked_net,
)
from callboard.nets.terms.patterns import BoxSignature, Pattern, Signature
from callboard.nets.types.hints import (
    called_function,
    check_arguments,
    check_class,
    name_of_function,
    signature_of,
)


@overload
def box(
    function: Callable[..., Any],
    signature: str | BoxSignature | None = None,
    *,
    name: str | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
    backoff: float = 0.1,
    errors: Effect = "fail",
    threads: bool = False,
    dedicated: bool = False,
) -> Box: ...


@overload
def box(
    function: str | BoxSignature | None = None,
    /,
    *,
    signature: str | BoxSignature | None = None,
    name: str | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
    backoff: float = 0.1,
    errors: Effect = "fail",
    threads: bool = False,
    dedicated: bool = False,
) -> Callable[[Callable[..., Any]], Box]: ...


def box(
    function: Callable[..., Any] | str | BoxSignature | None = None,
    signature: str | BoxSignature | None = None,
    *,
    name: str | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
    backoff: float = 0.1,
    errors: Effect = "fail",
    threads: bool = False,
    dedicated: bool = False,
) -> Box | Callable[[Callable[..., Any]], Box]:
    """Make a box from a function: `@box`, `@box("(x) -> (y)")`, or `box(function, "(x) -> (y)")`.

    Calling the box calls the function. Without a signature, the function's type hints define it.
    Each parameter without a default is a field, or a tag if its hint is `Tag`. If the hint of the
    only parameter is a dataclass or a TypedDict, the parameter is that whole record; next to other
    parameters it is a field with a value of that class. The result's hint is such a class, a union
    of them, or `Iterator[...]` for a generator function. `None` means no output; without a hint,
    the outputs are open.

    Args:
        function: A plain function returns one output, or None; a generator function yields any
            number. Either may be `async`. A class is instantiated for each replica of the box, and
            the instance is called. Use `functools.partial(Class, argument)` to pass arguments to
            it.
        signature: The labels of the inputs and outputs, as text.
        name: For paths, errors and statistics. By default the function's.
        concurrency: The most calls at a time. By default 1, and no limit for a coroutine function.
        timeout: The most seconds that a call may take.
        retries: How often a failed call is repeated.
        backoff: The seconds before the first repetition, which double each time.
        errors: After an error, the run fails ("fail"), the record becomes a dead letter ("skip"),
            or a record `{error}` comes out ("variant"). With the last two, and with `retries`, the
            outputs of a generator are collected until it ends, so a record that fails has none.
        threads: Run calls on a separate pool of threads, because they block or release the lock.
        dedicated: Give each replica its own thread.
    """
    if isinstance(function, (str, BoxSignature)):
        if signature is not None:
            raise TypeError("a box has one signature, not two")
        function, signature = None, function
    options = BoxOptions(concurrency, timeout, retries, backoff, errors, threads, dedicated)
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError(f"a box's name expects a non-empty string, got {safe_repr(name)}")
    if not isinstance(signature, (str, BoxSignature, type(None))):
        raise TypeError(f"a box's signature expects a string, got {safe_repr(signature)}")

    def made(function: Callable[..., Any]) -> Box:
        return _made(function, signature, name, options)

    return made if function is None else made(function)


def _made(
    function: Callable[..., Any],
    signature: str | BoxSignature | None,
    name: str | None,
    options: BoxOptions,
) -> Box:
    if isinstance(function, Box):
        raise TypeError(f"{function.name} is already a box")
    called = called_function(function)
    is_async = inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
    check_class(function)
    known = name or name_of_function(function)
    if is_async and (options.threads or options.dedicated):
        word = "threads" if options.threads else "dedicated"
        raise ValueError(f"the box {known} is async: it takes no {word}=True")
    accepts = None
    if signature is None:
        signature, accepts = signature_of(function)
    else:
        if isinstance(signature, str):
            signature = parsed(signature)
        check_arguments(known, function, signature)
    return Box(known, signature, function, options, accepts)


def parsed(signature: str) -> BoxSignature:
    """Parse a signature. Raises NetSyntaxError with the place of the error."""
    from callboard.nets.language.parsing import parse_box_signature

    return parse_box_signature(signature)


Patterns: TypeAlias = str | Pattern | Iterable[str | Pattern]


def star(body: Net, exits: Patterns, *, ordered: bool = False, limit: int = 1_000_000) -> Star:
    """Chain replicas of `body`, made on demand. A record that matches an exit leaves.

    `star(step, "{done}")` repeats `step` until a record has the field `done`. The exits are also
    tried before the first replica. A record that would need more than `limit` replicas is an error.
    With `ordered=True`, the outputs of one record leave before those of the next.
    """
    return Star(
        checked_net("a star's body", body),
        _patterns("a star's exits", exits),
        ordered=checks.flag("ordered", ordered),
        limit=checks.whole("a star's limit", limit),
    )


def split(body: Net, by: Label, *, ordered: bool = False, placed: bool = False) -> Split:
    """Make a replica of `body` for each value of a tag, `"<id>"`, or of a field, `"id"`.

    Values of the field must be hashable. With `placed=True` the tag is also the number of the
    worker that runs the replica's boxes with threads.
    """
    label = _label("a split's tag", by)
    if placed and not is_tag(label):
        raise ValueError(f"placed=True expects a tag, the number of a worker, got {label!r}")
    return Split(
        checked_net("a split's body", body),
        label,
        ordered=checks.flag("ordered", ordered),
        placed=checks.flag("placed", placed),
    )


def feedback(body: Net, backs: Patterns) -> Feedback:
    """Send each record through `body` while it matches one of `backs`."""
    return Feedback(
        checked_net("a feedback's body", body), _patterns("a feedback's patterns", backs)
    )


def sync(*patterns: str | Pattern, timeout: float | None = None) -> Sync:
    """Keep a record for each pattern, then emit one that has the labels of all of them.

    This happens once; all further records pass through. `star(sync("{a}", "{b}"), "{a, b}")`
    repeats it, and so does `join`. Records that wait longer than `timeout` seconds for the others
    become dead letters.
    """
    found = _patterns("a cell's patterns", patterns)
    if len(found) < 2:
        raise ValueError(f"a synchrocell expects at least two patterns, got {len(found)}")
    return Sync(found, checks.timeout("a cell's timeout", timeout))


def filter(text: str | RecordFilter) -> RecordFilter:  # noqa: A001 - the term's name
    """Parse a filter: `filter("{x, <n>} -> {x, <n=n-1>}; {y=x}")`."""
    if isinstance(text, RecordFilter):
        return text
    if not isinstance(text, str):
        raise TypeError(f"filter() expects a string, got {safe_repr(text)}")
    from callboard.nets.language.parsing import parse_filter

    return parse_filter(text)


def choice(*branches: Net, ordered: bool = False, ties: Ties = "first") -> Choice:
    """Send each record to the branch whose input type matches it with the most labels.

    If several match equally well, the first gets it, or with `ties="fair"` each in turn. `a | b` is
    `choice(a, b)`.
    """
    if len(branches) < 2:
        raise ValueError(f"a choice expects at least two branches, got {len(branches)}")
    checks.one_of("ties", ties, get_args(Ties))
    nets = tuple(checked_net("a choice's branch", branch) for branch in branches)
    return Choice(nets, ordered=checks.flag("ordered", ordered), ties=ties)


def ordered(body: Net) -> Ordered:
    """Order a net's outputs as if one worker handled one record after the other."""
    return Ordered(checked_net("an ordered net's body", body))


def net(body: Net, name: str, signature: str | Signature | None = None) -> NamedNet:
    """Give a net a name for paths, and a signature: `"{a} | {b} -> {c}, {d} -> ..."`.

    The signature is checked. Other nets see its inputs instead of the inferred ones. An output with
    the labels of a declared one keeps its other labels, which the next box may take. Labels of a
    record that are not in the signature go into the net, not around it.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"a net's name expects a non-empty string, got {safe_repr(name)}")
    if isinstance(signature, str):
        from callboard.nets.language.parsing import parse_signature

        signature = parse_signature(signature)
    if not isinstance(signature, (Signature, type(None))):
        raise TypeError(f"a net's signature expects a string, got {safe_repr(signature)}")
    return NamedNet(name, checked_net(f"the body of the net {name}", body), signature)


def join(
    on: Label,
    of: Iterable[str | Pattern | Iterable[Label]],
    *,
    timeout: float | None = None,
    ordered: bool = False,
) -> Split | Choice:
    """Merge records with the same value of the label `on`, one with the labels of each of `of`.

    `join(on="id", of=("page", "price"))` merges a record with `page` and one with `price`, for each
    value of `id`. Further records with the same value are merged in the same way. The merged record
    has all labels of the first part, and those labels of each further one that `of` names.

    Args:
        on: "id" is a field, or the tag in records without this field; "<id>" is only the tag.
        of: For each part a label, a tuple of labels, or a pattern such as "{page, <size>}".
        timeout: Parts that wait for more seconds for the others become dead letters.
        ordered: Order the outputs as if one worker had made them.
    """
    key = _label("the key of a join", on)
    if isinstance(of, (str, Pattern)):
        raise TypeError(f"a join expects several records, got {safe_repr(of)}")
    patterns = tuple(map(_part, _listed("the parts of a join", of)))
    if len(patterns) < 2:
        raise ValueError(f"a join expects at least two records, got {len(patterns)}")
    whole: Variant = frozenset[Label]().union(*(pattern.variant for pattern in patterns))
    for pattern in patterns:
        if key in pattern.variant:
            raise ValueError(f"all parts of a join have {key}: leave it out of {pattern}")
        if pattern.variant == whole:
            raise ValueError(
                f"each part of a join has labels that another lacks, and {pattern} has those of all"
            )
    cell = Sync(patterns, checks.timeout("a join's timeout", timeout))
    cells, in_order = Star(cell, (Pattern(whole),)), checks.flag("ordered", ordered)
    by_key = Split(cells, key, ordered=in_order)
    if is_tag(key):
        return by_key
    return Choice((by_key, Split(cells, tag(key), ordered=in_order)), ordered=in_order)


def _label(what: str, value: Any) -> Label:
    name = name_of(value) if isinstance(value, str) else ""
    if not name.isidentifier() or value not in (name, tag(name), binding_tag(name)):
        raise ValueError(f"{what} expects a label, such as 'id' or '<id>', got {safe_repr(value)}")
    return str(value)


def _patterns(what: str, values: Any) -> tuple[Pattern, ...]:
    if isinstance(values, (str, Pattern)):
        values = (values,)
    found: list[Pattern] = []
    for value in _listed(what, values):
        if isinstance(value, Pattern):
            found.append(value)
        elif isinstance(value, str):
            from callboard.nets.language.parsing import parse_patterns

            found += parse_patterns(value)
        else:
            raise TypeError(f"{what} expect strings such as '{{a, <n>}}', got {safe_repr(value)}")
    if not found:
        raise ValueError(f"{what} expect at least one pattern")
    return tuple(found)


def _listed(what: str, values: Any) -> list[Any]:
    if not isinstance(values, Iterable):
        raise TypeError(f"{what} expect strings such as '{{a, <n>}}', got {safe_repr(values)}")
    return list(values)


def _part(value: Any) -> Pattern:
    what = "a part of a join"
    if isinstance(value, Pattern):
        return value
    if isinstance(value, str) and "{" in value:
        from callboard.nets.language.parsing import parse_pattern

        return parse_pattern(value)
    labels = [value] if isinstance(value, str) else _listed(what, value)
    if not labels:
        raise ValueError(f"{what} expects at least one label, got {safe_repr(value)}")
    return Pattern(frozenset(_label(what, label) for label in labels))
