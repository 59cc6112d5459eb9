"""The plan that all runs of a graph share, and the programs of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from callboard.core.log import log
from callboard.core.threads.constants import make_constants_immortal
from callboard.observing.layout import GraphShape
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams.checks import check_choice
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.sinks import Call, Collect


@dataclass(frozen=True, eq=False)
class Constraint:
    """Where the operators that are made from a stream may run; each is of one call alone."""

    model: Model | None = None
    """None: the run's."""
    is_port: bool = False
    """Where the model is `manual`, a thread begins here."""


UNCONSTRAINED = Constraint()


def check_model(what: str, value: Any) -> Model:
    """Check the name of a threading model. Raises GraphError."""
    check_choice(what, value, MODELS)
    return cast("Model", value)


# Where an input comes from: (number of a step, port), or (None, number of an entry).
Source = tuple[int | None, int]


@dataclass(frozen=True)
class Step:
    """An operator that each run makes a program of, and where its inputs come from."""

    name: str
    make: Callable[[], Program]
    sources: tuple[Source, ...]
    constraint: Constraint = UNCONSTRAINED
    max_workers: int | None = None
    waits: bool = False
    """It may wait for another process."""
    numbers: bool = False
    """No operator was asked for: it numbers the rows of its source."""
    kind: str = "number"
    """That of its operator."""
    detail: str = ""
    """The words by which its operator says more than its kind."""
    is_keyed: bool = False
    """It has a state for each key."""

    def model(self, default: Model) -> Model:
        """Return the model that it runs by, where `default` is the run's."""
        if self.constraint.model is not None:
            return self.constraint.model
        return "dedicated" if self.waits and default in ("dynamic", "assigned") else default


@dataclass(frozen=True)
class Plan:
    """The steps of each run of a graph. A step comes after those that it has its rows from."""

    entries: tuple[str, ...]
    steps: tuple[Step, ...]

    def names_of_inputs(self) -> dict[str, list[str]]:
        """Return the names of the entries and operators that each step with several inputs reads,
        by its name.
        """
        return {
            step.name: [self._name_of(*source) for source in step.sources]
            for step in self.steps
            if len(step.sources) > 1
        }

    def _name_of(self, number: int | None, port: int) -> str:
        if number is None:
            return self.entries[port]
        step = self.steps[number]
        return self._name_of(*step.sources[0]) if step.numbers else step.name

    def shape(self) -> GraphShape:
        """Return what the graph looks like: entries, and operators by their numbers."""
        entries = len(self.entries)
        boxes = [(name, "entry", "") for name in self.entries]
        boxes += [(step.name, step.kind, str(i)) for i, step in enumerate(self.steps)]
        lines = [
            (source if number is None else entries + number, entries + i, "")
            for i, step in enumerate(self.steps)
            for number, source in step.sources
        ]
        return GraphShape(boxes, lines, [])

    def make_programs(self, tally: object) -> list[Program]:
        """Make the programs of one run, one for each step. They count with `tally`."""
        programs: list[Program] = []
        make_constants_immortal(*(step.make for step in self.steps))
        try:
            for step in self.steps:
                programs.append(step.make())
                programs[-1].tally = tally
        except BaseException:
            close(programs)
            raise
        return programs


def collected_by(programs: Iterable[Program]) -> dict[str, list[Any]]:
    """Return the lists of a run's collectors, by their names."""
    return {each.name: each.collected for each in programs if isinstance(each, Collect)}


def result_of(collected: dict[str, list[Any]]) -> Any:
    """Make a run's result of what its collectors have, by their names."""
    if len(collected) == 1:
        return next(iter(collected.values()))
    return collected or None


def start(programs: Iterable[Program]) -> None:
    """Let a run's programs know that its first round is about to come."""
    for each in programs:
        if isinstance(each, Call) and each.start is not None:
            each.start()


def close(programs: Iterable[Program]) -> None:
    """Close a run's programs. Their exceptions are logged, and are not the run's result; Ctrl-C is
    raised when all are closed.
    """
    interrupt: KeyboardInterrupt | None = None
    for program in programs:
        try:
            program.close()
        except BaseException as error:
            log.error("an operator failed to close", operator=program.name, exc_info=error)
            interrupt = error if isinstance(error, KeyboardInterrupt) else interrupt
    if interrupt is not None:
        raise interrupt
