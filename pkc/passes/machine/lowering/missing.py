"""What `pk-lower-tiles` cannot lower yet."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from pkc.remarks import missed


class CannotLowerError(Exception):
    """The lowering has no instructions for an operation; `what` names it in the user's words."""

    def __init__(self, op: Operation, what: str | None = None, hint: str | None = None) -> None:
        super().__init__()
        self.op = op
        self.what = what or f"`{op.name}`"
        self.hint = hint


def slow(op: Operation, reason: str) -> None:
    """Remark that an operation is lowered to more or smaller instructions than it could be."""
    missed("pk-lower-tiles", op, reason)


def origin(value: SSAValue) -> Operation:
    """The operation to blame for a value: the one that makes it, or, of a block argument, the one around the block."""
    owner = value.owner
    if isinstance(owner, Block):
        around = owner.parent_op()
        assert around is not None
        return around
    return owner
