"""The verifier with places: each operation by itself, and that operands are defined where they are used."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.machine import InstructionOp, kind_type
from pkc.location import span_of
from pkc.passes.errors import InvalidOperation, UsedBeforeDefined
from pkc.targets.target import target_of


def verify(module: ModuleOp) -> None:
    """Raise a `PkcError` with one diagnostic for each operation that is not valid."""
    found = tuple(findings(module))
    if found:
        raise PkcError(*found)


def findings(module: ModuleOp) -> Iterator[Diagnostic]:
    """What is wrong with a module; verifiers are asked only when every operand is defined, as they rely on it."""
    order = {op: number for number, op in enumerate(module.walk())}
    undefined = [
        UsedBeforeDefined(span_of(op.location), op.name, number + 1)
        for op in order
        for number, operand in enumerate(op.operands)
        if not _is_defined(operand, op, order)
    ]
    if undefined:
        yield from undefined
        return
    for op in order:
        message = _message(op) or (_in_table(op) if isinstance(op, InstructionOp) else "")
        if message:
            yield InvalidOperation(span_of(op.location), op.name, message)


def _message(op: Operation) -> str:
    if not op.has_trait(NoTerminator) and any(not block.ops for region in op.regions for block in region.blocks):
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
