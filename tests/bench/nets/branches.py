"""Branches that meet in a join, as nets, with LangGraph, and in plain asyncio.

`what` is measured: when that begins which follows the fast of two branches, in milliseconds from
the start; or how many records a second fan out to two branches and in again; or steps of a loop.
"""

import asyncio
import operator
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Annotated, Any, TypedDict

from callboard import ActorSystem
from callboard.nets import box, parse
from nets.running import TIMEOUT
from savina.result import Quantity, Result
from usage import Watch

FAST, SLOW = 0.1, 1.2  # seconds
Row = dict[str, Any]


# --- a fast and a slow branch --------------------------------------------------------------------


class Times:
    """What the branches do, and when what follows the fast one begins."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.begin = perf_counter()
        self.began = 0.0

    async def fast(self) -> None:
        await asyncio.sleep(FAST * self.scale)

    async def slow(self) -> None:
        await asyncio.sleep(SLOW * self.scale)

    async def after(self) -> None:
        self.began = perf_counter() - self.begin


def times_of_net(times: Times) -> int:
    async def fast(x: int) -> Row:
        await times.fast()
        return {"early": x}

    async def slow(y: int) -> Row:
        await times.slow()
        return {"late": y}

    async def after(early: int) -> Row:
        await times.after()
        return {"done": early}

    net = (box(fast, "(x) -> (early)") >> box(after, "(early) -> (done)")) | box(
        slow, "(y) -> (late)"
    )
    with ActorSystem(workers=1) as system:
        run = system.run(net)
        times.begin = perf_counter()
        run.send([{"y": 1}, {"x": 1}], timeout=TIMEOUT)
        return len(run.finish(TIMEOUT))


class Done(TypedDict):
    done: Annotated[list[str], operator.add]


def times_of_langgraph(times: Times) -> int:
    from langgraph.graph import END, START, StateGraph

    def named(name: str, work: Callable[[], Awaitable[None]]) -> Any:
        async def node(state: Done) -> Done:
            await work()
            return {"done": [name]}

        return node

    graph = StateGraph(Done)
    for name in ("fast", "slow", "after"):
        graph.add_node(name, named(name, getattr(times, name)))
    graph.add_edge(START, "fast")
    graph.add_edge(START, "slow")
    graph.add_edge("fast", "after")
    graph.add_edge("after", END)
    graph.add_edge("slow", END)
    app = graph.compile()

    async def main() -> Any:
        times.begin = perf_counter()
        return await app.ainvoke({"done": []})

    return len(asyncio.run(main())["done"]) - 1


def times_of_asyncio(times: Times) -> int:
    async def chain() -> None:
        await times.fast()
        await times.after()

    async def main() -> int:
        times.begin = perf_counter()
        return len(await asyncio.gather(chain(), times.slow()))

    return asyncio.run(main())


# --- fan-in --------------------------------------------------------------------------------------


async def left(x: int) -> Row:
    return {"a": x + 1}


async def right(x: int) -> Row:
    return {"b": 2 * x}


def both(a: int, b: int) -> Row:
    return {"c": a + b}


FAN_IN = """
net fan_in
{
    box left ((x) -> (a));
    box right ((y) -> (b));
    box both ((a, b) -> (c));
    net fork connect [{x, <id>} -> {x, <id>} ; {y=x, <id>}];
    net pair connect ([| {a}, {b} |] * {a, b}) ! <id>;
}
connect fork .. (left | right) .. pair .. both;
"""


def sums_of_net(n: int) -> tuple[list[int], dict[str, float]]:
    net = parse(FAN_IN, boxes={"left": left, "right": right, "both": both})
    with ActorSystem(workers=1) as system:
        run = system.run(net)
        watch = Watch()
        run.send(({"x": number, "<id>": number} for number in range(n)), timeout=TIMEOUT)
        found = run.finish(TIMEOUT)
        return [row["c"] for row in found], watch.stop()


class Sum(TypedDict, total=False):
    x: int
    a: int
    b: int
    c: int


def sums_of_langgraph(n: int) -> tuple[list[int], dict[str, float]]:
    from langgraph.graph import END, START, StateGraph

    async def left_node(state: Sum) -> Any:
        return await left(state["x"])

    async def right_node(state: Sum) -> Any:
        return await right(state["x"])

    async def both_node(state: Sum) -> Any:
        return both(state["a"], state["b"])

    graph = StateGraph(Sum)
    graph.add_node("left", left_node)
    graph.add_node("right", right_node)
    graph.add_node("both", both_node)
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_edge(["left", "right"], "both")
    graph.add_edge("both", END)
    app = graph.compile()

    async def main() -> list[Any]:
        found: list[Any] = await app.abatch([{"x": number} for number in range(n)])
        return found

    watch = Watch()
    found = asyncio.run(main())
    return [state["c"] for state in found], watch.stop()


def sums_of_asyncio(n: int) -> tuple[list[int], dict[str, float]]:
    async def one(x: int) -> int:
        a, b = await asyncio.gather(left(x), right(x))
        total: int = both(a["a"], b["b"])["c"]
        return total

    async def main() -> list[int]:
        return await asyncio.gather(*(one(number) for number in range(n)))

    watch = Watch()
    found = asyncio.run(main())
    return found, watch.stop()


# --- a loop --------------------------------------------------------------------------------------


async def step(i: int) -> Row:
    return {"<i>": i + 1}


def end_of_plain(n: int) -> tuple[int, dict[str, float]]:
    return end_of_net(n, lambda i: {"<i>": i + 1})


def end_of_net(n: int, step: Callable[[int], Any] = step) -> tuple[int, dict[str, float]]:
    declared = "box step ((<i>) -> (<i>));"
    net = parse(
        f"net loop {{ {declared} }} connect step \\ {{<i>}} if <i < {n}>;", boxes={"step": step}
    )
    with ActorSystem(workers=1) as system:
        run = system.run(net)
        watch = Watch()
        run.send({"<i>": 0}, timeout=TIMEOUT)
        [found] = run.finish(TIMEOUT)
        return found["<i>"], watch.stop()


class Count(TypedDict):
    i: int


def end_of_langgraph(n: int) -> tuple[int, dict[str, float]]:
    from langgraph.graph import END, START, StateGraph

    async def node(state: Count) -> Count:
        return {"i": (await step(state["i"]))["<i>"]}

    graph = StateGraph(Count)
    graph.add_node("step", node)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["i"] < n else END)
    app = graph.compile()
    watch = Watch()
    found = asyncio.run(app.ainvoke({"i": 0}, {"recursion_limit": n + 10}))
    return found["i"], watch.stop()


def end_of_asyncio(n: int) -> tuple[int, dict[str, float]]:
    async def main() -> int:
        i = 0
        while i < n:
            i = (await step(i))["<i>"]
        return i

    watch = Watch()
    found = asyncio.run(main())
    return found, watch.stop()


TIMES = {"net": times_of_net, "langgraph": times_of_langgraph, "asyncio": times_of_asyncio}
SUMS = {"net": sums_of_net, "langgraph": sums_of_langgraph, "asyncio": sums_of_asyncio}
ENDS: dict[str, Callable[[int], tuple[int, dict[str, float]]]] = {
    "net": end_of_net,
    "plain": end_of_plain,
    "langgraph": end_of_langgraph,
    "asyncio": end_of_asyncio,
}


def run(n: int, *, what: str, by: str = "net", scale: float = 1.0) -> Result | Quantity:
    if what == "fast":
        times = Times(scale)
        ended = TIMES[by](times)
        return Quantity(1_000 * times.began, got=[ended, times.began > 0], want=[2, True])
    if what == "fan_in":
        sums, costs = SUMS[by](n)
        want = [n, sum(3 * x + 1 for x in range(n))]
        return Result(n, **costs, got=[len(sums), sum(sums)], want=want)
    end, costs = ENDS[by](n)
    return Result(n, **costs, got=end, want=n)
