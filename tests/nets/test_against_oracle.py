"""Runs against the oracle: random nets and whole programs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from callboard import ActorSystem, DeadLetter
from callboard.nets import NetOperator
from callboard.nets.errors import BoxError, NetEnded, NetTypeError, RecordError
from callboard.nets.terms.labels import Label
from callboard.nets.terms.network import Choice, Net, Ordered, Sync
from callboard.nets.types.typed import infer
from callboard.testing import ManualSystem
from tests.nets.inference import inputs_of
from tests.nets.oracle import Record, counted, run
from tests.nets.places import always_leave, change_places, have_two_cores, share_boxes
from tests.nets.programs import ORDERED, PROGRAMS, Program
from tests.nets.strategies import Drawn, nets_with_records, parts_of

pytest.importorskip("callboard.nets.running")

# Random nets have branches that no record goes to.
TIMEOUT = 60.0


class Laboratory:
    """Runs nets in one system, and collects the dead letters of each run.

    `together`: the records of a run are sent in one message.
    """

    def __init__(self, system: ActorSystem, *, together: bool) -> None:
        self.system = system
        self.together = together
        self.letters: list[DeadLetter] = []
        system.dead_letters.subscribe(self.letters.append)

    def run(self, net: Net, records: list[Record]) -> tuple[list[Record], Counter[str]]:
        """Return what a run puts out, and what its cells still keep at the end."""
        outputs, letters = self.run_with_faults(net, records)
        assert set(letters) <= {"unpaired"}
        return outputs, letters["unpaired"]

    def run_with_faults(
        self, net: Net, records: list[Record]
    ) -> tuple[list[Record], dict[str, Counter[str]]]:
        """Return what a run puts out, and its dead letters by their reasons."""
        self.letters.clear()
        at_work = self.system.run(net)
        for sent in [records] if self.together else [[record] for record in records]:
            at_work.send(sent, timeout=TIMEOUT)
        outputs = [dict(record) for record in at_work.finish(TIMEOUT)]
        letters: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for letter in self.letters:
            letters[letter.reason] += counted(comparable([letter.message]))
        return outputs, letters


SYSTEMS: dict[str, dict[str, Any]] = {
    "one worker": {"workers": 1},
    "two workers": {"workers": 2},
    "two processes": {"processes": 2},
    "changing places": {"processes": "auto"},
    "boxes on workers": {"workers": 2},
    "changing workers": {"workers": 2},
}


TOGETHER = {"one worker", "two workers", "two processes"}  # the others need several turns


@pytest.fixture(scope="module", params=[*SYSTEMS])
def laboratory(request: pytest.FixtureRequest, root: Path) -> Iterator[Laboratory]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(root))  # where processes find the functions of boxes
        if request.param == "changing places":
            have_two_cores(patched)
            change_places(patched)
        if request.param == "boxes on workers":
            share_boxes(patched)
            always_leave(patched)
        if request.param == "changing workers":
            share_boxes(patched)
            change_places(patched)
        with ActorSystem(**SYSTEMS[request.param]) as system:
            yield Laboratory(system, together=request.param in TOGETHER)


@given(nets_with_records())
def test_an_ordered_net_is_the_sequential_interpreter(laboratory: Laboratory, drawn: Drawn) -> None:
    assume(takes_part(drawn.net))
    expected = run(drawn.net, drawn.records)
    outputs, leftovers = laboratory.run(Ordered(drawn.net), drawn.records)
    assert outputs == expected.outputs
    assert leftovers == counted(expected.leftovers)


@given(nets_with_records(threads=True))
def test_an_ordered_net_with_threads_is_sequential(laboratory: Laboratory, drawn: Drawn) -> None:
    assume(takes_part(drawn.net))
    expected = run(drawn.net, drawn.records)
    outputs, leftovers = laboratory.run(Ordered(drawn.net), drawn.records)
    assert outputs == expected.outputs
    assert leftovers == counted(expected.leftovers)


@given(nets_with_records(cells=False, threads=True))
def test_threads_lose_no_record_and_make_none(laboratory: Laboratory, drawn: Drawn) -> None:
    assume(takes_part(drawn.net))
    outputs, leftovers = laboratory.run(drawn.net, drawn.records)
    assert counted(outputs) == counted(run(drawn.net, drawn.records).outputs)
    assert not leftovers


@given(nets_with_records(cells=False))
def test_stateless_nets_put_out_the_same_records(laboratory: Laboratory, drawn: Drawn) -> None:
    assume(takes_part(drawn.net))
    outputs, leftovers = laboratory.run(drawn.net, drawn.records)
    assert counted(outputs) == counted(run(drawn.net, drawn.records).outputs)
    assert not leftovers


@given(nets_with_records(threads=True, faults=True))
def test_a_failed_record_has_no_outputs_if_ordered(laboratory: Laboratory, drawn: Drawn) -> None:
    assume(takes_part(drawn.net))
    expected = run(drawn.net, drawn.records)
    outputs, letters = laboratory.run_with_faults(Ordered(drawn.net), drawn.records)
    assert comparable(outputs) == comparable(expected.outputs)
    assert letters["unpaired"] == counted(comparable(expected.leftovers))
    assert letters["skipped"] == counted(comparable(expected.skipped))
    assert set(letters) <= {"unpaired", "skipped"}


@given(nets_with_records(cells=False, threads=True, faults=True))
def test_a_record_that_fails_has_no_outputs(laboratory: Laboratory, drawn: Drawn) -> None:
    assume(takes_part(drawn.net))
    expected = run(drawn.net, drawn.records)
    outputs, letters = laboratory.run_with_faults(drawn.net, drawn.records)
    assert counted(comparable(outputs)) == counted(comparable(expected.outputs))
    assert letters["skipped"] == counted(comparable(expected.skipped))
    assert set(letters) <= {"skipped"}


@given(nets_with_records(threads=True, faults=True))
def test_a_net_in_a_stream_is_the_sequential_interpreter(drawn: Drawn) -> None:
    assume(takes_part(drawn.net))
    expected = run(drawn.net, drawn.records)
    operator = NetOperator(drawn.net, unpaired="drop")
    outputs, skipped = [], 0
    for record in drawn.records:
        outputs += [dict(output) for output in operator.receive(record)]
        skipped += len(operator.take_skipped())
    assert operator.on_final() == []
    assert comparable(outputs) == comparable(expected.outputs)
    assert skipped == len(expected.skipped)


@given(
    nets_with_records(cells=False, starts=False, threads=True, faults=True),
    st.booleans(),
    st.integers(0, 2**32),
    st.integers(0, 100),
    st.sampled_from([1, 3, 256]),
)
def test_a_cancelled_net_has_put_out_all_of_a_record_or_a_dead_letter_says_so(
    drawn: Drawn, in_order: bool, seed: int, steps: int, window: int
) -> None:
    assume(takes_part(drawn.net))
    records = [{**record, "id": at} for at, record in enumerate(drawn.records)]
    expected = run(drawn.net, records)
    net = Ordered(drawn.net) if in_order else drawn.net
    letters: list[DeadLetter] = []
    with ManualSystem(seed, trace=False) as system:
        system.dead_letters.subscribe(letters.append)
        at_work = system.run(net, window=window)
        at_work.tell_many(records)
        for _ in range(steps):
            if not system.step():
                break
        at_work.cancel()
        outputs: list[Record] = []
        with pytest.raises(NetEnded, match="cancelled"):
            outputs.extend(map(dict, at_work.results()))
    if in_order:
        assert comparable(outputs) == comparable(expected.outputs)[: len(outputs)]
    assert counted(comparable(outputs)) <= counted(comparable(expected.outputs))
    skipped = [letter.message for letter in letters if letter.reason == "skipped"]
    stopped = {letter.message["id"] for letter in letters if letter.reason != "skipped"}
    assert counted(comparable(skipped)) <= counted(comparable(expected.skipped))
    assert {letter.reason for letter in letters} <= {"skipped", "stopped"}
    for found, whole in ((outputs, expected.outputs), (skipped, expected.skipped)):
        assert counted(comparable(record for record in found if record["id"] not in stopped)) == (
            counted(comparable(record for record in whole if record["id"] not in stopped))
        )


@pytest.mark.parametrize("program", PROGRAMS, ids=repr)
def test_programs_equal_plain_python(laboratory: Laboratory, program: Program) -> None:
    outputs, leftovers = laboratory.run(program.net, program.records)
    if program.name in ORDERED:
        assert outputs == program.outputs
    else:
        assert counted(outputs) == counted(program.outputs)
    assert leftovers == counted(program.leftovers)


@given(nets_with_records(cells=False))
def test_types_fit_the_definitions(drawn: Drawn) -> None:
    """The definitions know no ties: of branches that match equally well, the first gets it."""
    assume(takes_part(drawn.net))
    found, expected = (
        {v for v in inputs if "<#i>" not in v}
        for inputs in (infer(drawn.net).inputs, inputs_of(drawn.net))
    )
    assert all(any(asked <= variant for asked in expected) for variant in found)


def comparable(records: Iterable[Mapping[Label, Any]]) -> list[Record]:
    """Return records with the causes of their errors in the place of these."""
    return [
        {**record, "error": cause_of(record["error"])} if "error" in record else {**record}
        for record in records
    ]


def cause_of(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, BoxError) else error
    return "no output" if isinstance(cause, RecordError) else repr(cause)


def takes_part(net: Net) -> bool:
    """Tell whether a net has a type, and the oracle sees the same types in all branches.

    The product's types let no binding tag into `[]` and splits, which hand them on at run time.
    Types may differ where a cell is inside: at run time, it takes everything. And they may not show
    that all fits, because they do not know in which order records come to a cell. Without ties, the
    oracle may see a binding tag come from a branch that gets no record.
    """
    is_binding = re.compile(r"is a binding tag|<#i>[^}]*} against|for \{[^}]*<#i>\}, and its sign")
    has_cell = any(isinstance(part, Sync) for part in parts_of(net))
    try:
        infer(net)
        inputs_of(net)  # the oracle may refuse a loop whose records it sees leave only later
        return all(
            set(infer(branch).inputs) == set(inputs_of(branch))
            for part in parts_of(net)
            if isinstance(part, Choice)
            for branch in part.branches
        )
    except NetTypeError as error:
        if not has_cell and not is_binding.search(str(error)):
            raise
        return False
