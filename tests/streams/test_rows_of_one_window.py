"""Rows in the same windows as the row before: a short cut, with the outputs of the full path."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import SlidingWindow, TumblingWindow
from callboard.streams.programs.program import SideOutput
from callboard.streams.programs.windows.window import layout_of
from callboard.streams.programs.windows.window_states import TimedWindows

LATE = ("drop", "side", "include")
# A row's time, or that of a watermark.
Event = tuple[str, float]


def time_of(time: float) -> float:
    return time


class LongWay(TimedWindows):
    """Looks up the windows of each row."""

    def receive(self, row: Any) -> Any:
        self.together = None
        return super().receive(row)


def outputs(cls: type[TimedWindows], spec: Any, late: str, events: list[Event]) -> list[Any]:
    clock = SimpleNamespace(time=None)
    state = cls(spec, layout_of(spec), list, late, clock)
    found: list[Any] = []
    for kind, time in events:
        if kind == "row":
            some = state.receive(time)
        else:
            clock.time = time if clock.time is None else max(clock.time, time)
            some = state.on_watermark(clock.time)
        found.append(
            [(each.name, each.row) if isinstance(each, SideOutput) else each for each in some]
        )
        found.append((state.due, state.snapshot()[0]))
    return [*found, list(state.on_final())]


times = st.one_of(st.integers(0, 30), st.floats(0, 30, width=16))
steps = st.tuples(st.integers(1, 9), st.integers(1, 9))


@given(
    steps,
    st.booleans(),
    st.sampled_from(LATE),
    st.lists(st.tuples(st.sampled_from(("row", "row", "row", "mark")), times), max_size=40),
    st.booleans(),
)
def test_a_row_beside_another_has_the_outputs_that_it_has_alone(
    steps: tuple[int, int], ordered: bool, late: str, events: list[Event], are_sorted: bool
) -> None:
    size, step = steps
    spec = SlidingWindow(size, step, by=time_of, ordered=ordered)
    if are_sorted:
        events = sorted(events, key=lambda event: event[1])
    assert outputs(TimedWindows, spec, late, events) == outputs(LongWay, spec, late, events)


def test_rows_of_one_window_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    find = TimedWindows.find

    def counted(self: TimedWindows, time: float) -> None:
        asked.append(time)
        find(self, time)

    monkeypatch.setattr(TimedWindows, "find", counted)
    spec = TumblingWindow(10, by=time_of, ordered=True)
    rows = [("row", float(time)) for time in range(25)]
    outputs(TimedWindows, spec, "drop", rows)
    assert asked == [0, 10, 20]
