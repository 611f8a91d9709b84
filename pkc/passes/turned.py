"""The transpose of what is computed element by element, from the transposes of what it is computed from."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.roles import ConsumeOp
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, EnlargeOp, FullOp, SplatOp, TransposeOp, tile_type
from pkc.dialect.types import TileType


def is_matrix(value: SSAValue) -> bool:
    """Whether a value is a tile of two axes."""
    return isinstance(value.type, TileType) and value.type.rank == 2


def is_loaded(tile: SSAValue) -> bool:
    """Whether a tile is loaded as it is, transposed and masked at most."""
    while isinstance(tile.owner, TransposeOp | ClipOp):
        tile = tile.owner.tile
    return isinstance(tile.owner, LoadOp | GatherOp | ConsumeOp)


def is_elementwise(op: Operation) -> bool:
    """Whether an element of what an operation gives follows from the elements there of what it gets."""
    return isinstance(op, CastOp | ClipOp | CompareOp) or (type(op) in OPERATIONS and not isinstance(op, RowReduction))


def turns(tile: SSAValue) -> bool:
    """Whether the transpose of a tile follows from that of loads."""
    op = tile.owner
    if isinstance(op, LoadOp | FullOp | SplatOp | TransposeOp):
        return True
    if isinstance(op, BroadcastOp):
        return tile_type(op.tile).rank < 2
    computes = isinstance(op, Operation) and (isinstance(op, EnlargeOp) or is_elementwise(op))
    return computes and isinstance(op, Operation) and all(turns(one) for one in op.operands if is_matrix(one))


def turned(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    """The operation that gives the transpose of what `op` gives, of operands that are transposed already."""
    properties = dict(op.properties)
    if isinstance(op, BroadcastOp):
        properties["axes"] = DenseArrayBase.from_list(i64, [1 - axis for axis in op.positions])
    if isinstance(op, ClipOp):
        properties["axis"] = IntegerAttr(1 - op.axis.value.data, op.axis.type)
    kind = tile_type(op.results[0])
    made = type(op).create(
        operands=operands,
        result_types=[TileType(kind.shape[::-1], kind.element_type)],
        properties=properties,
        attributes=dict(op.attributes),
    )
    made.location, made.results[0].name_hint = op.location, op.results[0].name_hint
    return made
