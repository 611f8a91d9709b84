"""Operations of the roles level: channels between the roles of one CTA.

A channel is a ring of stages in shared memory between one producing and one consuming role of the same CTA (CUTLASS:
pipeline; ParallelKittens: input and output blocks of the LCSC template). The producer acquires a free stage, fills and
commits it; the consumer consumes a committed stage, in order, and releases it.

    %0 = pk.channel "A" stages 4 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
    pk.acquire %0 : ...                 pk.commit %0, %a, %b : ...
    %a, %b = pk.consume %0 : ...        pk.release %0 : ...
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import HasParent
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.effects import OrdersMemory
from pkc.dialect.program import KernelOp
from pkc.dialect.types import TileType


@irdl_attr_definition
class ChannelType(ParametrizedAttribute, TypeAttribute):
    """The tiles of one stage of a channel."""

    name = "pk.channel"
    tiles: ArrayAttr[TileType]

    def __init__(self, tiles: Sequence[TileType]) -> None:
        super().__init__(ArrayAttr(tiles))

    def verify(self) -> None:
        if not self.tiles.data:
            raise VerifyException("a stage holds at least one tile")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[ArrayAttr[TileType]]:
        tiles = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type)
        for tile in tiles:
            if not isinstance(tile, TileType):
                parser.raise_error("a stage holds tiles")
        return (ArrayAttr([tile for tile in tiles if isinstance(tile, TileType)]),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.tiles, printer.print_attribute)


_Kind = VarConstraint("Kind", BaseAttr(ChannelType))


@irdl_op_definition
class ChannelOp(IRDLOperation):
    """A channel, in each CTA that runs the roles which use it. Without effect traits, so that CSE merges none.

    With `in %0` its stages are those of channel %0, of the same kind and depth: the consumer of %0 has read its tiles
    when it commits its own into the same stage, and who consumes these releases the stage of both.
    """

    name = "pk.channel"
    label = prop_def(StringAttr)
    stages = prop_def(IntegerAttr.constr(i64))
    host = opt_operand_def(_Kind)
    result = result_def(_Kind)
    traits = traits_def(HasParent(KernelOp))
    assembly_format = "$label `stages` $stages (`in` $host^)? attr-dict `:` type($result)"

    def __init__(self, label: str, stages: int, kind: ChannelType) -> None:
        properties = {"label": StringAttr(label), "stages": IntegerAttr(stages, i64)}
        super().__init__(operands=[None], properties=properties, result_types=[kind])

    @property
    def depth(self) -> int:
        return self.stages.value.data

    @property
    def kind(self) -> ChannelType:
        assert isinstance(self.result.type, ChannelType)
        return self.result.type

    @property
    def guest(self) -> ChannelOp | None:
        """The channel whose stages are those of this one."""
        users = (use.operation for use in self.result.uses)
        return next((user for user in users if isinstance(user, ChannelOp)), None)

    def verify_(self) -> None:
        if self.depth < 1:
            raise VerifyException(f"a channel has at least one stage, not {self.depth}")
        if self.host is not None and channel_of(self.host).depth != self.depth:
            raise VerifyException("channels of the same stages have as many")


def channel_of(value: SSAValue) -> ChannelOp:
    """The channel that an operand names."""
    assert isinstance(value.owner, ChannelOp)
    return value.owner


class _OnChannel(IRDLOperation):
    """An operation of one side of a channel; it stays where it is among other accesses."""

    channel = operand_def(ChannelType)
    traits = traits_def(OrdersMemory())

    def _tiles(self) -> tuple[TileType, ...]:
        assert isinstance(self.channel.type, ChannelType)
        return tuple(self.channel.type.tiles)


@irdl_op_definition
class AcquireOp(_OnChannel):
    """Producer: wait until the next stage is free."""

    name = "pk.acquire"
    assembly_format = "$channel attr-dict `:` type($channel)"

    def __init__(self, channel: SSAValue) -> None:
        super().__init__(operands=[channel])


@irdl_op_definition
class CommitOp(_OnChannel):
    """Producer: the acquired stage has these tiles, and the consumer may read it."""

    name = "pk.commit"
    tiles = var_operand_def(TileType)
    assembly_format = "$channel `,` $tiles attr-dict `:` type($channel) `,` type($tiles)"

    def __init__(self, channel: SSAValue, tiles: Sequence[SSAValue]) -> None:
        super().__init__(operands=[tiles, channel])

    def verify_(self) -> None:
        if tuple(tile.type for tile in self.tiles) != self._tiles():
            raise VerifyException("the tiles are not those of a stage of the channel")


AHEAD = "ahead"
"""On `pk.consume` in a loop: its role looks whether the stage is filled when it has released the one before."""


@irdl_op_definition
class ConsumeOp(_OnChannel):
    """Consumer: wait until the next stage is committed; its tiles, which live in the stage until it is released."""

    name = "pk.consume"
    tiles = var_result_def(TileType)
    assembly_format = "$channel attr-dict `:` type($channel) `->` type($tiles)"

    def __init__(self, channel: SSAValue) -> None:
        assert isinstance(channel.type, ChannelType)
        super().__init__(operands=[channel], result_types=[list(channel.type.tiles)])

    def verify_(self) -> None:
        if tuple(tile.type for tile in self.tiles) != self._tiles():
            raise VerifyException("the results are not the tiles of a stage of the channel")


@irdl_op_definition
class ReleaseOp(_OnChannel):
    """Consumer: the oldest consumed stage is free again.

    With `deferred n` the last n stages are released later, because stores or MMAs in flight still read them: each
    release frees the stage of n releases before, the first n free none. `pk.release_deferred` frees the rest.
    """

    name = "pk.release"
    deferred = opt_prop_def(IntegerAttr.constr(i64))
    assembly_format = "$channel (`deferred` $deferred^)? attr-dict `:` type($channel)"

    def __init__(self, channel: SSAValue, deferred: int = 0) -> None:
        super().__init__(operands=[channel], properties={"deferred": IntegerAttr(deferred, i64) if deferred else None})

    @property
    def kept(self) -> int:
        """How many releases are deferred."""
        return self.deferred.value.data if self.deferred is not None else 0

    def verify_(self) -> None:
        if self.deferred is None:
            return
        depth = channel_of(self.channel).depth
        if not 0 < self.kept < depth:
            raise VerifyException(f"of {depth} stages 1 to {depth - 1} can be kept, not {self.kept}")


@irdl_op_definition
class ReleaseDeferredOp(_OnChannel):
    """Consumer: the stages whose release was deferred are free again."""

    name = "pk.release_deferred"
    assembly_format = "$channel attr-dict `:` type($channel)"

    def __init__(self, channel: SSAValue) -> None:
        super().__init__(operands=[channel])


LATER = "later"
"""On a commit, and on the unrolled loop that it is lowered to: so many of the elements that each thread has may be
computed beside the MMAs of the next task (`pk-overlap-epilogues`)."""

CHANNEL_OPS = (AcquireOp, CommitOp, ConsumeOp, ReleaseOp, ReleaseDeferredOp)
