"""Draws the frames of `top` with Rich. All that comes from the system is shown as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from callboard.core.text import time_in_words
from callboard.observing.top_frames import ActorRow, ClassRow, RunRow, TopFrame

# The reasons that need attention, and their colours.
COLOURS = {
    "stuck": "bold red",
    "token": "yellow",
    "room": "yellow",
    "window": "yellow",
    "lanes": "yellow",
    "running": "green",
    "queued": "cyan",
}


def draw(frame: TopFrame, sort: str, *, stacks: bool, footer: str = "") -> RenderableType:
    """Return a frame as Rich shows it."""
    parts: list[RenderableType] = [_head(frame), _workers(frame)]
    parts += [_processes(run) if run.processes else _run(run) for run in frame.runs]
    if frame.classes:
        parts.append(_classes(frame.classes))
    parts.append(_actors(frame.actors, sort))
    parts += _troubles(frame)
    if stacks:
        parts += [Text(f"{title}\n{stack}", "red") for title, stack in frame.stacks]
        if not frame.stacks:
            parts.append(Text("no actor is stuck", "dim"))
    if footer:
        parts.append(Text(footer, "reverse"))
    return Group(*parts)


def _head(frame: TopFrame) -> Text:
    text = Text()
    text.append(frame.system, "bold")
    live = "1 actor" if frame.live == 1 else f"{frame.live:,} actors"
    text.append(
        f": {live}, {frame.messages:,.0f} dispatches/s over {frame.seconds:.1f} s, "
        f"monitoring {frame.monitoring}\n"
    )
    for reason, count in frame.reasons.items():
        text.append(f"{reason} {count:,}  ", COLOURS.get(reason, ""))
    if frame.level:
        text.append(f"\n{frame.level}")
    return text


def _table(*names: str, right: int) -> Table:
    """Return a table whose columns from the one numbered `right` on have figures."""
    table = Table(box=None, header_style="bold", pad_edge=False, expand=True)
    for i, name in enumerate(names):
        is_text = i < right or name == "why"
        justify = "left" if is_text else "right"
        table.add_column(
            name,
            justify=justify,  # type: ignore[arg-type]
            ratio=3 if is_text else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    return table


def _texts(*cells: str, style: str = "") -> Iterator[Text]:
    for cell in cells:
        yield Text(cell, style)


def _workers(frame: TopFrame) -> Table:
    table = _table("worker", "runs", "busy", "dispatches/s", "in message", right=2)
    for row in frame.workers:
        since = "" if row.in_message is None else f"{row.in_message:.3f} s"
        table.add_row(*_texts(row.name, row.actor, f"{row.share:.0%}", f"{row.rate:,.0f}", since))
    return table


def _actors(rows: tuple[ActorRow, ...], sort: str) -> Table:
    names = ["actor", "class", "load", "rate", "queue", "total", "dropped", "why"]
    table = _table(*(f"{name}*" if name == sort else name for name in names), right=2)
    for row in rows:
        cells = _texts(
            row.path,
            row.cls,
            "-" if row.load is None else f"{row.load:.1%}",
            f"{row.rate:,.0f}/s",
            "-" if row.queue is None else f"{row.queue:,}",
            f"{row.messages:,}",
            f"{row.dropped:,}",
        )
        table.add_row(*cells, Text(row.words, COLOURS.get(row.reason, "")))
    return table


def _classes(rows: tuple[ClassRow, ...]) -> Table:
    names = ("class", "rate", "p50", "p99", "mailbox p50", "mailbox p99")
    table = _table(*names, right=1)
    for row in rows:
        times = (row.p50, row.p99, row.mailbox_p50, row.mailbox_p99)
        table.add_row(*_texts(row.name, f"{row.rate:,.0f}/s", *map(time_in_words, times)))
    return table


def _processes(run: RunRow) -> Table:
    names = ("process", "load", "done/s", "sent/s", "received/s", "waiting", "ends", "why")
    table = _table(*names, right=1)
    table.title = Text(run.title)
    table.title_justify = "left"
    for row in run.processes:
        sizes = (f"{size / 1e6:,.1f} MB" for size in (row.sent, row.received))
        figures = (f"{row.rate:,.0f}", *sizes, f"{row.waiting:,}", f"{row.ends:,}", row.words)
        table.add_row(*_texts(row.name, f"{row.load:.0%}", *figures))
    return table


def _run(run: RunRow) -> Table:
    has_time = any(row.watermark_lag is not None for row in run.operators)
    names = ["operator", "load", "in/s", "out/s", "us a row", "queued", "lag", "workers", "why"]
    if has_time:
        names.insert(7, "event lag")
    table = _table(*names, right=1)
    title = f"{run.title}, {run.rate:,.0f} rows/s"
    if run.p50 is not None:
        title += f", latency p50 {time_in_words(run.p50)}, p99 {time_in_words(run.p99)}"
    table.title = Text(title)
    table.title_justify = "left"
    for row in run.operators:
        style = "bold red" if row is run.slowest else ""
        cells = _texts(
            row.name,
            f"{row.load:.0%}",
            f"{row.rate_in:,.0f}",
            "-" if row.rate_out is None else f"{row.rate_out:,.0f}",
            f"{row.cost * 1e6:,.3f}",
            f"{row.queued:,.0f}",
            "-" if row.lag is None else f"{row.lag:.3f} s",
            *(
                ["-" if row.watermark_lag is None else f"{row.watermark_lag:,g}"]
                if has_time
                else []
            ),
            f"{row.workers}",
            row.words,
            style=style,
        )
        table.add_row(*cells)
    return table


def _troubles(frame: TopFrame) -> Iterator[Text]:
    """Yield the dead letters and failures, if there are any."""
    if frame.letters:
        counts = (f"{reason} {count:,} ({rate:,.1f}/s)" for reason, count, rate in frame.letters)
        yield Text(f"dead letters: {', '.join(counts)}", "yellow")
    if frame.failures:
        yield Text(f"failures {frame.failures:,}, at last {'; '.join(frame.latest)}", "red")
