"""Random shapes of graphs, and random inputs for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from callboard.scheduling.flow.threading_models import MODELS
from callboard.streams import Band, Equal, Graph, Watermark, entry
from tests.streams.functions import Functions, is_above, number
from tests.streams.kinds import KINDS, Op
from tests.streams.shapes import Chain, Fork, Mark

small = st.integers(1, 4)
policies = st.sampled_from(["fail", "skip", "side"])

ROW_BY_ROW = ["map", "filter", "flat_map"]
STATEFUL = [name for name, kind in KINDS.items() if kind.may_be_keyed]


@st.composite
def ops(
    draw: st.DrawFn,
    kinds: list[str],
    policies: st.SearchStrategy[str] = policies,
    awaits: bool = False,
) -> Op:
    """An operator of one of some kinds. It raises at some rows, if that does not end the run. With
    `awaits` it may have coroutines.
    """
    kind = draw(st.sampled_from(kinds))
    keyed = KINDS[kind].may_be_keyed and draw(st.booleans())
    can_fail = keyed or (KINDS[kind].takes_errors and kind != "stateless")
    errors = draw(policies) if can_fail else "fail"
    fails = st.sampled_from([0, 5, 7]) if errors != "fail" else st.just(0)
    functions = st.builds(Functions, small, fails)
    windows = draw(st.sampled_from(["count", "time", "session"])) if kind == "window" else ""
    timed = windows in {"time", "session"}
    in_flight = draw(st.sampled_from([0, 1, 3])) if awaits and kind == "map" else 0
    size = draw(st.integers(1, 30) if timed else small)
    return Op(
        kind,
        functions=draw(functions),
        errors=errors,
        key=draw(functions) if keyed else None,
        partitions=draw(small) if keyed else 1,
        partition=draw(st.sampled_from(["hash", "ranges", "function"])) if keyed else "hash",
        windows=windows,
        size=size,
        step=draw(st.sampled_from([size, 3, 7])),
        ordered=draw(st.booleans()) if timed or kind == "top_k" else False,
        late=draw(st.sampled_from(["drop", "side", "include"])) if timed else "drop",
        releases_gil=KINDS[kind].takes_releases_gil and not in_flight and draw(st.booleans()),
        in_flight=in_flight,
        generates=kind == "flat_map" and draw(st.booleans()),
    )


marks = st.sampled_from(["threaded", *MODELS]).map(Mark)


def chains(
    depth: int = 2, *, marked: bool = False, awaits: bool = False
) -> st.SearchStrategy[Chain]:
    """Chains of operators and forks, with forks in forks as deep as `depth`; of any models."""
    kinds = [*ROW_BY_ROW, *KINDS]
    links: Any = ops(kinds, awaits=awaits)
    if marked:
        links = st.one_of(marks, links, links)
    if depth:
        within = chains(depth - 1, marked=marked, awaits=awaits)
        branches = st.lists(within, min_size=2, max_size=3).map(tuple)
        joins = st.sampled_from(["union", "union", "zip"])
        links = st.one_of(links, links, st.builds(Fork, branches, joins, st.booleans()))
    return st.builds(Chain, st.lists(links, max_size=4).map(tuple))


@st.composite
def fragile_chains(draw: st.DrawFn, *, marked: bool = False, awaits: bool = False) -> Chain:
    """Chains of operators that may end the run."""
    kinds = [*ROW_BY_ROW, "watermarks", *STATEFUL]
    fragile_op = ops(kinds, st.just("fail"), awaits)
    fragile_ops = draw(st.lists(fragile_op, min_size=1, max_size=4))
    fragile = st.builds(Functions, small, st.sampled_from([0, 0, 7, 11, 13]))
    changed = [
        replace(op, functions=draw(fragile), key=op.key and draw(fragile))
        for op in fragile_ops
        if op.kind not in {"count", "batch"} or op.key is not None
    ]
    if not marked:
        return Chain(tuple(changed))
    links: list[Op | Fork | Mark] = []
    for op in changed:
        links += [*draw(st.lists(marks, max_size=1)), op]
    return Chain(tuple(links))


rows = st.lists(
    st.one_of(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 120).map(Watermark)),
    max_size=40,
)


in_time = {"by": st.just(Functions().time), "delay_threshold": st.sampled_from([0, 20, 100])}
windows = st.one_of(
    st.fixed_dictionaries(
        {"within": st.sampled_from([0, 9]), "rule": st.sampled_from(["strict", "three-step"])}
    ),
    st.fixed_dictionaries({"rows": st.sampled_from([1, 4])}),
)
joins = st.fixed_dictionaries(
    {
        **in_time,
        "where": st.sampled_from([None, Equal(Functions(4).key), Band(number, 5), is_above]),
        "how": st.sampled_from(["inner", "left", "right", "outer", "semi", "anti"]),
        "lanes": st.sampled_from([1, 3]),
    }
)
OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "merge": st.fixed_dictionaries(in_time),
    "join": st.builds(lambda join, window: {**join, **window}, joins, windows),
}


@dataclass
class Case:
    """A graph, and what arrives: (entry, rows) in order."""

    graph: Graph[Any]
    inputs: list[tuple[str, list[Any]]]
    text: str

    def row_by_row(self) -> Case:
        """The same, where each row arrives by itself."""
        return replace(self, inputs=[(name, [row]) for name, rows in self.inputs for row in rows])

    def __repr__(self) -> str:
        return f"{self.text}\nwith {self.inputs}"


@st.composite
def cases(draw: st.DrawFn, *, marked: bool = False, awaits: bool = False) -> Case:
    """Any graph: entries and streams that share what they come from, with several sinks."""
    names = ["left", "right"][: draw(st.integers(1, 2))]
    streams = [entry(name) for name in names]
    said = []
    for _ in range(draw(st.integers(1, 4))):
        first = draw(st.integers(0, len(streams) - 1))
        if marked and draw(st.booleans()):
            mark = draw(marks)
            said.append(f"{len(streams)} = {mark} of {first}")
            streams.append(mark.add_to(streams[first]))
            first = len(streams) - 1
        if draw(st.booleans()):
            chain = draw(chains(1, marked=marked, awaits=awaits))
            said.append(f"{len(streams)} = {chain} of {first}")
            streams.append(chain.add_to(streams[first]))
        else:
            others = draw(st.lists(st.integers(0, len(streams) - 1), min_size=1, max_size=2))
            join = draw(st.sampled_from(["union", "union", "zip", "merge", "join"]))
            options: dict[str, Any] = draw(OPTIONS.get(join, st.just({})))
            others = others[:1] if join == "join" else others
            said.append(f"{len(streams)} = {join} of {[first, *others]}, {options}")
            join_with = getattr(streams[first], join)
            streams.append(join_with(*(streams[other] for other in others), **options))
    ends = draw(st.lists(st.integers(0, len(streams) - 1), max_size=2, unique=True))
    ends = sorted({*ends, len(streams) - 1})
    graph: Graph[Any] = Graph(*(streams[end].collect(name=f"end {end}") for end in ends))
    arriving = st.tuples(st.sampled_from(graph.entries), rows)
    return Case(graph, draw(st.lists(arriving, max_size=4)), "\n".join(said))
