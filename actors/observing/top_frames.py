"""A frame of `top`: the rows that it shows, made from two answers of a system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from callboard.core.text import printable

MOST_OF_TEXT = 200
"""The letters of a name or a reason that are shown."""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker. `share` is of its time, from 0 to 1; `rate` is dispatches a second."""

    name: str
    share: float
    rate: float
    actor: str
    in_message: float | None


@dataclass(frozen=True, slots=True)
class ActorRow:
    """An actor. `load` is its share of a worker, from 0 to 1; None where no time is measured."""

    path: str
    cls: str
    worker: str
    load: float | None
    rate: float
    messages: int
    queue: int | None
    dropped: int
    reason: str
    words: str


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A class of actors: messages a second, and their times in work and in the mailbox."""

    name: str
    rate: float
    p50: float | None
    p99: float | None
    mailbox_p50: float | None
    mailbox_p99: float | None


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """An operator, or a place of a net, which has no rate out.

    Rates are rows a second, `cost` seconds for a row, `lag` seconds of rows. `watermark_lag` is
    how far its watermark is behind the newest event time, in its unit.
    """

    name: str
    rate_in: float
    rate_out: float | None
    cost: float
    load: float
    queued: float
    lag: float | None
    watermark_lag: float | None
    workers: int
    words: str
    key: str
    """Its name in the shape of its run."""


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A worker process, or a process of a pool.

    `load` is its processor time, as a share of a core. `rate` is rounds or messages a second, and
    `sent` and `received` are bytes a second.
    """

    name: str
    pid: int | None
    started: bool
    load: float
    rate: float
    sent: float
    received: float
    waiting: int
    ends: int
    words: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a graph or a net, and its operators in their order; or a pool and its processes.

    `p50` and `p99` are of the seconds from a round's arrival to its end, in the last ten seconds.
    """

    number: int
    title: str
    rate: float
    p50: float | None
    p99: float | None
    entries: tuple[float, ...]
    """The rows a second of each entry."""
    operators: tuple[OperatorRow, ...]
    processes: tuple[ProcessRow, ...]

    @property
    def slowest(self) -> OperatorRow | None:
        """The operator with the largest load, if any has one."""
        found = max(self.operators, key=lambda one: one.load, default=None)
        return found if found is not None and found.load > 0 else None


@dataclass(frozen=True, slots=True)
class TopFrame:
    """All that is shown at one time."""

    system: str
    monitoring: str
    seconds: float
    live: int
    queued: int
    running: int
    messages: float
    reasons: Mapping[str, int]
    level: str
    workers: tuple[WorkerRow, ...]
    actors: tuple[ActorRow, ...]
    classes: tuple[ClassRow, ...]
    runs: tuple[RunRow, ...]
    letters: tuple[tuple[str, int, float], ...]
    """For each reason of dead letters, their number, and the number a second."""
    failures: int
    latest: tuple[str, ...]
    """The latest failures, in words."""
    stacks: tuple[tuple[str, str], ...]
    """For each actor that is stuck, its path with words, and its stack."""


def frame_of(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> TopFrame:
    """Return the frame for an answer and the one before it. Without that one, all rates are 0."""
    seconds = now["seconds"] if before is not None else 0.0
    old = before if before is not None else now
    workers = tuple(_workers(old, now, seconds))
    return TopFrame(
        system=plain(now["system"]),
        monitoring=now["monitoring"],
        seconds=seconds,
        live=now["live"],
        queued=now["queued"],
        running=now["running"],
        messages=sum(row.rate for row in workers),
        reasons=now["reasons"],
        level=plain(now["level"] or ""),
        workers=workers,
        actors=tuple(_actor(one, now["timed"], seconds) for one in now["actors"]),
        classes=tuple(_class(one, seconds) for one in now["classes"]) if seconds else (),
        runs=tuple(_runs(old, now, seconds)),
        letters=tuple(
            (reason, count, _rate(count, old["dead_letters"].get(reason, 0), seconds))
            for reason, count in sorted(now["dead_letters"].items())
        ),
        failures=now["failures"],
        latest=tuple(plain(f"{path} {summary}") for path, summary in now["latest_failures"]),
        stacks=tuple(
            (
                plain(f"{one['name']} {one['words']}"),
                "\n".join(map(printable, one["stack"].split("\n"))),
            )
            for one in now["stuck"]
        ),
    )


def plain(text: str) -> str:
    """Return text that a terminal can show: a name may have any characters."""
    if len(text) > MOST_OF_TEXT:
        text = f"{text[: MOST_OF_TEXT // 4]}...{text[-MOST_OF_TEXT * 3 // 4 :]}"
    return printable(text)


def _rate(now: float, before: float, seconds: float) -> float:
    return max(now - before, 0) / seconds if seconds else 0.0


def _workers(old: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> Iterator[WorkerRow]:
    before = {one["name"]: one for one in old["workers"]}
    for one in now["workers"]:
        was = before.get(one["name"], {"idle": 0.0, "dispatches": 0})
        idle = _rate(one["idle"], was["idle"], seconds)
        yield WorkerRow(
            name=plain(one["name"]),
            share=max(1 - idle, 0.0) if seconds else 0.0,
            rate=_rate(one["dispatches"], was["dispatches"], seconds),
            actor=plain(one["actor"] or ""),
            in_message=one["in_message"],
        )


def _actor(one: Mapping[str, Any], timed: bool, seconds: float) -> ActorRow:
    load = min(one["new_busy"] / seconds, 1.0) if seconds else 0.0
    return ActorRow(
        path=plain(one["path"]),
        cls=plain(one["class"]),
        worker=plain(one["worker"]),
        load=load if timed else None,
        rate=one["new_messages"] / seconds if seconds else 0.0,
        messages=one["messages"],
        queue=one["queue"],
        dropped=one["dropped"],
        reason=one["reason"],
        words=plain(one["words"]),
    )


def _class(one: Mapping[str, Any], seconds: float) -> ClassRow:
    return ClassRow(
        name=plain(one["name"]),
        rate=one["messages"] / seconds,
        p50=one["p50"],
        p99=one["p99"],
        mailbox_p50=one["mailbox_p50"],
        mailbox_p99=one["mailbox_p99"],
    )


def _runs(old: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> Iterator[RunRow]:
    before = {one["number"]: one for one in old["graphs"]}
    for graph in now["graphs"]:
        was = before.get(graph["number"], {"rows": 0, "operators": []})
        words = {wait["name"]: wait["words"] for wait in graph["waits"]}
        entry = words.get("rows to come in")
        latency = graph.get("latency") or {"p50": None, "p99": None}
        yield RunRow(
            number=graph["number"],
            title=plain(f"{graph['run']}{f', rows to come in {entry}' if entry else ''}"),
            rate=_rate(graph["rows"], was["rows"], seconds),
            p50=latency["p50"],
            p99=latency["p99"],
            entries=tuple(
                _rate(rows, old, seconds)
                for rows, old in zip(graph["entries"], was["entries"], strict=True)
            )
            if "entries" in was
            else (),
            operators=tuple(
                _operator(one, next(olds, {}), words, seconds)
                for olds in [iter(was["operators"])]
                for one in graph["operators"]
            )
            + tuple(_places(graph, was, seconds)),
            processes=tuple(_processes(graph, was, words, seconds)),
        )


def _processes(
    graph: Mapping[str, Any], was: Mapping[str, Any], words: Mapping[str, str], seconds: float
) -> Iterator[ProcessRow]:
    before = {one["name"]: one for one in was.get("processes", ())}
    for one in graph.get("processes", ()):
        old = before.get(one["name"], one)
        load, rate, sent, received = (
            _rate(one[key], old[key], seconds) for key in ("busy", "done", "sent", "received")
        )
        yield ProcessRow(
            name=plain(one["name"]),
            pid=one["pid"],
            started=one["started"],
            load=load,
            rate=rate,
            sent=sent,
            received=received,
            waiting=one["waiting"],
            ends=one["ends"],
            words=plain(words.get(one["name"], "")),
        )


def _places(
    graph: Mapping[str, Any], was: Mapping[str, Any], seconds: float
) -> Iterator[OperatorRow]:
    """Yield the places of a net. Boxes have costs; the work of the net's executor has none."""
    before = was.get("places", {})
    for path, place in graph.get("places", {}).items():
        calls = graph["calls"].get(path, 0)
        was_there = before.get(path, {})
        # Many calls of a box on the event loop or on threads take their time together.
        load = _rate(place.get("busy", 0.0), was_there.get("busy", 0.0), seconds)
        yield OperatorRow(
            name=plain(path),
            rate_in=_rate(place["records"], was_there.get("records", 0), seconds),
            rate_out=None,
            cost=place.get("mean", 0.0),
            load=min(load, 1.0),
            queued=place.get("waiting", 0),
            lag=None,
            watermark_lag=None,
            workers=calls,
            words=f"{place['entities']} entities",
            key=path,
        )


def _operator(
    one: Mapping[str, Any], was: Mapping[str, Any], words: Mapping[str, str], seconds: float
) -> OperatorRow:
    name = one["name"]
    rate = _rate(one["rows_in"], was.get("rows_in", 0), seconds)
    reason = words.get(name) or next(
        (text for names, text in words.items() if name in names.split(" + ")), ""
    )
    return OperatorRow(
        name=plain(name),
        rate_in=rate,
        rate_out=_rate(one["rows_out"], was.get("rows_out", 0), seconds),
        cost=one["cost"],
        load=_rate(one["busy"], was.get("busy", 0.0), seconds),
        queued=one["queued"],
        lag=one["queued"] / rate if rate else None,
        watermark_lag=one.get("watermark_lag"),
        workers=one["workers"],
        words=plain(reason),
        key=str(one.get("number", "")),
    )
