"""Graphs: mistakes in building one, its names, its pictures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from queue import Queue
from statistics import fmean
from typing import Any, cast

import pytest

from callboard.streams import Graph, GraphError, SessionWindow, SlidingWindow, TumblingWindow, entry

rows: Any = entry("rows")
keyed = rows.key_by(hash)


class NoReceive:
    pass


class Ends:
    def receive(self, row: Any) -> None: ...

    def on_final(self) -> None: ...


class ManyOnly:
    def receive_many(self, rows: Any) -> Any:
        return rows


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: entry(""), "an entry's name must be a non-empty string, got ''"),
        (lambda: rows.map(3), r"map\(\)'s argument: expected a function, got 3"),
        (lambda: rows.filter(None), r"filter\(\)'s argument: expected a function, got None"),
        (lambda: rows.map(abs, name=""), "an operator's name must be a non-empty string"),
        (lambda: rows.map(abs, errors="ignore"), "one of fail, skip, side, got 'ignore'"),
        (lambda: rows.to(print, errors="side"), "a sink has no side output"),
        (lambda: rows.to(3), "a sink must be a path, a function, a ref or an object"),
        (
            lambda: rows.to(Queue()),
            r"a sink with put\(\) must also have close\(\), and <queue.Queue .* none",
        ),
        (lambda: rows.key_by("user"), r"key_by\(\)'s argument: expected a function, got 'user'"),
        (
            lambda: rows.key_by(hash, partitions=0),
            "partitions must be a whole number from 1 to 4096",
        ),
        (lambda: rows.reduce(sum, every=0), "every must be a whole number of at least 1, got 0"),
        (lambda: rows.batch(2.5), "a batch's size must be a whole number of at least 1, got 2.5"),
        (lambda: rows.batch(True), "a batch's size must be a whole number of at least 1, got True"),
        (lambda: rows.to_arrow(0), "a batch's size must be a whole number of at least 1, got 0"),
        (lambda: rows.top_k(0), "k must be a whole number of at least 1, got 0"),
        (lambda: rows.frequent(epsilon=0), "epsilon expects a number from 1e-9 to below 1, got 0"),
        (lambda: rows.frequent(epsilon="x"), "epsilon must be a finite number, got 'x'"),
        (lambda: rows.frequent(epsilon=0.1, support=0.01), "support expects a number from eps"),
        (lambda: rows.sample(), r"sample\(\) expects either every= or fraction="),
        (lambda: rows.sample(fraction=2), "fraction must be a number from 0 to 1, got 2"),
        (lambda: rows.sample(fraction=0.5, seed=-1), "seed must be a whole number from 0"),
        (
            lambda: rows.throttle(0),
            "rate must be a number of rows per second of at least 1e-9, got 0",
        ),
        (lambda: rows.branch(), r"branch\(\) expects at least one function"),
        (
            lambda: rows.window(5),
            "windows must be a TumblingWindow, SlidingWindow or SessionWindow, got 5",
        ),
        (lambda: rows.window(TumblingWindow(5), late="side"), "late='side' is for windows by time"),
        (
            lambda: rows.window(TumblingWindow(5), late="keep"),
            "late must be one of drop, side, include",
        ),
        (lambda: TumblingWindow(0), "size must be a whole number of at least 1, got 0"),
        (lambda: TumblingWindow(5, ordered=True), "ordered=True is about time"),
        (
            lambda: SlidingWindow(5, 0, by=int),
            "step must be a length of time above zero, got 0",
        ),
        (lambda: SessionWindow(-1, by=int), "gap must be a length of time above zero, got -1"),
        (lambda: SessionWindow(1, by=cast(Any, 3)), "by: expected a function, got 3"),
        (lambda: rows.stateful(NoReceive), "NoReceive'> has no method `receive`"),
        (lambda: rows.stateful(Ends()), r"stateful\(\) expects a class to make objects of"),
        (lambda: rows.stateless(Ends), "has a method `on_final`, so it is for stateful"),
        (lambda: rows.stateless(abs, 3), "arguments need a class"),
        (lambda: keyed.stateful(ManyOnly), "ManyOnly has no method `receive`"),
        (lambda: rows.flat_map(list, sides=["out"]), "outputs must have distinct names"),
        (lambda: rows.map(abs).side("late"), "no side output 'late': it has none"),
        (lambda: rows.map(abs).failures, "no side output 'failures'"),
        (
            lambda: rows.map(abs, errors="side").collect().run_sequentially({"rows": []}),
            "the side output 'failures' of 'abs' has no reader",
        ),
        (lambda: Graph(), "a graph must have a sink"),
        (lambda: Graph(rows), "expected graphs, each with its sinks"),
        (
            lambda: rows.union(entry("rows")).collect(),
            "entry and entry, have the name 'rows': make one, and use it twice",
        ),
        (
            lambda: rows.map(abs, name="a").filter(abs, name="a").collect(),
            "two operators, map and filter, have the name 'a'",
        ),
        (
            lambda: rows.union(rows.stateful(ManyOnly)).collect(),
            "'ManyOnly' receives many rows at once, .* at 'union'",
        ),
        (
            lambda: rows.collect().run_sequentially({"cols": [1]}),
            "the graph has no entry 'cols': it has 'rows'",
        ),
        (
            lambda: rows.collect().run_sequentially({"rows": [1]}, batch_size=0),
            "batch_size must be a whole number from 1 to 2147483647, got 0",
        ),
    ],
)
def test_mistakes_in_a_graph_are_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        build()


def test_operators_are_named_after_their_functions_and_numbered() -> None:
    graph = rows.map(abs).map(abs).map(lambda n: n).key_by(abs).stateful(Ends).collect()
    names = [line.split("  ")[0] for line in graph.describe().splitlines()]
    assert names == ["rows", "abs", "abs 2", "map", "Ends", "collect"]


def test_a_name_that_was_given_is_not_taken_by_another() -> None:
    graph = rows.map(abs).map(len, name="abs").collect()
    names = [line.split("  ")[0] for line in graph.describe().splitlines()]
    assert names == ["rows", "abs 2", "abs", "collect"]


def test_one_collector_gives_a_list_and_several_a_list_each() -> None:
    one, other = rows.collect(), rows.map(abs).collect(name="sizes")
    assert one.run_sequentially({"rows": [-1]}) == [-1]
    both = Graph(one, other)
    assert both.run_sequentially({"rows": [-1]}) == {"collect": [-1], "sizes": [1]}
    assert both.collectors == ("collect", "sizes")
    assert both.entries == ("rows",)
    assert rows.to(print).run_sequentially({"rows": []}) is None


def test_a_graph_runs_any_number_of_times_from_the_start() -> None:
    graph = rows.count().collect()
    for _ in range(2):
        assert graph.run_sequentially({"rows": ["a", "b"]}) == [1, 2]


def test_a_long_chain_is_built() -> None:
    stream = rows
    for _ in range(3_000):
        stream = stream.map(abs)
    graph = stream.collect()
    assert graph.run_sequentially({"rows": [-1]}) == [1]
    assert graph.draw().count("<rect") == 3_002


carts = (
    entry("clicks")
    .map(str.split)
    .filter(len, name="not empty")
    .key_by(len, partitions=64)
    .scan(0, lambda most, words: max(most, len(words)), name="longest")
    .map(lambda pair: pair[1], name="words")
    .reduce(fmean, every=10_000)
    .collect()
)


def test_a_graph_explains_itself() -> None:
    assert carts.describe() == (
        "clicks     entry\n"
        "split      map, of clicks, any number of workers\n"
        "not empty  filter, of split, any number of workers\n"
        "longest    scan, of not empty, 64 partitions of keys, in each one worker at a time\n"
        "words      map, of longest, any number of workers\n"
        "fmean      reduce, 10,000 rows, of words, one worker at a time\n"
        "collect    collect, of fmean\n"
    )


def test_a_mermaid_diagram_has_a_node_for_each_operator_and_an_arrow_for_each_input() -> None:
    big, _ = entry("in").branch(lambda n: n > 1)
    graph = big.map(abs, name='the "size" & <more>').collect()
    assert graph.mermaid() == (
        "flowchart LR\n"
        '    o0["in<br/>entry"]\n'
        '    o1["branch<br/>branch"]\n'
        '    o2["the #quot;size#quot; #amp; #lt;more#gt;<br/>map"]\n'
        '    o3["collect<br/>collect"]\n'
        "    o0 --> o1\n"
        "    o1 -- 1 --> o2\n"
        "    o2 --> o3\n"
    )


def test_an_svg_picture_is_well_formed_and_shows_all_operators() -> None:
    risky = rows.map(abs, name="a < b & c", errors="side")
    graph = risky.union(risky.failures).collect()
    picture = ET.fromstring(graph.draw())
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in picture.iter(f"{space}text")]
    assert {"rows", "a < b & c", "union", "collect", "failures"} <= set(texts)
    assert len(list(picture.iter(f"{space}rect"))) == 4
    boxes = [(box.get("x"), box.get("y")) for box in picture.iter(f"{space}rect")]
    assert len(set(boxes)) == 4


def test_a_line_in_a_picture_runs_past_the_operators_between() -> None:
    graph = rows.union(rows.map(abs).map(abs), entry("late").map(abs)).collect()
    picture = ET.fromstring(graph.draw())
    space = "{http://www.w3.org/2000/svg}"
    boxes = [(int(box.get("x", 0)), int(box.get("y", 0))) for box in picture.iter(f"{space}rect")]
    passing = [
        (int(x), int(y))
        for path in picture.iter(f"{space}path")
        for x, y in re.findall(r"(\d+) (\d+)H", path.get("d", ""))
    ]
    assert len(passing) == 3  # the line from "rows" passes two columns, one from "late" another
    for x, y in passing:
        assert not [box for box in boxes if box[0] == x and box[1] <= y <= box[1] + 44]


def test_streams_say_what_they_are() -> None:
    big, rest = rows.branch(bool)
    assert repr(big) == "<Stream: branch 'branch'>"
    assert repr(rest) == "<Stream: branch 'branch', output 'rest'>"
    assert repr(keyed) == "<KeyedStream: partitions of <Stream: entry 'rows'>>"
    assert repr(rows.map(abs).collect()) == "<Graph: rows → abs → collect>"
