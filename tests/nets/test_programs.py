"""Whole programs under the oracle, from terms and from texts."""

from __future__ import annotations

import pytest

from callboard.nets.language.parsing import parse
from tests.nets.oracle import Outcome, counted, run
from tests.nets.programs import PROGRAMS, Program


@pytest.mark.parametrize("program", PROGRAMS, ids=repr)
def test_programs_equal_plain_python(program: Program) -> None:
    agrees(run(program.net, program.records), program)


@pytest.mark.parametrize("program", PROGRAMS, ids=repr)
def test_their_texts_say_the_same(program: Program) -> None:
    pytest.importorskip("lark")
    agrees(run(parse(program.text, boxes=program.boxes), program.records), program)


def agrees(outcome: Outcome, program: Program) -> None:
    assert outcome.error is None
    assert outcome.outputs == program.outputs
    assert counted(outcome.leftovers) == counted(program.leftovers)
