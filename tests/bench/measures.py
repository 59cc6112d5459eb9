"""Measures for targets: ratios, rates and costs of a run's results."""

import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from competitor import Cost, Score
from workers_suite import name_of

Results = dict[str, dict[str, Score]]
Measure = Callable[[Results], float]

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
PYTHON_FLOOR, NATIVE_FLOOR = "bare method call", "C++ floor"


class NotMeasuredError(Exception):
    """Nothing to judge by: a competitor is absent or failed."""


class NotRunError(NotMeasuredError):
    """The benchmark was not asked for."""


def score(results: Results, benchmark: str, competitor: str) -> Score:
    if benchmark not in results:
        raise NotRunError(f"`{benchmark}` was not run")
    found = results[benchmark].get(competitor)
    if found is None:
        raise NotMeasuredError(f"{competitor} is not in `{benchmark}`")
    if not found.valid:
        raise NotMeasuredError(f"{competitor}: {found.error or found.absent}")
    return found


def value(benchmark: str, ours: str = "callboard") -> Measure:
    return lambda results: score(results, benchmark, ours).median


def ratio(benchmark: str, other: str, ours: str = "callboard") -> Measure:
    """Measure one competitor's rate against another's."""
    return lambda results: score(results, benchmark, ours).over(score(results, benchmark, other))


def least_lead(library: str) -> Measure:
    """Measure callboard against a library where that does best against it.

    Asks are held against two threads instead: Thespian's fastest system answers them in the
    caller's own thread.
    """

    def measure(results: Results) -> float:
        leads = [
            scores["callboard"].over(scores[library])
            for name, scores in results.items()
            if name != "ask"
            if "callboard" in scores and scores["callboard"].valid
            if library in scores and scores[library].valid
        ]
        if not leads:
            played = any(library in scores for scores in results.values())
            error = NotMeasuredError if played else NotRunError
            raise error(f"callboard and {library} met in no benchmark")
        return min(leads)

    return measure


def cost(benchmark: str, other: str, ours: str) -> Measure:
    """Measure how many times one competitor's time the other takes."""
    return lambda results: 1 / ratio(benchmark, other, ours)(results)


def best_peer(benchmark: str, prefix: str) -> Measure:
    """Measure callboard's rate against the fastest of those whose names begin alike."""

    def measure(results: Results) -> float:
        names = [name for name in results.get(benchmark, ()) if name.startswith(prefix)]
        return min(ratio(benchmark, name)(results) for name in names or [prefix])

    return measure


def by_hand(benchmark: str, kind: str) -> Measure:
    """Measure two workers without placement against two placed well, or one if that is faster."""

    def measure(results: Results) -> float:
        ways = (name_of(kind, 1), name_of(kind, 2, "placed well"))
        best = max(ways, key=lambda way: value(benchmark, way)(results))
        return ratio(benchmark, best, name_of(kind, 2))(results)

    return measure


def least(*measures: Measure) -> Measure:
    return lambda results: min(measure(results) for measure in measures)


def best_of(benchmark: str, others: Sequence[str], ours: str) -> Measure:
    """Measure a competitor's rate against that of the fastest of others."""

    def measure(results: Results) -> float:
        best = max(others, key=lambda each: value(benchmark, each)(results))
        return ratio(benchmark, best, ours)(results)

    return measure


def ahead(benchmark: str, others: Sequence[str], ours: str) -> Measure:
    """Measure a competitor's rate against that of the fastest of those others that are there."""

    def measure(results: Results) -> float:
        scores = results.get(benchmark, {})
        present = [each for each in others if each in scores and scores[each].valid]
        return best_of(benchmark, present or others, ours)(results)

    return measure


def greatest(*measures: Measure) -> Measure:
    return lambda results: max(measure(results) for measure in measures)


def noted(benchmark: str, name: Cost, ours: str) -> Measure:
    """Measure what the runs have noted beside their rate."""

    def measure(results: Results) -> float:
        found = score(results, benchmark, ours).cost(name)
        if found is None:
            raise NotMeasuredError(f"{ours}: `{benchmark}` has no {name}")
        return found

    return measure


def more(benchmark: str, name: Cost, first: str, last: str) -> Measure:
    """Measure how much more the last costs than the first."""
    return lambda results: (
        noted(benchmark, name, last)(results) - noted(benchmark, name, first)(results)
    )


def spread(benchmark: str, *competitors: str) -> Measure:
    """Measure how many times the least value the greatest is."""

    def measure(results: Results) -> float:
        values = [value(benchmark, each)(results) for each in competitors]
        return max(values) / min(values)

    return measure


def growth(benchmark: str, first: str, last: str) -> Measure:
    return lambda results: value(benchmark, last)(results) - value(benchmark, first)(results)


@dataclass(frozen=True)
class Target:
    """At least `wanted`, or at most."""

    text: str
    wanted: float
    measure: Measure
    unit: str = "x"
    at_most: bool = False


@dataclass(frozen=True)
class Verdict:
    """What came of a target: `met` is None, and `note` says why, where nothing was measured."""

    text: str
    wanted: str
    measured: float | None
    unit: str
    met: bool | None
    note: str = ""
