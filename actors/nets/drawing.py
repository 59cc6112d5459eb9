"""Pictures of nets, as Mermaid flowcharts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callboard.nets.terms.network import (
    Box,
    Choice,
    Feedback,
    Net,
    RecordFilter,
    Split,
    Star,
    Sync,
    checked_net,
)
from callboard.nets.types.places import Place, places_in

# Characters that a Mermaid label must escape.
_ENTITIES = str.maketrans(
    {'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "#": "#35;", "\n": " "}
)


def mermaid(net: Net) -> str:
    """Write a net as a Mermaid flowchart.

    Boxes are rectangles, filters slanted, and synchrocells have double sides. A choice, and the
    test of a replication, is a rhombus.
    """
    return _Picture({}).of(checked_net("what mermaid() is given", net))


def mermaid_of_run(net: Net, places: Mapping[str, Mapping[str, Any]]) -> str:
    """Write a net as it is now: with the records that came to each place, and the replicas."""
    return _Picture(places).of(net)


class _Picture:
    def __init__(self, places: Mapping[str, Mapping[str, Any]]) -> None:
        self.places = places
        self.lines = ["flowchart LR"]
        self.number = 0

    def of(self, net: Net) -> str:
        root = places_in(net)
        first, last = self.draw(root)
        self.lines += [f'    in(["in"]) --> {first}', f'    {last} --> out(["out"])']
        return "\n".join(self.lines) + "\n"

    def draw(self, place: Place) -> tuple[str, str]:
        """Draw a net; return the ends of the lines into it and out of it."""
        net, parts = place.net, place.parts
        match net:
            case Box(name):
                return self.leaf(place, name, '["', '"]')
            case RecordFilter():
                return self.leaf(place, str(net), '[/"', '"/]')
            case Sync():
                return self.leaf(place, str(net), '[["', '"]]')
            case Choice(_, is_ordered):
                first, last = self.rhombus("||" if is_ordered else "|"), self.dot()
                for part in parts:
                    begin, end = self.draw(part)
                    self.lines += [f"    {first} --> {begin}", f"    {end} --> {last}"]
                return first, last
            case Star(_, exits):
                return self.loop(place, "one more replica", ", ".join(map(str, exits)))
            case Feedback(_, backs):
                return self.loop(place, ", ".join(map(str, backs)), "else")
            case Split(_, by):
                return self.split(place, by)
        first, last = "", ""
        for part in parts:
            begin, end = self.draw(part)
            if last:
                self.lines.append(f"    {last} --> {begin}")
            first, last = first or begin, end
        return first, last

    def leaf(self, place: Place, text: str, left: str, right: str) -> tuple[str, str]:
        seen = self.places.get(place.path)
        counts = f"<br/>{seen['records']} records, {seen['entities']} now" if seen else ""
        name = self.new()
        self.lines.append(f"    {name}{left}{_escaped(text)}{counts}{right}")
        return name, name

    def loop(self, place: Place, inward: str, outward: str) -> tuple[str, str]:
        test, last = self.rhombus("?"), self.dot()
        begin, end = self.draw(place.parts[0])
        self.lines += [
            f'    {test} -- "{_escaped(inward)}" --> {begin}',
            f"    {end} --> {test}",
            f'    {test} -- "{_escaped(outward)}" --> {last}',
        ]
        return test, last

    def split(self, place: Place, by: str) -> tuple[str, str]:
        first, last = self.rhombus(by), self.dot()
        self.lines.append(f'    subgraph {self.new()}["a replica for each {_escaped(by)}"]')
        begin, end = self.draw(place.parts[0])
        self.lines += ["    end", f"    {first} --> {begin}", f"    {end} --> {last}"]
        return first, last

    def rhombus(self, text: str) -> str:
        name = self.new()
        self.lines.append(f'    {name}{{"{_escaped(text)}"}}')
        return name

    def dot(self) -> str:
        name = self.new()
        self.lines.append(f'    {name}((" "))')
        return name

    def new(self) -> str:
        self.number += 1
        return f"n{self.number}"


def _escaped(text: str) -> str:
    return text.translate(_ENTITIES)
