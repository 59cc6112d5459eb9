"""A table of a run's results and the targets."""

from measures import NotMeasuredError, NotRunError, Results, Verdict
from report import quantity, table
from targets import TARGETS


def amount(number: float, unit: str) -> str:
    return f"{number:.3g} x" if unit == "x" else f"{quantity(number)} {unit}"


def judge(results: Results) -> list[Verdict]:
    """Hold every target against the results, but for those whose benchmarks were not run."""
    verdicts = []
    for target in TARGETS:
        wanted = f"{'at most ' * target.at_most}{amount(target.wanted, target.unit)}"
        try:
            measured = target.measure(results)
        except NotRunError:
            continue
        except NotMeasuredError as reason:
            verdict = Verdict(target.text, wanted, None, target.unit, None, str(reason))
        else:
            met = measured <= target.wanted if target.at_most else measured >= target.wanted
            verdict = Verdict(target.text, wanted, measured, target.unit, met)
        verdicts.append(verdict)
    return verdicts


def section(verdicts: list[Verdict]) -> str:
    """Write the table of what was wanted and what was measured."""
    rows = []
    for each in verdicts:
        measured = each.note if each.measured is None else amount(each.measured, each.unit)
        sign = {True: "met", False: "NOT MET", None: "not measured"}[each.met]
        rows.append([each.text, each.wanted, measured, sign])
    return f"### Targets\n\n{table(['', 'wanted', 'measured', ''], rows)}\n"
