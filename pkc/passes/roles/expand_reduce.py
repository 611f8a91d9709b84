"""The pass `pk-expand-reduce`: sums over all ranks' copies of a tile become loads, additions and stores."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.access import AllReduceOp, LoadOp, ReduceOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.coordinates import DimOp, RingPeerOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import CastOp
from pkc.dialect.types import RANKS, f32
from pkc.passes.build import append, before, constant
from pkc.passes.kernel_pass import KernelPass


class ExpandReduce(KernelPass):
    """Write out `reduce` and `all_reduce` of an author: loads from every rank in rank order, additions (or maxima, or
    minima) in f32, stores to every rank, beginning with this one.

    Before:

        %t = pk.reduce %X[%m, %n : ...] : ...

    After:

        %first = pk.load %X at %0[%m, %n : ...] : ...
        %begin = pk.cast %first : ...
        %t = scf.for %r = %1 to %ranks step %1 iter_args(%sum = %begin) -> (!pk.tile<128x256xf32>) {
          %x = pk.load %X at %r[%m, %n : ...] : ...
          %wide = pk.cast %x : ...
          %more = pk.add %sum, %wide : !pk.tile<128x256xf32>
          scf.yield %more : !pk.tile<128x256xf32>
        }
    """

    name = "pk-expand-reduce"

    def run(self, kernel: KernelOp) -> None:
        for op in list(kernel.walk()):
            if isinstance(op, ReduceOp):
                total = _total(op)
                total.name_hint = op.result.name_hint
                op.result.replace_all_uses_with(total)
            elif isinstance(op, AllReduceOp):
                _store_to_all(op, _total(op))
            else:
                continue
            op.detach()
            op.erase()


def _total(op: ReduceOp | AllReduceOp) -> SSAValue:
    """The f32 sum, maximum or minimum of all ranks' copies, computed before `op`. It begins with rank 0's: zeros keep
    their sign."""
    zero, one, ranks = constant(0), constant(1), DimOp(RANKS)
    first = _wide(op, zero.result)
    total = first[-1].results[0]
    body = Block(arg_types=[IndexType(), total.type])
    added = _wide(op, body.args[0])
    more = op.combine(body.args[1], added[-1].results[0])
    for inner in (*added, more, scf.YieldOp(more.result)):
        append(body, inner, op.location)
    loop = scf.ForOp(one.result, ranks.result, one.result, [total], body)
    before(op, [zero, one, ranks, *first, loop])
    return loop.results[0]


def _wide(op: ReduceOp | AllReduceOp, rank: SSAValue) -> list[Operation]:
    """Operations of which the last one gives a rank's copy in f32."""
    load = LoadOp(op.array, list(op.indices), rank)
    return [load] if array_type(op.array).element_type == f32 else [load, CastOp(load.result, f32)]


def _store_to_all(op: AllReduceOp, total: SSAValue) -> None:
    """Stores of a sum, rounded, to all ranks' copies before `op`."""
    zero, one, ranks, kind = constant(0), constant(1), DimOp(RANKS), array_type(op.array).element_type
    rounded = [] if kind == f32 else [CastOp(total, kind)]
    body = Block(arg_types=[IndexType()])
    peer = RingPeerOp(body.args[0])
    store = StoreOp(rounded[0].result if rounded else total, op.array, list(op.indices), peer.result)
    for inner in (peer, store, scf.YieldOp()):
        append(body, inner, op.location)
    before(op, [*rounded, zero, one, ranks, scf.ForOp(zero.result, ranks.result, one.result, [], body)])
