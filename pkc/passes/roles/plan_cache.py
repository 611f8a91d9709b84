"""The pass `pk-plan-cache`: what the L2 cache is told of tiles that a task loads again."""

from __future__ import annotations

from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import tile_type
from pkc.dialect.transfers import CACHE, KEEP, ONCE
from pkc.dialect.types import dtype_bytes
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.build import defined_in
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.target import target_of


class PlanCache(KernelPass):
    """Let the L2 cache keep tiles until a task loads them for the last time.

    Rows that are too long for a CTA are loaded by one loop after the other (`pk-split-rows`). Between two loads of a
    tile as much is loaded and stored as the rows of all CTAs have; where the cache has room for these, tiles that come
    again are given up last, those that do not, and results, first.

    Before:

        scf.for %i = ... { ... %x = pk.load %X[%m, %d : ...] : ... }
        scf.for %i = ... { ... %x = pk.load %X[%m, %d : ...] : ... pk.store %y, %Y[%m, %d : ...] : ... }

    After:

        scf.for %i = ... { ... %x = pk.load %X[%m, %d : ...] {cache = "keep"} : ... }
        scf.for %i = ... {
          %x = pk.load %X[%m, %d : ...] {cache = "once"} : ...
          pk.store %y, %Y[%m, %d : ...] {cache = "once"} : ...
        }
    """

    name = "pk-plan-cache"

    def run(self, kernel: KernelOp) -> None:
        for tasks in [op for op in kernel.walk() if isinstance(op, TasksOp) and is_spread(op)]:
            if not tasks.encloses_tasks:
                _plan(tasks)


def _plan(tasks: TasksOp) -> None:
    loads: dict[tuple[object, ...], list[LoadOp]] = {}
    for top in tasks.body.block.ops:
        for op in top.walk():
            if isinstance(op, LoadOp):
                loads.setdefault(_tiles(op, top), []).append(op)
    again = [same for same in loads.values() if len(same) > 1]
    if not again:
        return
    arch = target_of(tasks).arch
    kept = arch.sms * sum(_bytes(same[0]) for same in again)
    if kept > arch.cache:
        missed(
            PlanCache.name,
            again[0][0],
            f"the L2 cache does not keep it: the CTAs load {kept} bytes before it comes again",
        )
        return
    for *before, last in again:
        for op in before:
            op.attributes[CACHE] = StringAttr(KEEP)
        last.attributes[CACHE] = StringAttr(ONCE)
    for op in tasks.walk():
        if isinstance(op, StoreOp):
            op.attributes[CACHE] = StringAttr(ONCE)


def _tiles(op: LoadOp, top: Operation) -> tuple[object, ...]:
    """Which tiles a statement of a task loads: of what it counts through only the type matters."""
    parts: list[SSAValue | Attribute] = [i.type if defined_in(i, top) else i for i in op.indices]
    return (op.array, op.result.type, *parts)


def _bytes(op: LoadOp) -> int:
    """Bytes of the tiles that a loop loads; of one iteration if it is not known how many there are."""
    kind, loop = tile_type(op.result), op.parent_op()
    each = prod(kind.shape) * dtype_bytes(kind.element_type)
    last = constant_of(loop.ub) if isinstance(loop, scf.ForOp) else None
    return each * (last or 1)
