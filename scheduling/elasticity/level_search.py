"""A search for the level with the largest throughput, within a few periods.

Each measurement costs a period, so there can be only a few. The search does not go level by level.
It compares a family of curves with the measurements, weights each curve by its fit, and predicts
the throughputs of the other levels. The curves have no unit: each is moved to its best fit.

- Gunther's universal scalability law: `n / (1 + a (n - 1) + b n (n - 1))`. Serial work (`a`)
  flattens it, and interference between workers (`b`) makes it fall.
- A knee: it rises with a power of the level, up to the limit of a lock or of the lanes. From there
  it is flat or falls, with a power of the level or linearly.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from callboard.scheduling.elasticity.level_bounds import stepped

PERIODS = 5
_PROMISE = 0.005
"""The gain that a try must promise, as a part of the throughput."""
_TIE = 0.01
"""Among levels that differ by less, the lowest is the best."""
_SPREAD = 0.05
"""The distance of measurements from their curve, as a part of it."""
_FREEDOM = 3
"""Degrees of freedom of Student's t: few, so that an outlier does not rule out a curve."""
_LEAST_WEIGHT = 1e-4

_SERIAL = (0.0, 0.003, 0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)
_MUTUAL = (0.0, 1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 4e-3, 8e-3, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5)
_RISES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.3)
_FALLS = (0.0, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0)
_RISES_TO_SLOPES = (1.0, 0.8)
_SLOPES = (0.015, 0.03, 0.06, 0.1, 0.2, 0.4)

Curve = Callable[[int], float]
"""The logarithm of the throughput at a level."""


@dataclass(frozen=True)
class Prediction:
    """The logarithm of a level's expected throughput, and its expected gain over others."""

    level: int
    mean: float
    gain: float


class Curves:
    """The family of curves, for levels up to `most`."""

    def __init__(self, most: int) -> None:
        self._curves, self._priors = _family(most)
        self._columns: dict[int, array[float]] = {}

    def predict(self, measured: Mapping[int, float], levels: Iterable[int]) -> list[Prediction]:
        """Return predictions for `levels` from measured throughputs."""
        points = [(self._column(level), math.log(value)) for level, value in measured.items()]
        likely = self._likely(points)
        weights = [weight for _, weight, _ in likely]

        def expected(level: int) -> list[float]:
            column = self._column(level)
            return [column[at] + shift for at, _, shift in likely]

        best = max(_dot(weights, expected(level)) for level in measured)
        found = []
        for level in levels:
            values = expected(level)
            gains = [value - best if value > best else 0.0 for value in values]
            found.append(Prediction(level, _dot(weights, values), _dot(weights, gains)))
        return found

    def _likely(self, points: list[tuple[array[float], float]]) -> list[tuple[int, float, float]]:
        """Return the index, the weight and the shift of each curve that fits."""
        found = []
        power = -(len(points) + _FREEDOM - 1) / 2
        for at, prior in enumerate(self._priors):
            rests = [value - column[at] for column, value in points]
            shift = sum(rests) / len(rests)
            misfit = sum([(rest - shift) ** 2 for rest in rests]) / (_FREEDOM * _SPREAD**2)
            found.append((at, prior * (1 + misfit) ** power, shift))
        least = _LEAST_WEIGHT * max(weight for _, weight, _ in found)
        likely = [each for each in found if each[1] > least]
        whole = sum(weight for _, weight, _ in likely)
        return [(at, weight / whole, shift) for at, weight, shift in likely]

    def _column(self, level: int) -> array[float]:
        if level not in self._columns:
            self._columns[level] = array("d", (curve(level) for curve in self._curves))
        return self._columns[level]


@lru_cache(maxsize=4)
def curves_up_to(most: int) -> Curves:
    """Return the family for levels up to `most`, which is made once."""
    return Curves(most)


def _dot(weights: list[float], values: list[float]) -> float:
    return float(sum(map(operator.mul, weights, values)))


def _family(most: int) -> tuple[list[Curve], list[float]]:
    """Return the curves with their prior probabilities."""
    knees = stepped(1, most, 0.1)
    # As likely between 1 and 2 as between 32 and 64.
    shares = [math.log((after + knee) / (knee + before)) for before, knee, after in _triples(knees)]
    laws = [(_law(serial, mutual), 1.0) for serial in _SERIAL for mutual in _MUTUAL]
    bends = [
        (_knee(rise, knee, fall), share)
        for knee, share in zip(knees, shares, strict=True)
        for rise in _RISES
        for fall in _FALLS
    ]
    slopes = [
        (_slope(rise, knee, fall), share)
        for knee, share in zip(knees, shares, strict=True)
        for rise in _RISES_TO_SLOPES
        for fall in _SLOPES
    ]
    curves, priors = [], []
    for kind in (laws, bends, slopes):
        whole = sum(share for _, share in kind)
        curves += [curve for curve, _ in kind]
        priors += [share / whole for _, share in kind]
    return curves, priors


def _triples(levels: tuple[int, ...]) -> Iterable[tuple[int, int, int]]:
    after = (*levels[1:], levels[-1] + max(1, levels[-1] // 10))
    return zip((0, *levels), levels, after, strict=False)


def _law(serial: float, mutual: float) -> Curve:
    return lambda n: math.log(n) - math.log1p(serial * (n - 1) + mutual * n * (n - 1))


def _knee(rise: float, knee: int, fall: float) -> Curve:
    return lambda n: rise * math.log(min(n, knee)) - fall * math.log(max(n, knee) / knee)


def _slope(rise: float, knee: int, fall: float) -> Curve:
    return lambda n: rise * math.log(min(n, knee)) - math.log1p(fall * max(0, n - knee))


class Search:
    """A search for one load, among levels up to `most`."""

    def __init__(self, most: int) -> None:
        self._curves = curves_up_to(most)
        self._samples: dict[int, list[float]] = {}
        self._periods = 0

    @property
    def measured(self) -> dict[int, float]:
        """The throughput at each level that was tried."""
        return {level: median(samples) for level, samples in self._samples.items()}

    def add(self, level: int, throughput: float) -> None:
        """Add the throughput of a period of the search."""
        self.note(level, throughput)
        self._periods += 1

    def note(self, level: int, throughput: float) -> None:
        """Add the throughput of another period."""
        self._samples.setdefault(level, []).append(max(throughput, 1e-9))

    def next(self, levels: Collection[int]) -> tuple[int, bool]:
        """Return the next of `levels` to run, and whether it ends the search."""
        measured = self.measured
        predictions = self._curves.predict(measured, sorted(levels))
        tries = [each for each in predictions if each.level not in measured]
        most = max(tries, key=lambda each: each.gain, default=None)
        if self._periods < PERIODS and most is not None and most.gain >= _PROMISE:
            return most.level, False
        largest = max(each.mean for each in predictions)
        return next(each.level for each in predictions if each.mean >= largest - _TIE), True
