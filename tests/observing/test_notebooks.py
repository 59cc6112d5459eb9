"""Pictures and tables in notebooks: well-formed, with the figures, and with markup as text."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from callboard import ActorSystem, BoundedMailbox
from callboard.nets import box, choice, feedback, filter, ordered, split, star, sync  # noqa: A004
from callboard.streams import entry
from tests.observing.actors import Box, Holder, Passage
from tests.waiting import until

EVIL = "<script>alert(1)&"
"""A name that would be markup."""


def shown(value: Any, how: str = "_repr_html_") -> str:
    """Return what a notebook shows, without tags; the markup must be well-formed."""
    text: str = getattr(value, how)()
    assert "<script" not in text
    tree = ElementTree.fromstring(f"<div>{text}</div>")
    return " ".join(piece.strip() for piece in tree.itertext() if piece.strip())


def test_a_graph_is_drawn() -> None:
    graph = entry("clicks").map(str, name=EVIL).collect()
    text = shown(graph, "_repr_svg_")
    assert "clicks" in text
    assert "<script>" in text


def test_a_run_and_its_statistics_are_tables() -> None:
    with (
        ActorSystem("shop", workers=1) as system,
        system.run(entry("n").map(str, name=EVIL).collect()) as run,
    ):
        run.send("n", range(7))
        run.snapshot()
        system.drain(60)  # a lane counts its rows after it has handed them on
        for value in (run, run.statistics()):
            text = shown(value)
            assert "7 rows in" in text
            assert EVIL in text
            assert "rows out" in text
        assert "Run running" in shown(run)


def test_statistics_and_waits_are_tables() -> None:
    passage = Passage()
    with ActorSystem("shop", workers=1, monitoring="mailboxes") as system:
        system.spawn(Box, name=EVIL).tell(1)
        system.drain(60)
        holder = system.spawn(Holder, name="holder")
        holder.tell(passage)
        assert passage.entered.wait(30)
        text = shown(system.statistics())
        assert f"/{EVIL} shop-0 1 1" in text
        assert "shop-0 has been in a message of /holder" in text
        text = shown(system.why_waiting(stuck_after=0.0))
        assert "/holder stuck has been in one message" in text
        assert "in pass_through" in text
        passage.leave.set()


def test_waits_of_many_actors_are_cut() -> None:
    passage = Passage()
    with ActorSystem("shop", workers=1) as system:
        holder = system.spawn(Holder)
        holder.tell(passage)
        assert passage.entered.wait(30)
        for i in range(120):
            system.spawn(Box, name=f"box-{i}")
        assert "... and 21 more" in shown(system.why_waiting())
        passage.leave.set()


def test_a_ref_is_shown_with_its_figures() -> None:
    with ActorSystem("shop", workers=1) as system:
        ref = system.spawn(Box, name=EVIL, mailbox=BoundedMailbox(10))
        ref.tell_many([1, 2, 3])
        system.drain(60)
        assert shown(ref).endswith(f"/{EVIL} Box 3 0 a message")
        ref.stop()
        until(lambda: "nothing: it has ended" in shown(ref))


def test_a_net_and_its_run_are_drawn() -> None:
    @box("(n) -> (n)")
    def less(n: int) -> Any:
        return {"n": n - 1}

    other = filter("{m} -> {m}")
    net = less >> (less | other) >> star(split(less, "n"), "{stop}") >> sync("{n}", "{m}")
    net = net >> feedback(less, "{n, again}") >> ordered(less) >> choice(less, other, ordered=True)
    text = shown(net)
    assert text.count("less") == 6
    for words in (
        "one of",
        "one of, in order",
        "replicas in series, until",
        "again, while",
        "a replica for",
    ):
        assert words in text
    assert "[|" in text
    with ActorSystem("shop", workers=1) as system:
        run = system.run(less >> less)
        run.send([{"n": 5}])
        assert len(run.finish(60)) == 1
        assert shown(run).count("less 1 records") == 2


@pytest.mark.parametrize("text", [EVIL, "\ud800", "a\nb"])
def test_any_text_is_escaped(text: str) -> None:
    from callboard.core.markup import block, paragraph, table

    for markup in (block(text), paragraph(text), table([text], [[text]], [0])):
        assert "<script" not in markup
        markup.encode()
