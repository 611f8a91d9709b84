"""Every operation of the dialect is printed and parsed, and refused where it is malformed."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.ir import Attribute, Operation

from pkc.cli.opt import parse_ir
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import SelectOp, Unary
from pkc.dialect.pk import Pk, context
from pkc.dialect.reductions import RowReduction
from pkc.dialect.types import bf16, f32, i1, i32
from pkc.passes.run import print_ir
from pkc.passes.verify import findings, verify

HERE = Path(__file__).parent
EVERY = (HERE / "every_operation.mlir").read_text(encoding="utf-8")
INVALID = "".join(path.read_text(encoding="utf-8") for path in sorted(HERE.glob("invalid_*.mlir")))


def test_the_custom_form_is_printed_as_it_is_parsed() -> None:
    module = parse_ir(EVERY, "every_operation.mlir")
    verify(module)
    assert print_ir(module) == EVERY


def test_the_generic_form_says_the_same() -> None:
    module = parse_ir(EVERY, "every_operation.mlir")
    again = parse_ir(print_ir(module, generic=True), "generic")
    assert again.is_structurally_equivalent(module)
    assert print_ir(again) == EVERY


def test_locations_are_printed_and_parsed() -> None:
    module = parse_ir(EVERY, "every_operation.mlir")
    again = parse_ir(print_ir(module, locations=True), "other.mlir")
    assert [op.location for op in again.walk()][1:] == [op.location for op in module.walk()][1:]


def test_every_operation_is_in_the_round_trip() -> None:
    seen = {op.name for op in parse_ir(EVERY, "every_operation.mlir").walk()}
    assert {op.name for op in Pk.operations if op not in OPERATIONS} <= seen


def _text(op: type[Operation], element: Attribute) -> str:
    """An operation on elements of a type, by its declaration."""
    tile, row = f"!pk.tile<8x4x{element}>", f"!pk.tile<8x{element}>"
    operands = "%a" if issubclass(op, Unary | RowReduction) else "%a, %a"
    types = f"{tile} -> {row}" if issubclass(op, RowReduction) else tile
    if op is SelectOp:
        operands, types = "%c, %a, %a", f"!pk.tile<8x4xi1>, {tile}"
    given = f'%a = "t.v"() : () -> {tile}\n%c = "t.v"() : () -> !pk.tile<8x4xi1>\n'
    return f"{given}%r = {op.name} {operands} : {types}\n"


@pytest.mark.parametrize("element", [f32, i32, i1, bf16], ids=str)
@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_what_is_declared_is_printed_and_parsed_and_verified(op: type[Operation], element: Attribute) -> None:
    ctx = context()
    ctx.allow_unregistered = True
    module = parse_ir(_text(op, element), "declared.mlir", ctx=ctx)
    assert print_ir(parse_ir(print_ir(module), "again.mlir", ctx=ctx)) == print_ir(module)
    found = [str(finding) for finding in findings(module)]
    if element in OPERATIONS[op].types:
        assert found == []
    else:
        assert len(found) == 1
        assert f"invalid `{op.name}`: expected elements of type" in found[0]


@pytest.mark.parametrize("op", [op for op in Pk.operations if op not in OPERATIONS], ids=lambda op: op.name)
def test_every_verifier_is_provoked(op: type[Operation]) -> None:
    assert f"invalid `{op.name}`" in INVALID


def test_a_value_from_a_sibling_region_is_not_defined() -> None:
    text = """
      %n = "pk.rank"() : () -> index
      "pk.tasks"(%n) ({
      ^bb0(%i: index):
        %a = pk.ring_peer %i
      }) : (index) -> ()
      %b = pk.ring_peer %n
    """
    module = parse_ir(text, "sibling.mlir")
    inner, last = [op for op in module.walk() if op.name == "pk.ring_peer"]
    last.operands[0] = inner.results[0]
    assert [finding.code for finding in findings(module)] == ["PK441"]
    last.operands[0] = inner.operands[0]
    assert [finding.code for finding in findings(module)] == ["PK441"]


def test_a_detached_operand_is_not_defined() -> None:
    module = parse_ir("%n = pk.rank\n%b = pk.ring_peer %n", "detached.mlir")
    rank = next(op for op in module.walk() if op.name == "pk.rank")
    rank.detach()
    assert [finding.code for finding in findings(module)] == ["PK441"]


def test_a_name_of_another_kernel_is_not_defined() -> None:
    text = "pk.kernel @j() {\n  %p = pk.ring_peer %q\n}\npk.kernel @k() {\n  %q = pk.rank\n}"
    module = parse_ir(text, "undefined.mlir")
    assert [finding.code for finding in findings(module)] == ["PK441"]
