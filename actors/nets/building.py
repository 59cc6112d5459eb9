"""The words for networks: each makes a term, and checks what it is given.

Patterns, filters and signatures may be written as text, in S-Net's notation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, get_args

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
    Choice,
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
from callboard.nets.terms.patterns import Pattern, Signature

Patterns: TypeAlias = str | Pattern | Iterable[str | Pattern]


def star(body: Net, exits: Patterns, *, ordered: bool = False, limit: int = 1_000_000) -> Star:
    """Put replicas of `body` in series, made on demand. A record that matches an exit leaves.

    `star(step, "{done}")` repeats `step` until a record has the field `done`. The exits are tried
    in front of the first replica, too. A record that would need more than `limit` replicas is an
    error. With `ordered=True` what comes of one record leaves before what comes of the next.
    """
    return Star(
        checked_net("a star's body", body),
        _patterns("a star's exits", exits),
        ordered=checks.flag("ordered", ordered),
        limit=checks.whole("a star's limit", limit),
    )


def split(body: Net, by: Label, *, ordered: bool = False, placed: bool = False) -> Split:
    """Make a replica of `body` for each value of a tag, `"<id>"`, or of a field, `"id"`.

    A field's values can be hashed. With `placed=True` the tag is also the number of the worker that
    the replica's boxes with threads run on.
    """
    label = _label("a split's tag", by)
    if placed and not is_tag(label):
        raise ValueError(f"placed=True wants a tag, the number of a worker, and not {label!r}")
    return Split(
        checked_net("a split's body", body),
        label,
        ordered=checks.flag("ordered", ordered),
        placed=checks.flag("placed", placed),
    )


def feedback(body: Net, backs: Patterns) -> Feedback:
    """Send each record that matches one of `backs` through `body`, as often as it does."""
    return Feedback(
        checked_net("a feedback's body", body), _patterns("a feedback's patterns", backs)
    )


def sync(*patterns: str | Pattern, timeout: float | None = None) -> Sync:
    """Keep a record for each pattern, then put out one that has the labels of all of them.

    It does so once, and lets all further records pass. `star(sync("{a}", "{b}"), "{a, b}")` goes
    on, and so does `join`. Records that wait longer than `timeout` seconds for the others become
    dead letters.
    """
    found = _patterns("a cell's patterns", patterns)
    if len(found) < 2:
        raise ValueError(f"a synchrocell has at least two patterns, not {len(found)}")
    return Sync(found, checks.timeout("a cell's timeout", timeout))


def filter(text: str | RecordFilter) -> RecordFilter:  # noqa: A001 - the term's name
    """Return the filter that a text says: `filter("{x, <n>} -> {x, <n=n-1>}; {y=x}")`."""
    if isinstance(text, RecordFilter):
        return text
    if not isinstance(text, str):
        raise TypeError(f"a filter is a text, not {safe_repr(text)}")
    from callboard.nets.language.parsing import parse_filter

    return parse_filter(text)


def choice(*branches: Net, ordered: bool = False, ties: Ties = "first") -> Choice:
    """Send each record to the branch whose input type matches it best: with most labels.

    The first of several best ones gets it, or with `ties="fair"` each in turn. `a | b` is
    `choice(a, b)`.
    """
    if len(branches) < 2:
        raise ValueError(f"a choice has at least two branches, not {len(branches)}")
    checks.one_of("ties", ties, get_args(Ties))
    nets = tuple(checked_net("a choice's branch", branch) for branch in branches)
    return Choice(nets, ordered=checks.flag("ordered", ordered), ties=ties)


def ordered(body: Net) -> Ordered:
    """Make a net's output as if one worker took one record after the other."""
    return Ordered(checked_net("an ordered net's body", body))


def net(body: Net, name: str, signature: str | Signature | None = None) -> NamedNet:
    """Give a net a name, which paths have, and a signature: `"{a} | {b} -> {c}, {d} -> ..."`.

    The signature is checked. Others see its inputs instead of the inferred ones. Outputs that have
    the labels of a declared one keep their other labels, which the next box may take. Labels of a
    record that the signature lacks go into the net, not around it.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"a net's name is a string that is not empty, not {safe_repr(name)}")
    if isinstance(signature, str):
        from callboard.nets.language.parsing import parse_signature

        signature = parse_signature(signature)
    if not isinstance(signature, (Signature, type(None))):
        raise TypeError(f"a net's signature is a text, not {safe_repr(signature)}")
    return NamedNet(name, checked_net(f"the body of the net {name}", body), signature)


def join(
    on: Label,
    of: Iterable[str | Pattern | Iterable[Label]],
    *,
    timeout: float | None = None,
    ordered: bool = False,
) -> Split | Choice:
    """Merge records with the same value of the label `on`: one with the labels of each of `of`.

    `join(on="id", of=("page", "price"))` makes a record with `page` and one with `price` into one
    with both, for each value of `id`: of the field, or of the tag in records that have no such
    field. With `"<id>"` it is the tag alone. Each of `of` is a label,
    several of them as a tuple, or a pattern such as `"{page, <size>}"`. Further records with the
    same value are merged in the same way. The merged record has all labels of the first part, and
    of each further one those that `of` says. Parts that wait longer than `timeout` seconds for the
    others become dead letters. With `ordered=True` the output is as if one worker had done it.
    """
    key = _label("what a join is on", on)
    if isinstance(of, (str, Pattern)):
        raise TypeError(f"a join is of several records, not {safe_repr(of)} alone")
    patterns = tuple(map(_part, _listed("what a join is of", of)))
    if len(patterns) < 2:
        raise ValueError(f"a join is of at least two records, not {len(patterns)}")
    whole: Variant = frozenset[Label]().union(*(pattern.variant for pattern in patterns))
    for pattern in patterns:
        if key in pattern.variant:
            raise ValueError(f"a join's parts have {key} all: {pattern} need not say it")
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
        raise ValueError(f"{what} is a label, such as 'id' or '<id>', not {safe_repr(value)}")
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
            raise TypeError(f"{what} are texts such as '{{a, <n>}}', not {safe_repr(value)}")
    if not found:
        raise ValueError(f"{what} are at least one")
    return tuple(found)


def _listed(what: str, values: Any) -> list[Any]:
    if not isinstance(values, Iterable):
        raise TypeError(f"{what} are texts such as '{{a, <n>}}', not {safe_repr(values)}")
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
        raise ValueError(f"{what} has at least one label, not {safe_repr(value)}")
    return Pattern(frozenset(_label(what, label) for label in labels))
