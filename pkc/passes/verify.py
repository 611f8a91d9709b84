"""The verifier with places: each operation by itself, and that operands are defined where they are used."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.machine import InstructionOp, RegistersOp, kind_type
from pkc.dialect.walks import walk
from pkc.location import span_of
from pkc.passes.errors import InvalidOperation, UsedBeforeDefined
from pkc.targets.target import target_of

_BY_TYPES = frozenset(
    (
        arith.AddiOp,
        arith.AndIOp,
        arith.CmpiOp,
        arith.ConstantOp,
        arith.DivSIOp,
        arith.IndexCastOp,
        arith.MaxSIOp,
        arith.MinSIOp,
        arith.MuliOp,
        arith.RemSIOp,
        arith.SelectOp,
        arith.ShLIOp,
        arith.ShRSIOp,
        arith.ShRUIOp,
        arith.SubiOp,
        arith.XOrIOp,
        InstructionOp,
        RegistersOp,
    )
)
"""Operations that are valid or not by their types and properties alone, most of those of the machine level: of those
that are alike one is verified."""


def verify(module: ModuleOp) -> None:
    """Raise a `PkcError` with one diagnostic for each operation that is not valid."""
    found = tuple(findings(module))
    if found:
        raise PkcError(*found)


def findings(module: ModuleOp) -> Iterator[Diagnostic]:
    """What is wrong with a module; verifiers are asked only when every operand is defined, as they rely on it."""
    order = {op: number for number, op in enumerate(walk(module))}
    undefined = [
        UsedBeforeDefined(span_of(op.location), op.name, number + 1)
        for op in order
        for number, operand in enumerate(op.operands)
        if not _is_defined(operand, op, order)
    ]
    if undefined:
        yield from undefined
        return
    valid: set[Hashable] = set()
    for op in order:
        alike = _alike(op)
        message = "" if alike in valid else _message(op)
        if alike is not None and not message:
            valid.add(alike)
        message = message or (_in_table(op) if isinstance(op, InstructionOp) else "")
        if message:
            yield InvalidOperation(span_of(op.location), op.name, message)


def _alike(op: Operation) -> Hashable:
    """Equal for operations that are valid alike; None for one of which more matters, as for the last of a block."""
    if type(op) not in _BY_TYPES or op.next_op is None or op.attributes:
        return None
    types = tuple(operand.type for operand in op.operands)
    return type(op), types, tuple(op.result_types), frozenset(op.properties.items())


def _message(op: Operation) -> str:
    if any(not block.ops for region in op.regions for block in region.blocks) and not op.has_trait(NoTerminator):
        return "a block is empty and lacks its terminator"
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException as error:
        # The outer exception carries the whole module, its cause what the operation said.
        return str(error.__cause__ or error).strip()
    return ""


def _in_table(op: InstructionOp) -> str:
    """An instruction is in the table of its target, with operands and results as there."""
    name = op.instruction_name.data
    entry = target_of(op).instruction(name)
    if entry is None:
        return f"no instruction `{name}` in the table"
    want = [kind_type(kind) for kind in entry.operands]
    if [a.type for a in op.arguments] != want:
        return f"`{name}` takes ({', '.join(map(str, want))})"
    results = [] if entry.result is None else [kind_type(entry.result)]
    if [r.type for r in op.results] != results:
        return f"`{name}` gives ({', '.join(map(str, results))})"
    return ""


def _is_defined(value: SSAValue, user: Operation, order: dict[Operation, int]) -> bool:
    """xDSL checks dominance between blocks, not inside one, and not that the value is in the module at all."""
    if isinstance(value, BlockArgument):
        return value.owner.find_ancestor_op_in_block(user) is not None
    if not isinstance(value, OpResult) or value.op not in order or value.op.parent is None:
        # Detached, or what xDSL's parser leaves in place of a name that is never defined.
        return False
    use = value.op.parent.find_ancestor_op_in_block(user)
    return use is not None and order[value.op] < order[use]
