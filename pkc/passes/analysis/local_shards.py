"""Whether an access to a sharded array surely stays in the shard of this rank."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from pkc.dialect.arrays import array_type
from pkc.dialect.coordinates import BlockOp, BlockPositionOp, RankOp
from pkc.dialect.types import PGLType


def is_local(array: SSAValue, places: Sequence[SSAValue]) -> bool:
    """Whether what addresses each dimension of a sharded array surely stays on this rank."""
    kind = array_type(array)
    assert isinstance(kind, PGLType) and kind.shard_dim is not None
    return is_in_local_shard(places[kind.shard_dim])


def is_in_local_shard(position: SSAValue) -> bool:
    """Whether a block or position comes from the local shard of its dimension."""
    index = position.owner
    block = index.block.owner if isinstance(index, BlockPositionOp) else index
    return isinstance(block, BlockOp) and block.shard is not None and isinstance(block.shard.owner, RankOp)
