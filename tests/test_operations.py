"""All that a declaration of an operation has to be followed by, and what it has to say."""

from __future__ import annotations

import math
import runpy

import numpy as np
import pytest
from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Attribute, Block, Operation
from xdsl.utils.test_value import create_ssa_value

import pkc.dialect.pk
import pkc.language
from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp
from pkc.dialect.declaration import OPERATIONS, operation
from pkc.dialect.elementwise import SelectOp, Unary
from pkc.dialect.error_bounds import SAME_SIZE
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import FullOp
from pkc.dialect.types import TileType, f32, i1, i32
from pkc.driver.compiler import compile_program
from pkc.frontend.expressions import SIGNATURES
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.machine.check_machine import CheckMachine
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.elements import apply
from pkc.semantics import tile_ops
from pkc.targets.sm_90a import TARGET
from pkc.targets.sm_90a.instructions import PLAIN
from tests.functions import elements, program
from tests.sim.helpers import checked
from tools import operations_page

CASES = [(op, element) for op, declared in OPERATIONS.items() for element in sorted(declared.types, key=str)]


def test_a_type_without_an_error_rule_is_refused() -> None:
    class HalfOp(Unary):
        """a / 2"""

        name = "pk.half"

    with pytest.raises(TypeError, match=r"`pk\.half` has no error rule for i32"):
        operation("half", f32, i32, value=np.abs, real=SAME_SIZE)(HalfOp)
    with pytest.raises(TypeError, match=r"`pk\.half` has no error rule for f32"):
        operation("half", f32, value=np.abs)(HalfOp)
    assert not any(op.name == "pk.half" for op in OPERATIONS)


def test_an_operation_that_computes_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pkc.dialect.pk, "TILE", (*pkc.dialect.pk.TILE, LoadOp))
    with pytest.raises(TypeError, match=r"no value and no error rule for pk\.load"):
        runpy.run_path(tile_ops.__file__)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("tanh(0.5)", math.tanh(0.5)),
        ("erf(1)", math.erf(1)),
        ("sigmoid(-2)", 1 / (1 + math.exp(2))),
        ("rsqrt(4)", 0.5),
        ("cos(8)", math.cos(8)),
    ],
)
def test_functions_of_constants_are_computed(written: str, value: float) -> None:
    text = f"kernel k(Y: f32[M]):\n    for m in tasks(blocks(M, 64)):\n        Y[m] = full(f32, {written}, m)\n"
    module = compile_program(parse_text(Source("constant.pk", text))).module
    assert [op.constant for op in module.walk() if isinstance(op, FullOp)] == [pytest.approx(value, rel=1e-7)]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("exp(1000)", "out of range"),
        ("log(0)", "not defined"),
        ("rsqrt(-1)", "not defined"),
        ("sin(inf)", "not defined"),
    ],
)
def test_functions_of_constants_without_a_value_are_refused(written: str, problem: str) -> None:
    text = f"kernel k(Y: f32[M]):\n    for m in tasks(blocks(M, 64)):\n        Y[m] = full(f32, {written}, m)\n"
    with pytest.raises(PkcError, match=problem):
        compile_program(parse_text(Source("constant.pk", text)))


@pytest.mark.parametrize("number", range(2), ids=["language.py", "language.md"])
def test_what_follows_from_declarations_is_up_to_date(number: int) -> None:
    path, make = operations_page.PARTS[number]
    text = path.read_text(encoding="utf-8")
    assert text == make(text), "run `make golden`"


def test_every_function_has_a_signature_and_a_name() -> None:
    words = {declared.word for declared in OPERATIONS.values() if declared.word.isidentifier()} - {"and", "or", "not"}
    assert words <= SIGNATURES.keys()
    assert words - {"abs", "max", "min", "round"} <= {*pkc.language.__all__}


@pytest.mark.parametrize(("op", "element"), CASES, ids=lambda x: getattr(x, "name", "") or str(x))
def test_the_target_has_every_operation(op: type[Operation], element: Attribute) -> None:
    kind = op.COMBINE if issubclass(op, RowReduction) else op
    count = 1 if issubclass(op, Unary) else 2
    kinds = [i1, element, element] if op is SelectOp else [element] * count
    block = Block(arg_types=kinds)
    tiles = [create_ssa_value(TileType((8, 8), x)) for x in kinds[: 1 if issubclass(op, RowReduction) else 3]]
    made = apply(Emitter(block, UNKNOWN_LOC, TARGET), op(*tiles), kind, list(block.args))  # pyright: ignore[reportCallIssue]
    assert made.type == element
    for inner in block.ops:
        inner.verify()


@pytest.mark.parametrize(
    ("op", "element"),
    [(op, x) for op in OPERATIONS for x in elements(op)],
    ids=lambda x: getattr(x, "name", "") or str(x),
)
def test_a_program_of_it_runs_and_is_lowered(op: type[Operation], element: Attribute) -> None:
    source = parse_text(Source("function.pk", program(op, element, positive=element == f32)))
    sizes = {"M": 70} if issubclass(op, RowReduction) else {"M": 70, "N": 65}
    checked(compile_program(source).module, 1, **sizes)
    assert CheckMachine().findings(compile_program(source, level="machine").module) == []


def test_instructions_carry_out_what_is_declared() -> None:
    names = [entry.computes for entry in PLAIN if entry.computes]
    assert len(names) == len({*names})
    assert {*names} <= {op.name for op in OPERATIONS}
