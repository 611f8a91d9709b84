"""Operations that give numbers and blocks: ranks, CTAs, launches, dimensions, block lists."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.attributes import RoleAttr
from pkc.dialect.types import BlockType, i1


class _Number(IRDLOperation):
    """Gives a number, and has no effects."""

    result = result_def(IndexType())
    traits = traits_def(Pure())


@irdl_op_definition
class RankOp(_Number):
    """The number of this rank."""

    name = "pk.rank"
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class PartOp(_Number):
    """The number of this CTA in its cluster, which is that of its part of long rows."""

    name = "pk.part"
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class CtasOp(_Number):
    """How many CTAs of this rank run a role; 1 as long as its tasks are not distributed over CTAs."""

    name = "pk.ctas"
    role = prop_def(RoleAttr)
    assembly_format = "$role attr-dict"

    def __init__(self, role: RoleAttr) -> None:
        super().__init__(properties={"role": role}, result_types=[IndexType()])


@irdl_op_definition
class EpochOp(_Number):
    """The number of this launch of the kernel, from 1. Counters are never reset: a wait counts in epochs."""

    name = "pk.epoch"
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class DimOp(_Number):
    """The value of a run-time dimension; `pk.dim "ranks"` is the number of ranks."""

    name = "pk.dim"
    dim = prop_def(StringAttr)
    assembly_format = "$dim attr-dict"

    def __init__(self, dim: str) -> None:
        super().__init__(properties={"dim": StringAttr(dim)}, result_types=[IndexType()])


@irdl_op_definition
class RingPeerOp(_Number):
    """The rank that is `step` after this one: (rank + step) mod ranks."""

    name = "pk.ring_peer"
    step = operand_def(IndexType())
    assembly_format = "$step attr-dict"

    def __init__(self, step: SSAValue | Operation) -> None:
        super().__init__(operands=[step], result_types=[IndexType()])


class _BlockList(IRDLOperation):
    """A list of blocks: of a whole dimension, of the shard of rank `shard`, or of positions `start` to `stop`.

    `sharded` says that no block straddles the boundary of two shards.
    """

    shard = opt_operand_def(IndexType())
    start = opt_operand_def(IndexType())
    stop = opt_operand_def(IndexType())
    sharded = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def verify_(self) -> None:
        if self.shard is not None and (self.start is not None or self.stop is not None):
            raise VerifyException("a rank's shard and explicit bounds exclude each other")
        if self.sharded is not None and (self.start is not None or self.stop is not None):
            raise VerifyException("a sharded dimension takes no explicit bounds")

    @property
    def in_shard(self) -> bool:
        """Whether each block lies in one shard of its dimension, and ends there at the latest."""
        return self.shard is not None or self.sharded is not None


@irdl_op_definition
class BlockCountOp(_BlockList):
    """How many blocks a list has."""

    name = "pk.block_count"
    block = prop_def(BlockType)
    result = result_def(IndexType())
    assembly_format = "$block (`of` $shard^)? (`from` $start^)? (`to` $stop^)? (`sharded` $sharded^)? attr-dict"

    def __init__(
        self,
        block: BlockType,
        *,
        shard: SSAValue | None = None,
        start: SSAValue | None = None,
        stop: SSAValue | None = None,
        sharded: bool = False,
    ) -> None:
        super().__init__(
            operands=[shard, start, stop],
            properties={"block": block, "sharded": UnitAttr() if sharded else None},
            result_types=[IndexType()],
        )


@irdl_op_definition
class BlockOp(_BlockList):
    """Block number `index` of a list.

    With `outside` its list may start in front of the dimension: what would lie there is zero where it is loaded.
    """

    name = "pk.block"
    index = operand_def(IndexType())
    outside = opt_prop_def(UnitAttr)
    result = result_def(BlockType)
    assembly_format = (
        "`[` $index `]` (`of` $shard^)? (`from` $start^)? (`to` $stop^)? (`sharded` $sharded^)? (`outside` $outside^)?"
        " attr-dict `:` type($result)"
    )

    def __init__(
        self,
        index: SSAValue | Operation,
        block: BlockType,
        *,
        shard: SSAValue | None = None,
        start: SSAValue | None = None,
        stop: SSAValue | None = None,
        sharded: bool = False,
        outside: bool = False,
    ) -> None:
        properties = {"sharded": UnitAttr() if sharded else None, "outside": UnitAttr() if outside else None}
        super().__init__(operands=[index, shard, start, stop], properties=properties, result_types=[block])

    def verify_(self) -> None:
        super().verify_()
        if self.outside is not None and self.start is None:
            raise VerifyException("a list without a start begins with its dimension")

    @property
    def of_all_shards(self) -> bool:
        """Whether its list goes through all shards of a dimension, one after the other."""
        return self.sharded is not None and self.shard is None


OVER = "over"
"""On a `scf.for` of a program: the name of the constant through whose blocks it goes."""

SHIFTED = "shifted"
"""On a `pk.block`: the type of the block that a program has, whose positions are shifted or divided."""


def written_type(index: SSAValue) -> BlockType | None:
    """The type of a block as its program has it, whose size the schedule may set; None if an index is no block."""
    shifted = index.owner.attributes.get(SHIFTED) if isinstance(index.owner, BlockOp) else None
    kind = index.type if shifted is None else shifted
    return kind if isinstance(kind, BlockType) else None


@irdl_op_definition
class RotateOp(_Number):
    """(index + shift) mod count: the numbers below `count` in their order, beginning at `shift`; 0 if `count` is 0."""

    name = "pk.rotate"
    index = operand_def(IndexType())
    shift = operand_def(IndexType())
    count = operand_def(IndexType())
    assembly_format = "$index `by` $shift `of` $count attr-dict"

    def __init__(self, index: SSAValue, shift: SSAValue, count: SSAValue) -> None:
        super().__init__(operands=[index, shift, count], result_types=[IndexType()])


@irdl_op_definition
class InterleaveOp(_Number):
    """The numbers of a sharded list of blocks in another order: the first block of every shard, then the second, ...

    In each round the shards that have such a block follow each other, beginning with shard `first` and wrapping around.
    """

    name = "pk.interleave"
    index = operand_def(IndexType())
    first = operand_def(IndexType())
    block = prop_def(BlockType)
    assembly_format = "$index $block `from` $first attr-dict"

    def __init__(self, index: SSAValue, block: BlockType, first: SSAValue) -> None:
        super().__init__(operands=[index, first], properties={"block": block}, result_types=[IndexType()])


@irdl_op_definition
class BlockPositionOp(_Number):
    """The first position of a block, along its dimension."""

    name = "pk.block_position"
    block = operand_def(BlockType)
    assembly_format = "$block attr-dict `:` type($block)"

    def __init__(self, block: SSAValue | Operation) -> None:
        super().__init__(operands=[block], result_types=[IndexType()])


@irdl_op_definition
class ZigzagPositionOp(_Number):
    """The first position of a block of a dimension in zigzag order, or with `last` that of its last element if the
    block is whole. Blocks are ranges of what lies side by side, shard after shard (`pkc/dialect/blocks.py`: zigzag).

    The block does not straddle shards. So its positions ascend; they have a gap if it straddles the shard's halves.
    """

    name = "pk.zigzag_position"
    block = operand_def(BlockType)
    last = opt_prop_def(UnitAttr)
    assembly_format = "(`last` $last^)? $block attr-dict `:` type($block)"

    def __init__(self, block: SSAValue | Operation, *, last: bool = False) -> None:
        properties = {"last": UnitAttr() if last else None}
        super().__init__(operands=[block], properties=properties, result_types=[IndexType()])


@irdl_op_definition
class ZigzagGapOp(_Number):
    """How many elements from the beginning of a block on lie in the first half of its shard, of a dimension in zigzag
    order; negative if the block begins behind that."""

    name = "pk.zigzag_gap"
    block = operand_def(BlockType)
    assembly_format = "$block attr-dict `:` type($block)"

    def __init__(self, block: SSAValue | Operation) -> None:
        super().__init__(operands=[block], result_types=[IndexType()])


@irdl_op_definition
class ZigzagCountOp(_Number):
    """How many blocks of a rank's shard, of a dimension in zigzag order, begin before a position, or with `last` have
    their last element before it, if they are whole. These are the first ones. If all are, it may be more."""

    name = "pk.zigzag_count"
    limit = operand_def(IndexType())
    shard = operand_def(IndexType())
    block = prop_def(BlockType)
    last = opt_prop_def(UnitAttr)
    assembly_format = "(`last` $last^)? $block `of` $shard `before` $limit attr-dict"

    def __init__(self, block: BlockType, shard: SSAValue, limit: SSAValue, *, last: bool = False) -> None:
        properties = {"block": block, "last": UnitAttr() if last else None}
        super().__init__(operands=[limit, shard], properties=properties, result_types=[IndexType()])


@irdl_op_definition
class ShardedCountOp(_Number):
    """How many blocks of a list that follows the shards of a dimension begin before a position. If all do, it may be
    more."""

    name = "pk.sharded_count"
    limit = operand_def(IndexType())
    block = prop_def(BlockType)
    assembly_format = "$block `before` $limit attr-dict"

    def __init__(self, block: BlockType, limit: SSAValue) -> None:
        super().__init__(operands=[limit], properties={"block": block}, result_types=[IndexType()])


@irdl_op_definition
class IsWholeOp(IRDLOperation):
    """Whether a block has as many positions as its type says: no edge cuts it off."""

    name = "pk.is_whole"
    block = operand_def(BlockType)
    result = result_def(i1)
    traits = traits_def(Pure())
    assembly_format = "$block attr-dict `:` type($block)"

    def __init__(self, block: SSAValue | Operation) -> None:
        super().__init__(operands=[block], result_types=[i1])


@irdl_op_definition
class VisitedOp(_Number):
    """How many iterations of a loop of `count` are run in this task: the first `needed`, if it has so many.

    The others change nothing here. What is fetched for all tasks alike is fetched for all iterations, or for those that
    some task of the rank runs (`pk.fetch ... visited`).
    """

    name = "pk.visited"
    needed = operand_def(IndexType())
    count = operand_def(IndexType())
    assembly_format = "$needed `of` $count attr-dict"

    def __init__(self, needed: SSAValue, count: SSAValue) -> None:
        super().__init__(operands=[needed, count], result_types=[IndexType()])


@irdl_op_definition
class FirstVisitedOp(_Number):
    """The first iteration of a loop from `first` on that is run in this task: `needed`, if that is no earlier.

    Those before it change nothing here. What is fetched for all tasks alike is fetched from `first` on.
    """

    name = "pk.first_visited"
    needed = operand_def(IndexType())
    first = operand_def(IndexType())
    assembly_format = "$needed `from` $first attr-dict"

    def __init__(self, needed: SSAValue, first: SSAValue) -> None:
        super().__init__(operands=[needed, first], result_types=[IndexType()])


@irdl_op_definition
class BlockNumberOp(_Number):
    """A number that is unique among the blocks of one size of a dimension, whatever list they are from; it ascends.

    It is start // size + owner: blocks of different shards may begin less than one size from each other.
    """

    name = "pk.block_number"
    block = operand_def(BlockType)
    assembly_format = "$block attr-dict `:` type($block)"

    def __init__(self, block: SSAValue | Operation) -> None:
        super().__init__(operands=[block], result_types=[IndexType()])


@irdl_op_definition
class OwnerOp(_Number):
    """The rank whose shard has the first position of a block, or with `last` its last one."""

    name = "pk.owner"
    block = operand_def(BlockType)
    last = opt_prop_def(UnitAttr)
    assembly_format = "(`last` $last^)? $block attr-dict `:` type($block)"

    def __init__(self, block: SSAValue | Operation, *, last: bool = False) -> None:
        properties = {"last": UnitAttr() if last else None}
        super().__init__(operands=[block], properties=properties, result_types=[IndexType()])


@irdl_op_definition
class BlockIndexOp(_Number):
    """The index, in the list of all blocks `of` a dimension, of the one that has the first position of `block`.

    With `last`, its last position: the blocks from the one to the other overlap `block`. With `sharded` the list
    follows the shards.
    """

    name = "pk.block_index"
    block = operand_def(BlockType)
    of = prop_def(BlockType)
    sharded = opt_prop_def(UnitAttr)
    last = opt_prop_def(UnitAttr)
    assembly_format = "(`last` $last^)? $block `in` $of (`sharded` $sharded^)? attr-dict `:` type($block)"

    def __init__(self, block: SSAValue, of: BlockType, *, sharded: bool = False, last: bool = False) -> None:
        super().__init__(
            operands=[block],
            properties={
                "of": of,
                "sharded": UnitAttr() if sharded else None,
                "last": UnitAttr() if last else None,
            },
            result_types=[IndexType()],
        )

    def verify_(self) -> None:
        assert isinstance(self.block.type, BlockType)
        if self.block.type.of != self.of.of:
            raise VerifyException(f"{self.block.type} is not a block of dimension {self.of.of}")


def is_cut_short(op: Operation) -> bool:
    """Whether a task may run fewer iterations than there are of some loop around an operation."""
    around = op.parent_op()
    while around is not None:
        bounds = (around.lb.owner, around.ub.owner) if isinstance(around, scf.ForOp) else ()
        if any(isinstance(bound, FirstVisitedOp | VisitedOp) for bound in bounds):
            return True
        around = around.parent_op()
    return False
