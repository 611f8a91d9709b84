"""What the mutants of `mutants.py` do to the stages of channels: given back too early, or too few of them."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation

from pkc.dialect import roles
from pkc.dialect.tile import MmaOp, in_flight
from tools.mutant_changes import drop


def early(op: Operation) -> None:
    """Release the stage as soon as it is consumed."""
    assert isinstance(op, roles.ReleaseOp)
    consume = next(use.operation for use in op.channel.uses if isinstance(use.operation, roles.ConsumeOp))
    op.detach()
    block = consume.parent
    assert block is not None
    block.insert_op_after(op, consume)


def one_stage_less(op: Operation) -> None:
    """Give each stage back a turn earlier."""
    assert isinstance(op, roles.ReleaseOp)
    op.deferred = IntegerAttr(op.kept - 1, i64) if op.kept > 1 else None


def keeps_stages(op: Operation) -> bool:
    assert isinstance(op, roles.ReleaseOp)
    return op.kept > 0


def released_at_once(op: Operation) -> None:
    """Release what a product in flight reads as if it were complete."""
    block = op.parent
    assert block is not None
    for release in [other for other in block.ops if isinstance(other, roles.ReleaseOp)]:
        release.deferred = None
        for user in [use.operation for use in release.channel.uses]:
            if isinstance(user, roles.ReleaseDeferredOp):
                drop(user)


def is_in_flight(op: Operation) -> bool:
    assert isinstance(op, MmaOp)
    return in_flight(op) > 0


def one_stage(op: Operation) -> None:
    """Leave a channel one stage, which its consumer keeps."""
    op.properties["stages"] = IntegerAttr(1, i64)


def is_kept(op: Operation) -> bool:
    """Whether stages of a channel are kept for a product."""
    assert isinstance(op, roles.ChannelOp)
    users = (use.operation for use in op.result.uses)
    turns = (user.parent for user in users if isinstance(user, roles.ReleaseOp) and user.kept)
    return any(isinstance(inner, MmaOp) for turn in turns if turn is not None for inner in turn.ops)
