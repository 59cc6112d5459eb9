"""An experiment with a run: in every second period one of its operators seems faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.streams.errors import RunError
from callboard.streams.experiments.what_if import Period, WhatIf, WhatIfs, compared
from callboard.streams.running.execution import Execution
from callboard.streams.running.slowing import Slowing

_PAIRS = 8  # of a period as it is and one in which the operator seems faster
_SETTLE = 0.25  # the part of a period before it is measured
_LEAST = 4  # rounds in a period
_LOOK = 0.05  # seconds
_PATIENCE = 3.0  # seconds, at least, for the rounds of a period
_NEVER = 2**62  # rounds


def predict(work: Execution, operator: Any, faster: Any, seconds: Any) -> WhatIf:
    """Predict a run's gain if one operator were faster. See `Run.what_if`."""
    (answer,) = _predict(work, [operator], faster, seconds)
    return answer


def predict_all(work: Execution, faster: Any, seconds: Any) -> WhatIfs:
    """Predict a run's gain for each operator that is on a lane. See `Run.what_if`."""
    names = [program.name for program in work.programs]
    on_lanes = [name for number, name in enumerate(names) if not work.flow.is_called(number)]
    answers = _predict(work, list(dict.fromkeys(on_lanes)), faster, seconds)
    return WhatIfs(sorted(answers, key=lambda one: -one.gain))


def _predict(work: Execution, operators: Sequence[Any], faster: Any, seconds: Any) -> list[WhatIf]:
    part = _part_of(faster)
    seconds = checks.seconds("what_if()'s seconds", seconds, zero=False, error=ConfigError)
    _refuse_if_impossible(work)
    of_each = [(operator, _numbers_of(operator, work)) for operator in operators]
    work.life.check_caller("what_if()", by_any_caller=True)
    watches = f"it watches the run for {seconds:g} s"
    instead = "await awhat_if()"
    work.life.check_wait("what_if()", instead, for_others=watches)
    if work.system._runtime.manual:
        raise RunError(f"what_if() measures time, and {work.system!r} has a logical clock")
    with _begun(work) as slowing:
        experiment = Experiment(work, slowing, seconds, lambda: _refuse_if_impossible(work))
        return [experiment.predict(name, numbers, part) for name, numbers in of_each]


@contextmanager
def _begun(work: Execution) -> Iterator[Slowing]:
    if not work.experiment.acquire(blocking=False):
        raise RunError(f"another what_if() of {work!r} has not ended")
    try:
        slowing = Slowing(work.flow)
        slowing.begin()
        work.admit_round = slowing.admit_slowly
        try:
            yield slowing
        finally:
            work.admit_round = work.flow.try_admit
            slowing.end()
    finally:
        work.experiment.release()


def _refuse_if_impossible(work: Execution) -> None:
    """Raise if the run has ended, or if worker processes run operators, which may begin any time.

    Processes do not pause for others: their work during a pause would count as time that the
    operator saves.
    """
    places = zip(work.programs, work.deployment.places, strict=True)
    away = [program.name for program, place in places if place.segment is not None and place.where]
    if away:
        raise RunError(
            "what_if() has all other operators pause while one works, and worker processes, which "
            f"run {', '.join(map(repr, dict.fromkeys(away)))}, do not pause: try it in a system "
            "with processes=0, or keep the operators in the program by here()"
        )
    work.life.check_not_stopped()
    if work.life.ended or (work.life.finishing and work.flow.done >= work.flow.admitted):
        raise work.life.why_ended(f"{work!r} has ended, and what_if() watches it at work")


class Experiment:
    """An experiment with a run: divides it into periods, and compares them.

    `refuse` raises if the run has ended, or cannot be measured any more. It is called between
    looks, by the thread of `predict()`.
    """

    def __init__(
        self,
        run: Execution,
        slowing: Slowing,
        seconds: float,
        refuse: Callable[[], None],
    ) -> None:
        self.run = run
        self.flow = run.flow
        self.slowing = slowing
        self.seconds = seconds
        self.period = seconds / (2 * _PAIRS + 1)
        self.refuse = refuse

    def predict(self, name: str, numbers: Sequence[int], faster: float) -> WhatIf:
        """Let the operator seem faster in every second period. Takes about `seconds`."""
        plain, fast = [self._period((), 0.0)], []
        for _ in range(_PAIRS):
            fast.append(self._period(numbers, faster))
            plain.append(self._period((), 0.0))
        return compared(name, faster, plain, fast)

    def _period(self, numbers: Sequence[int], faster: float) -> Period:
        flow = self.flow
        self.slowing.let_seem_faster(numbers, faster)
        self._pass(self.period * _SETTLE)
        begun = self._moment(flow.done + 1)
        rows, admitted = flow.rows, flow.admitted
        self._pass(self.period * (1.0 - _SETTLE))
        # A sender that fills the window, and then sleeps, does the same after each window.
        window, rounds = flow.window, flow.done + 1 - begun[0]
        whole = -(-rounds // window) * window if rounds > window else max(rounds, _LEAST)
        ended = self._moment(begun[0] + whole)
        # Rounds may become smaller, or larger, while the run goes on.
        of_rounds = max(1, flow.admitted - admitted)
        rows_of_a_round = (flow.rows - rows) / of_rounds or flow.rows / flow.admitted
        seconds = (ended[1] - begun[1] - ended[2] + begun[2]) / 1e9
        return Period((ended[0] - begun[0]) * rows_of_a_round, seconds)

    def _pass(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.refuse()
            self.flow.wait_until_done(_NEVER, min(left, _LOOK))

    def _moment(self, wanted: int) -> tuple[int, int, float]:
        """Wait until this many rounds are done. The period grows if they take longer."""
        patience = max(self.seconds, _PATIENCE)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            self.refuse()
            if (moment := self.slowing.moment(wanted, min(self.period, _LOOK))) is not None:
                return moment
        raise RunError(
            f"what_if() needs {_LEAST} rounds in a period, and {self.run!r} has not done them in "
            f"{patience:g} s: send it rows from another thread, give it more seconds, or give the "
            "run a smaller batch_size"
        )


def _part_of(faster: Any) -> float:
    """Check by which part an operator is to seem faster."""
    part = checks.finite("what_if()'s faster", faster, error=ConfigError)
    if not 0 < part <= 1:
        raise ConfigError(
            "what_if()'s faster must be a fraction of the operator's time, above 0 and at most 1, "
            f"got {safe_repr(faster)}"
        )
    return float(part)


def _numbers_of(operator: Any, work: Execution) -> list[int]:
    """Return the numbers of the programs of an operator that is on lanes."""
    names = [program.name for program in work.programs]
    numbers = [number for number, name in enumerate(names) if name == operator]
    if not numbers:
        has = ", ".join(map(repr, dict.fromkeys(names)))
        raise RunError(
            f"what_if() expects the name of one of the operators {has}, got {safe_repr(operator)}"
        )
    if any(map(work.flow.is_called, numbers)):
        raise RunError(
            "what_if() is for operators on workers or separate threads, and the sending thread "
            f"runs {operator!r}: run the graph without threading='manual'"
        )
    return numbers
