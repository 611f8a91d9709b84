"""Names that the source gives to values of the IR."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.coordinates import BlockOp, InterleaveOp, RotateOp
from pkc.dialect.tile import block_type


def task_variable(index: SSAValue) -> tuple[str, bool]:
    """The loop variable that stands for an index of `pk.tasks`, and whether it is the block of that number.

    The name is empty if the IR has none.
    """
    for use in index.uses:
        op = use.operation
        if isinstance(op, RotateOp | InterleaveOp) and op.index is index:
            return task_variable(op.result)
        if isinstance(op, BlockOp) and op.index is index and op.result.name_hint:
            return op.result.name_hint, not _is_position(op)
    return index.name_hint or "", False


def _is_position(op: BlockOp) -> bool:
    """Whether the number of a block is the one position that it covers."""
    return block_type(op.result).extent == 1 and op.shard is None and op.start is None
