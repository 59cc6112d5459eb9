"""The plan that all runs of a graph share, and the programs of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
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
    """A constraint on where a stream's operators may run; each call makes a new one."""

    model: Model | None = None
    """None: the run's."""
    is_port: bool = False
    """Where the model is `manual`, a thread begins here."""
    here: bool = False
    """In the program's process, and in no worker process."""


UNCONSTRAINED = Constraint()


def check_model(what: str, value: Any) -> Model:
    """Check the name of a threading model. Raises GraphError."""
    check_choice(what, value, MODELS)
    return cast("Model", value)


# Where an input comes from: (number of an operator, port), or (None, number of an entry).
Source = tuple[int | None, int]


@dataclass(frozen=True)
class PlannedOperator:
    """An operator of a plan, from which each run makes a program, and the sources of its inputs."""

    name: str
    make: Callable[[], Program]
    sources: tuple[Source, ...]
    constraint: Constraint = UNCONSTRAINED
    max_workers: int | None = None
    waits: bool = False
    """It may wait for another process."""
    numbers: bool = False
    """The planner added it, to number the rows of its source."""
    kind: str = "number"
    detail: str = ""
    """The words of its operator beyond its kind."""
    is_keyed: bool = False
    """It has a state for each key."""
    has_state: bool = False
    portable: partial[Program] | None = None
    """Makes the program in a worker process, if it may run there."""
    stays: str = ""
    """Why it may not."""

    def model(self, default: Model) -> Model:
        """Return its threading model, where `default` is the run's."""
        if self.constraint.model is not None:
            return self.constraint.model
        return "dedicated" if self.waits and default in ("dynamic", "assigned") else default


@dataclass(frozen=True)
class Plan:
    """The operators of a graph's runs, each after the operators that it reads."""

    entries: tuple[str, ...]
    operators: tuple[PlannedOperator, ...]

    def names_of_inputs(self) -> dict[str, list[str]]:
        """Map the names of operators with several inputs to the names of these inputs."""
        return {
            operator.name: [self._name_of(*source) for source in operator.sources]
            for operator in self.operators
            if len(operator.sources) > 1
        }

    def _name_of(self, number: int | None, port: int) -> str:
        if number is None:
            return self.entries[port]
        operator = self.operators[number]
        return self._name_of(*operator.sources[0]) if operator.numbers else operator.name

    def shape(self) -> GraphShape:
        """Return the shape of the graph: entries, and operators by their numbers."""
        entries = len(self.entries)
        boxes = [(name, "entry", "") for name in self.entries]
        boxes += [(each.name, each.kind, str(i)) for i, each in enumerate(self.operators)]
        lines = [
            (source if number is None else entries + number, entries + i, "")
            for i, operator in enumerate(self.operators)
            for number, source in operator.sources
        ]
        return GraphShape(boxes, lines, [])

    def make_programs(self, row_counts: object) -> list[Program]:
        """Make the programs of one run, one for each operator. They count with `row_counts`."""
        programs: list[Program] = []
        make_constants_immortal(*(operator.make for operator in self.operators))
        try:
            for operator in self.operators:
                programs.append(operator.make())
                programs[-1].row_counts = row_counts
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
