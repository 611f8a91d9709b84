"""Every operation of the dialect is printed and parsed, and refused where it is malformed."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.ir import Operation

from pkc.cli.opt import parse_ir
from pkc.dialect import Pk
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
    assert {op.name for op in Pk.operations} <= seen


@pytest.mark.parametrize("op", list(Pk.operations), ids=lambda op: op.name)
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
