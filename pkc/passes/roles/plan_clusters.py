"""The pass `pk-plan-clusters`: rows too long for a CTA lie in several, which form a cluster."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation
from xdsl.traits import MemoryEffectKind, get_effects

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import CLUSTER, SPREAD, KernelOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import tile_type
from pkc.dialect.types import ArrayType, BlockType, PrivateType, TileType, dtype_bytes
from pkc.passes.analysis.pointwise import BY_ELEMENT
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.layout import CHUNK
from pkc.targets.target import target_of

_DIVIDED = (*BY_ELEMENT, LoadOp, StoreOp, scf.YieldOp)
"""Operations on long rows of which each CTA carries out its part; reductions are of `OPERATIONS` too."""


class PlanClusters(KernelPass):
    """Write which rows lie in the shared memory and registers of a cluster: `cluster` of the schedule says of how many
    CTAs.

    What the roles level calls a CTA is a cluster then: it takes tasks as a whole, its channels have an equal part of
    each row in each CTA, and reductions of rows go over all of them. A row of which several passes are needed is so
    read once, though no CTA has room for it. Only rows of a whole dimension that are reduced, and the longest of these,
    in kernels of one rank; every operation on them works element by element.

    Before, with `cluster = 4` in the schedule:

        pk.kernel @softmax(...) { ... %s = pk.row_sum %e : !pk.tile<65536xf32> -> !pk.tile<f32> ... }

    After:

        pk.kernel @softmax(...) attributes {cluster = 4 : i64, spread = 65536 : i64} { ... }
    """

    name = "pk-plan-clusters"

    def run(self, kernel: KernelOp) -> None:
        count = kernel.scheduled_number(CLUSTER)
        if count is None or count == 1:
            return
        reduced = [tile_type(op.tile).shape[-1] for op in kernel.walk() if isinstance(op, RowReduction)]
        length = max(reduced, default=0)
        reason = _obstacle(kernel, count, length) if length else "no rows are reduced"
        if reason:
            missed(PlanClusters.name, kernel, f"CTAs form no clusters of {count}: {reason}")
            return
        kernel.attributes[CLUSTER] = IntegerAttr(count, i64)
        kernel.attributes[SPREAD] = IntegerAttr(length, i64)


def _obstacle(kernel: KernelOp, count: int, length: int) -> str:
    """Why rows of a length stay in one CTA; empty if they need not."""
    target = target_of(kernel)
    most = target.arch.cluster
    if count > most or count & (count - 1):
        return f"{target.name} has clusters of a power of two of CTAs, at most {most}"
    arrays = [kind for kind in kernel.function_type.inputs if isinstance(kind, ArrayType)]
    if kernel.roles or not all(isinstance(kind, PrivateType) for kind in arrays):
        return "other ranks or an author's roles count on single CTAs"
    if length < count * target.tuning.cluster_part:
        return f"rows of {length} elements are too short"
    for op in kernel.walk():
        writes = any(effect.kind is not MemoryEffectKind.READ for effect in get_effects(op) or ())
        if writes and not op.regions and not isinstance(op, StoreOp):
            return f"each CTA would carry out `{op.name}`"
        if reason := _of_rows(op, count, length):
            return reason
    return ""


def _of_rows(op: Operation, count: int, length: int) -> str:
    """Why what an operation does to rows of a length is not divided among CTAs."""
    kinds = [value.type for value in (*op.operands, *op.results)]
    blocks = [kind for kind in kinds if isinstance(kind, BlockType) and kind.extent == length]
    whole = not isinstance(op, BlockOp) or (op.shard, op.start, op.stop) == (None, None, None)
    if not all(kind.of == length for kind in blocks) or (blocks and not whole):
        return f"blocks of {length} elements are not a whole dimension"
    long = [kind for kind in kinds if isinstance(kind, TileType) and length in kind.shape]
    if not long:
        return ""
    if any(list(kind.shape).index(length) != kind.rank - 1 for kind in long):
        return "another axis of a tile is as long"
    if op.regions:
        return ""
    if not isinstance(op, _DIVIDED) or (isinstance(op, RowReduction) and tile_type(op.tile).rank > 2):
        return f"`{op.name}` needs rows whole"
    size = dtype_bytes(array_type(op.array).element_type) if isinstance(op, LoadOp | StoreOp) else CHUNK
    return f"a part of a row is no multiple of {CHUNK} bytes" if length * size % (count * CHUNK) else ""
