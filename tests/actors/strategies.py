"""Hypothesis strategies for random programs (programs.py)."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from callboard import BoundedMailbox, PriorityMailbox, Supervision
from tests.actors.programs import (
    TICK,
    After,
    Ask,
    Deed,
    Kind,
    Program,
    Reply,
    Script,
    Simple,
    Sleep,
    Spawn,
    Stop,
    Tell,
    TellMany,
    Wait,
    Watch,
    priority_of,
)

targets = st.integers(0, 5)
ticks = st.integers(0, 3)

overflows = st.sampled_from(["block", "help", "drop_newest", "drop_oldest", "fail", "throttle"])
# A short timeout: two actors that wait for room in each other's mailboxes are no failure.
bounded = st.builds(BoundedMailbox, st.integers(1, 4), overflows, st.just(0.05))
prioritised = st.builds(
    PriorityMailbox,
    st.just(priority_of),
    st.none() | st.integers(1, 4),
    overflows.filter(lambda overflow: overflow != "drop_oldest"),
    st.just(0.05),
)
supervisions = st.builds(
    Supervision,
    directive=st.sampled_from(["stop", *["restart"] * 4, *["resume"] * 4, "escalate"]),
    scope=st.sampled_from(["one", "one", "all", "rest"]),
    limit=st.sampled_from([None, 1, 5]),
    backoff=st.sampled_from([0.0, 0.0, TICK]),
    max_backoff=st.just(3 * TICK),
)


def kinds(*, dedicated: bool) -> st.SearchStrategy[Kind]:
    return st.builds(
        Kind,
        role=st.sampled_from(["each", "each", "many", "async", "async"]),
        mailbox=st.none() | bounded | prioritised,
        supervision=supervisions,
        fails_at_start=st.sampled_from([0, 0, 0, 1]),
        dedicated=st.sampled_from([False, False, False, dedicated]),
        event_loop=st.booleans(),
        concurrency=st.sampled_from([1, 1, 2, 4]),
        placement=st.none() | st.integers(0, 3),
    )


# Weighted: a program in which every other deed stops somebody is soon a program of dead letters.
simple = st.builds(
    Simple,
    st.sampled_from([*["stash", "unstash", "become", "unbecome"] * 3, *["fail"] * 4, "rebalance"]),
)
leaves: st.SearchStrategy[Any] = st.one_of(
    simple,
    simple,
    st.builds(Watch, targets),
    st.builds(Watch, targets),
    st.builds(Sleep, ticks),
    st.builds(Sleep, ticks),
    st.builds(Stop, st.none() | targets),
)


def scripts(depth: int, *, dedicated: bool) -> st.SearchStrategy[Script]:
    """Scripts that send messages, which send messages, and so on, `depth` levels deep."""
    deeds = leaves
    if depth > 0:
        inner: st.SearchStrategy[Script] = st.deferred(
            lambda: scripts(depth - 1, dedicated=dedicated)
        )
        deeds = sends(inner, dedicated=dedicated) | leaves
        deeds |= sends(inner, dedicated=dedicated)
    return st.lists(deeds, max_size=4).map(tuple)


def sends(inner: st.SearchStrategy[Script], *, dedicated: bool) -> st.SearchStrategy[Deed]:
    return st.one_of(
        st.builds(Tell, targets, inner),
        st.builds(Tell, targets, inner),
        st.builds(TellMany, targets, st.lists(inner, max_size=10).map(tuple)),
        st.builds(Ask, targets, inner, st.none() | ticks),
        st.builds(Wait, targets, inner),
        st.builds(Reply, inner),
        st.builds(After, ticks, inner),
        st.builds(Spawn, kinds(dedicated=dedicated), inner),
    )


def programs(*, threads: int, dedicated: bool) -> st.SearchStrategy[Program]:
    inner: st.SearchStrategy[Script] = st.deferred(lambda: scripts(2, dedicated=dedicated))
    outside = st.one_of(
        *[sends(inner, dedicated=dedicated)] * 8,
        st.builds(Stop, targets),
        st.just(Simple("rebalance")),
    )
    return plain(
        st.builds(
            Program,
            actors=st.lists(kinds(dedicated=dedicated), min_size=1, max_size=4).map(tuple),
            outside=st.lists(
                st.lists(outside, min_size=2, max_size=12).map(tuple), min_size=1, max_size=threads
            ).map(tuple),
        )
    )


@st.composite
def plain(draw: st.DrawFn, strategy: st.SearchStrategy[Program]) -> Program:
    """Draw what Hypothesis prints as any object.

    It takes exponential time to print what it built, in the depth of nested calls: a program that
    failed would end as one that took too long.
    """
    return copy.deepcopy(draw(strategy))
