"""How the mutants of `mutants.py` break the stages of channels: released too early, or too few."""

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
    """Release each stage an iteration earlier."""
    assert isinstance(op, roles.ReleaseOp)
    op.deferred = IntegerAttr(op.kept - 1, i64) if op.kept > 1 else None


def keeps_stages(op: Operation) -> bool:
    assert isinstance(op, roles.ReleaseOp)
    return op.kept > 0


def released_at_once(op: Operation) -> None:
    """Release the stages that an MMA in flight reads as if it were complete."""
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
    """Leave a channel one stage, whose release is deferred."""
    op.properties["stages"] = IntegerAttr(1, i64)


def is_kept(op: Operation) -> bool:
    """Whether the release of a channel's stages is deferred for an MMA."""
    assert isinstance(op, roles.ChannelOp)
    users = (use.operation for use in op.result.uses)
    bodies = (user.parent for user in users if isinstance(user, roles.ReleaseOp) and user.kept)
    return any(isinstance(inner, MmaOp) for body in bodies if body is not None for inner in body.ops)
