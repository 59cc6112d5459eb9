"""The graph of messages between actors."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, CallboardError, ConfigError
from callboard.observing import MessageEdge, MessageGraph, message_graph, record_trace
from tests.observing.actors import Box, Pinger

SVG = "{http://www.w3.org/2000/svg}"


class Parser(Actor[str]):
    def __init__(self, store: ActorRef[Any]) -> None:
        self.store = store

    def receive(self, line: str) -> None:
        for word in line.split():
            self.store.tell(word)


def words(path: Path, arrows: int, lines: int, **names: str) -> MessageGraph:
    with (
        ActorSystem("words", workers=1, monitoring="times") as system,
        record_trace(system, path, arrows=arrows),
    ):
        store = system.spawn(Box, name=names.get("store", "store"))
        parser = system.spawn(Parser, store, name=names.get("parser", "parser"))
        parser.tell_many(["to be", "or not to be"] * (lines // 2))
        system.drain(60)
    return message_graph(system)  # which may be stopped


def test_a_picture_has_an_edge_for_each_pair_that_talks(tmp_path: Path) -> None:
    picture = words(tmp_path / "run.perfetto-trace", 1, 100)
    assert picture.edges == (
        MessageEdge("/parser", "/store", 300),
        MessageEdge("(outside)", "/parser", 100),
    )
    assert picture.nodes == ("/parser", "/store", "(outside)")
    assert (picture.system, picture.by, picture.samples, picture.left_out) == (
        "words",
        "actor",
        400,
        0,
    )
    assert str(picture) == (
        "/parser    ->  /store   300\n"
        "(outside)  ->  /parser  100\n"
        "messages of words, estimated from samples: 400"
    )
    assert repr(picture) == "<MessageGraph of 'words': nodes 3, edges 2>"


def test_numbers_of_messages_are_estimated_from_the_samples(tmp_path: Path) -> None:
    picture = words(tmp_path / "run.perfetto-trace", 100, 10_000)
    first, second = picture.edges
    assert 22_000 < first.messages < 38_000  # 30,000
    assert 6_000 < second.messages < 14_000  # 10,000
    assert picture.samples == (first.messages + second.messages) / 100


def test_an_ask_comes_from_the_asker(tmp_path: Path) -> None:
    class Asker(Actor[ActorRef[Any]]):
        async def receive(self, other: ActorRef[Any]) -> None:
            await other.ask(0)

    with ActorSystem(workers=1, monitoring="times") as system:
        box = system.spawn(Box, name="box")
        with record_trace(system, tmp_path / "run.perfetto-trace", arrows=1):
            system.spawn(Asker, name="asker").tell(box)
            system.drain(60)
        assert MessageEdge("/asker", "/box", 1) in message_graph(system).edges


def test_a_picture_by_class_has_all_actors_of_a_class_as_one(tmp_path: Path) -> None:
    with ActorSystem(workers=1, monitoring="times") as system:
        with record_trace(system, tmp_path / "run.perfetto-trace", arrows=1):
            boxes = [system.spawn(Box) for _ in range(30)]
            parsers = [system.spawn(Parser, box) for box in boxes]
            for parser in parsers:
                parser.tell("a b c")
            system.drain(60)
            boxes[0].stop()
            system.drain(60)
        assert message_graph(system) == message_graph(system, "class")
        assert message_graph(system).edges == (
            MessageEdge("Parser", "Box", 90),
            MessageEdge("(outside)", "Parser", 30),
        )
        assert len(message_graph(system, "actor").edges) == 60
        with pytest.raises(ConfigError, match="`by` must be one of actor, class, got 'path'"):
            message_graph(system, "path")


def test_a_picture_counts_on_from_trace_to_trace_and_not_between(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times") as system:
        box = system.spawn(Box, name="box")
        for _ in range(2):
            with record_trace(system, path, arrows=1):
                box.tell(0)
                system.drain(60)
                box.tell(0)
                system.drain(60)
                assert message_graph(system).edges
            box.tell_many(range(100))
            system.drain(60)
        assert message_graph(system).edges == (MessageEdge("(outside)", "/box", 4),)


def test_without_a_trace_the_error_says_how_to_have_one() -> None:
    with (
        ActorSystem("words", workers=1, monitoring="times") as system,
        pytest.raises(
            CallboardError,
            match=r"the system 'words' has no trace.*record_trace\(system, path\)",
        ),
    ):
        message_graph(system)


def test_a_picture_has_a_box_for_each_node_and_a_line_for_each_edge(tmp_path: Path) -> None:
    picture = words(tmp_path / "run.perfetto-trace", 1, 100)
    drawing = ET.fromstring(picture._repr_svg_())
    assert len(drawing.findall(f".//{SVG}rect")) == 3
    assert len(drawing.findall(f"./{SVG}g/{SVG}path")) == 2
    titles = [title.text for title in drawing.iter(f"{SVG}title")]
    assert "/parser to /store: about 300" in titles


def test_circles_and_actors_that_tell_themselves_are_drawn(tmp_path: Path) -> None:
    class Loner(Actor[int]):
        def receive(self, left: int) -> None:
            if left:
                self.ref.tell(left - 1)

    with ActorSystem(workers=1, monitoring="times") as system:
        ping, pong = system.spawn(Pinger, name="ping"), system.spawn(Pinger, name="pong")
        loner = system.spawn(Loner, name="loner")
        ping.tell(pong)
        pong.tell(ping)
        system.drain(60)
        with record_trace(system, tmp_path / "run.perfetto-trace", arrows=1):
            ping.tell(9)
            loner.tell(5)
            system.drain(60)
        picture = message_graph(system)
    assert MessageEdge("/loner", "/loner", 5) in picture.edges
    assert len(ET.fromstring(picture._repr_svg_()).findall(f"./{SVG}g/{SVG}path")) == 5


def test_names_with_markup_are_shown_as_text(tmp_path: Path) -> None:
    name = '<script>alert("1")<script>&'
    picture = words(tmp_path / "run.perfetto-trace", 1, 2, store=name)
    assert picture.edges[0].receiver == f"/{name}"
    drawing = picture._repr_svg_()
    assert "<script" not in drawing
    assert f"/{name}" in [title.text for title in ET.fromstring(drawing).iter(f"{SVG}title")]


def test_an_empty_picture_is_one(tmp_path: Path) -> None:
    with ActorSystem("quiet", workers=1, monitoring="times") as system:
        with record_trace(system, tmp_path / "run.perfetto-trace"):
            pass
        picture = message_graph(system)
    assert str(picture) == "messages of quiet, estimated from samples: 0"
    ET.fromstring(picture._repr_svg_())
