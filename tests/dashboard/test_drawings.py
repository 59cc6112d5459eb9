"""Pictures of runs: boxes, lines, and the rates on them."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

pytest.importorskip("starlette")

from callboard import ActorSystem
from callboard.dashboard.drawings import Drawing
from callboard.dashboard.servers import RemoteServers
from callboard.dashboard.systems import OwnSystem
from callboard.dashboard.viewers import MOST_BOXES, Viewers
from callboard.nets import box, choice, feedback, filter, split, star, sync  # noqa: A004
from callboard.nets.drawing import shape_of
from callboard.observing.top_frames import RunRow, frame_of
from callboard.observing.watching import SystemView
from callboard.streams import entry
from callboard.testing import ManualSystem


def looks(system: ActorSystem, between: Any) -> tuple[Drawing, RunRow]:
    """Return the drawing of the only run, and its figures of what happens between two looks."""
    view = SystemView(system._runtime)
    before = view.look(shapes=[1])
    between()
    now = view.look()
    (run,) = frame_of(before, now | {"seconds": 1.0}).runs
    return Drawing(before["graphs"][0]["shape"]), run


def test_lines_have_the_rates_of_their_ends() -> None:
    with ActorSystem("shop", workers=1) as system:
        left, right = entry("left").filter(lambda n: n % 2 == 0, name="even"), entry("right")
        run = system.run(left.union(right).map(abs, name="last").collect(name="all"))

        def between() -> None:
            run.send("left", range(100))
            run.send("right", range(30))
            run.snapshot()
            system.drain(60)  # a lane counts its rows after it has handed them on

        drawing, row = looks(system, between)
        drawn = drawing.of(row)
        run.finish(60)
    names = [one["name"] for one in drawn["boxes"]]
    assert [names[i] for i in range(2)] == ["left", "right"]
    assert [one["kind"] for one in drawn["boxes"]][:2] == ["entry", "entry"]
    ends = {(names[a], names[b]): i for i, (a, b, _) in enumerate(drawing._lines)}
    rates = {pair: drawn["lines"][i]["rate"] for pair, i in ends.items()}
    assert rates["left", "even"] == 100
    assert rates["even", "union"] == 50  # by what the source has out: the end has two lines
    assert rates["right", "union"] == 30
    assert rates["union", "last"] == 80
    assert rates["last", "all"] == 80
    assert {one["y"] for one in drawn["boxes"]} == {12, 80}


def test_a_branch_whose_share_is_unknown_has_no_rate() -> None:
    with ActorSystem("shop", workers=1) as system:
        even, odd = entry("n").branch(lambda n: n % 2 == 0, name="parity")
        run = system.run(even.union(odd).collect())

        def between() -> None:
            run.send("n", range(10))
            run.snapshot()
            system.drain(60)  # a lane counts its rows after it has handed them on

        drawing, row = looks(system, between)
        lines = drawing.of(row)["lines"]
        run.finish(60)
    assert {one["rate"] for one in lines} == {10, None}
    assert sum(one["rate"] is None for one in lines) == 2


@box("(n) -> (n)")
def one(n: int) -> Any:
    yield {"n": n}


def test_each_kind_of_net_is_drawn() -> None:
    net = (
        star(one, "{done}")
        >> choice(one, filter("{n} -> {n}"))
        >> split(one, "<k>")
        >> feedback(one, "{again}")
        >> sync("{a}", "{b}")
    )
    shape = shape_of(net)
    kinds = [kind for _, kind, _ in shape.boxes]
    assert kinds[0] == "entry"
    assert kinds[-1] == "exit"
    assert kinds.count("box") == 4
    assert (kinds.count("filter"), kinds.count("sync")) == (1, 1)
    assert len(shape.backs) == 2
    assert all(source < end for source, end, _ in shape.lines)
    assert all(source > end for source, end, _ in shape.backs)
    assert len({key for _, _, key in shape.boxes if key}) == 6
    drawing = Drawing(shape)
    assert len(drawing._values["backs"]) == 2


def test_a_net_has_its_figures_while_a_box_is_at_work() -> None:
    entered, left = Event(), Event()

    def stay(n: int) -> int:
        entered.set()
        assert left.wait(60)
        return n

    net = box(stay, "(n) -> (m)") >> box(lambda m: m, "(m) -> (k)", name="after")
    with ActorSystem("shop", workers=1) as system, system.run(net) as run:
        view = SystemView(system._runtime)
        before = view.look()
        for n in range(7):
            run.tell({"n": n})
        assert entered.wait(60)
        [graph] = view.look()["graphs"]
        assert (graph["places"]["/stay"]["records"], graph["places"]["/stay"]["calls"]) == (1, 0)
        left.set()
        system.drain(60)
        now = view.look()
    (shown,) = frame_of(before, now | {"seconds": 1.0}).runs
    stays, after = shown.operators
    assert (shown.rate, stays.rate_in, after.rate_in) == (7, 7, 7)
    assert stays.load >= stays.cost > 0
    assert after.queued == stays.queued == 0


def test_looks_at_a_manual_system_send_nothing() -> None:
    system = ManualSystem()
    run = system.run(one)
    run.tell({"n": 1})
    for _ in range(3):
        SystemView(system._runtime).look(shapes=[1])
    system.run_until_idle()
    assert [
        ref.statistics().messages for ref in system.find(type(run._coordinator.actor_class))
    ] == []
    assert run._coordinator.statistics().messages == 1
    run.finish()
    system.stop()


def test_a_run_of_very_many_operators_is_not_drawn() -> None:
    stream = entry("n")
    for i in range(MOST_BOXES):
        stream = stream.map(abs, name=f"step {i}")
    with ActorSystem("shop", workers=1) as system:
        run = system.run(stream.collect())
        viewers = Viewers(OwnSystem(system), RemoteServers([]))
        viewers.picture("a", "", most=1)
        (row,) = viewers.picture("a", "", most=1)["runs"]
        run.finish(60)
    assert len(row["operators"]) == MOST_BOXES + 1
    assert row["drawing"] is None
