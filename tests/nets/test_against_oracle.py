"""Runs against the oracle: random nets and whole programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import assume, given

from callboard import ActorSystem, DeadLetter
from callboard.nets.errors import NetTypeError
from callboard.nets.terms.network import Choice, Net, Ordered, Sync
from callboard.nets.types.typed import infer
from tests.nets.inference import inputs_of
from tests.nets.oracle import Record, counted, run
from tests.nets.programs import ORDERED, PROGRAMS, Program
from tests.nets.strategies import Drawn, nets_with_records, parts_of

pytest.importorskip("callboard.nets.running")

# Random nets have branches that no record goes to.
pytestmark = pytest.mark.filterwarnings("ignore::callboard.nets.NetWarning")

TIMEOUT = 60.0


class Laboratory:
    """Runs nets in one system, and collects the dead letters of each run."""

    def __init__(self, system: ActorSystem) -> None:
        self.system = system
        self.letters: list[DeadLetter] = []
        system.dead_letters.subscribe(self.letters.append)

    def run(self, net: Net, records: list[Record]) -> tuple[list[Record], Counter[str]]:
        """Return what a run puts out, and what its cells still keep at the end."""
        self.letters.clear()
        at_work = self.system.run(net)
        at_work.send(records, timeout=TIMEOUT)
        outputs = [dict(record) for record in at_work.finish(TIMEOUT)]
        assert {letter.reason for letter in self.letters} <= {"unpaired"}
        return outputs, counted(letter.message for letter in self.letters)


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def laboratory(request: pytest.FixtureRequest) -> Iterator[Laboratory]:
    with ActorSystem(workers=request.param) as system:
        yield Laboratory(system)


@given(nets_with_records())
def test_an_ordered_net_is_the_sequential_interpreter(laboratory: Laboratory, drawn: Drawn) -> None:
    assume(takes_part(drawn.net))
    expected = run(drawn.net, drawn.records)
    outputs, leftovers = laboratory.run(Ordered(drawn.net), drawn.records)
    assert outputs == expected.outputs
    assert leftovers == counted(expected.leftovers)


@given(nets_with_records(threads=True))
def test_an_ordered_net_is_so_with_boxes_on_other_threads(
    laboratory: Laboratory, drawn: Drawn
) -> None:
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
def test_other_nets_without_state_put_out_the_same_records(
    laboratory: Laboratory, drawn: Drawn
) -> None:
    assume(takes_part(drawn.net))
    outputs, leftovers = laboratory.run(drawn.net, drawn.records)
    assert counted(outputs) == counted(run(drawn.net, drawn.records).outputs)
    assert not leftovers


@pytest.mark.parametrize("program", PROGRAMS, ids=repr)
def test_programs_give_what_plain_python_says(laboratory: Laboratory, program: Program) -> None:
    outputs, leftovers = laboratory.run(program.net, program.records)
    if program.name in ORDERED:
        assert outputs == program.outputs
    else:
        assert counted(outputs) == counted(program.outputs)
    assert leftovers == counted(program.leftovers)


@given(nets_with_records(cells=False))
def test_types_have_what_the_definitions_ask_for(drawn: Drawn) -> None:
    """The definitions know no ties: of branches that match equally well, the first gets it."""
    assume(takes_part(drawn.net))
    found, expected = (
        {v for v in inputs if "<#i>" not in v}
        for inputs in (infer(drawn.net).inputs, inputs_of(drawn.net))
    )
    assert all(any(asked <= variant for asked in expected) for variant in found)


def takes_part(net: Net) -> bool:
    """Tell whether a net has a type, and the oracle sees the same types in all branches.

    The product's types let no binding tag into `[]` and splits, which hand them on at run time.
    Types may differ where a cell is inside: at run time, it takes everything. And they may not show
    that all fits, because they do not know in which order records come to a cell. Without ties, the
    oracle may see a binding tag come from a branch that gets no record.
    """
    is_binding = re.compile("is a binding tag|<#i>[^}]*} against")
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
