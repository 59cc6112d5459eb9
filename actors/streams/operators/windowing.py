"""Operators that apply a function to windows of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from callboard.core.text import safe_repr
from callboard.streams.checks import check_choice, check_function
from callboard.streams.errors import GraphError
from callboard.streams.operators.receivers import objects
from callboard.streams.planning.operator import Operator, label_of
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.keyed import Timed
from callboard.streams.programs.windows.event_time import Sessions
from callboard.streams.programs.windows.window import (
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    layout_of,
    said,
)
from callboard.streams.programs.windows.window_states import CountedWindows, TimedWindows


def window(
    windows: TumblingWindow | SlidingWindow | SessionWindow, function: Any, late: str
) -> Operator:
    """Apply a function to windows of rows."""
    if not isinstance(windows, TumblingWindow | SlidingWindow | SessionWindow):
        raise GraphError(
            "windows must be a TumblingWindow, SlidingWindow or SessionWindow, got "
            f"{safe_repr(windows)}"
        )
    check_function("window()'s second argument", function)
    check_choice("late", late, ("drop", "side", "include"))
    label = label_of(function, "window")
    program: Callable[..., Program]
    if isinstance(windows, SessionWindow):
        program = partial(Sessions, session=windows, function=function, late=late)
    elif windows.by is not None:
        timed = partial(TimedWindows, windows, layout_of(windows), function, late)
        program = partial(Timed, make=timed)
    elif late != "drop":
        raise GraphError(f"late={late!r} is for windows by time, and {windows!r} are by count")
    else:
        make = partial(CountedWindows, windows, function)
        return objects("window", make, label=label, detail=said(windows), marks_end=True)
    options = {"paired": True, "marks_time": True, "marks_end": True}
    return Operator(
        kind="window",
        program=partial(program, late_is_counted=late == "drop", **options),
        label=label,
        detail=said(windows),
        ports=("out", "late") if late == "side" else ("out",),
        stateful=True,
    )
