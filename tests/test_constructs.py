"""The table of docs/language.md that says what each target does with every construct."""

from __future__ import annotations

import pytest

from pkc.diagnostics import PkcError
from pkc.dialect.machine import InstructionOp
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.frontend.tree import Program
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tools.constructs import CONSTRUCTS, MEANS, PAGE, Construct, page

SIZES = {"M": 6, "N": 6, "K": 5, "E": 2, "T": 7}


def program(construct: Construct) -> Program:
    return parse_text(Source("construct.pk", construct.text))


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run `python -m tools.constructs`"


def test_each_construct_has_a_row() -> None:
    assert len({construct.name for construct in CONSTRUCTS}) == len(CONSTRUCTS)
    for construct in CONSTRUCTS:
        assert not (construct.means and construct.refused)


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda construct: construct.name)
def test_construct(construct: Construct) -> None:
    """The simulator runs it; sm_90a takes these instructions, or refuses it with this code."""
    module = compile_program(program(construct), schedule=construct.schedule).module
    dims = {name: size for name, size in SIZES.items() if f"{name}," in construct.text or f"{name}]" in construct.text}
    simulate(module, ranks=2, dims=dims, inputs=draw_inputs(module, ranks=2, dims=dims, seed=1))
    try:
        lowered = compile_program(program(construct), schedule=construct.schedule, level="machine").module
    except PkcError as error:
        assert [finding.code for finding in error.diagnostics][:1] == [construct.refused]
        return
    used = {op.instruction_name.data for op in lowered.walk() if isinstance(op, InstructionOp)}
    found = [word for word, begins in MEANS.items() if any(name.startswith(begins) for name in used)]
    assert (", ".join(found), "") == (construct.means, construct.refused)
