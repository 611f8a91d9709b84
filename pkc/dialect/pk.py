"""The pk dialect: types, attributes and operations of every level of the compiler."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.scf import Scf
from xdsl.ir import Dialect

from pkc.dialect import (
    access,
    by_table,
    coordinates,
    copies,
    counters,
    deferred,
    fences,
    fetch,
    interleaved,
    inverse,
    machine,
    prints,
    program,
    roles,
    tile,
    windows,
)
from pkc.dialect.attributes import PredicateAttr, RoleAttr
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.reductions import OPERATIONS, FoldOp
from pkc.dialect.scans import CumSumOp
from pkc.dialect.types import BlockType, PGLType, PrivateType, SignalType, TileType

PROGRAM = (
    program.KernelOp,
    program.TasksOp,
    program.RoleOp,
    coordinates.RankOp,
    coordinates.PartOp,
    coordinates.CtasOp,
    coordinates.EpochOp,
    coordinates.DimOp,
    coordinates.RingPeerOp,
    coordinates.BlockCountOp,
    coordinates.BlockOp,
    coordinates.RotateOp,
    coordinates.InterleaveOp,
    coordinates.BlockPositionOp,
    coordinates.ZigzagPositionOp,
    coordinates.ZigzagGapOp,
    coordinates.ZigzagCountOp,
    coordinates.ShardedCountOp,
    coordinates.IsWholeOp,
    coordinates.VisitedOp,
    coordinates.FirstVisitedOp,
    coordinates.BlockNumberOp,
    coordinates.OwnerOp,
    coordinates.BlockIndexOp,
)
TILE = (
    tile.FullOp,
    tile.SplatOp,
    tile.PositionsOp,
    tile.BroadcastOp,
    tile.RepeatOp,
    tile.EnlargeOp,
    interleaved.PickOp,
    interleaved.ZipOp,
    windows.WindowOp,
    tile.TransposeOp,
    tile.CastOp,
    tile.ClipOp,
    tile.MmaOp,
    tile.MmaIssueOp,
    tile.MmaWaitOp,
    FoldOp,
    CumSumOp,
    CompareOp,
    *OPERATIONS,
)
"""Operations on tiles; those with a word in the language are as `declaration.py` declares them."""
ACCESS = (
    access.ReadOp,
    access.LoadOp,
    by_table.GatherOp,
    access.ReduceOp,
    access.StoreOp,
    access.StoreAddOp,
    access.AccumulateOp,
    by_table.ScatterAccumulateOp,
    access.AtomicAddOp,
    by_table.ScatterStoreOp,
    by_table.ScatterStoreAddOp,
    by_table.ScatterAddOp,
    access.AllReduceOp,
    *counters.COUNTER_OPS,
    copies.CopyOp,
    inverse.InvertOp,
    inverse.SumRowsOp,
    fetch.FetchOp,
    prints.PrintOp,
)

ROLES = (roles.ChannelOp, *roles.CHANNEL_OPS)
FENCES = (fences.FenceOp, fences.DrainOp, deferred.SendDeferredOp)
MACHINE = (
    machine.InstructionOp,
    machine.RegistersOp,
    machine.GetOp,
    machine.SetOp,
    machine.SubviewOp,
    machine.TensorMapOp,
    machine.AddressOp,
    machine.LaunchValueOp,
    machine.CommentOp,
)

Pk = Dialect(
    "pk",
    [*PROGRAM, *TILE, *ACCESS, *ROLES, *FENCES, *MACHINE],
    [
        TileType,
        BlockType,
        PrivateType,
        PGLType,
        SignalType,
        roles.ChannelType,
        RoleAttr,
        PredicateAttr,
        fences.FenceAttr,
        fences.DrainAttr,
        machine.RegistersType,
        machine.MapType,
    ],
)


def context() -> Context:
    """A context with the dialects that pkc's IR is made of."""
    ctx = Context()
    for dialect in (Builtin, Arith, Scf, Pk):
        ctx.load_dialect(dialect)
    return ctx
