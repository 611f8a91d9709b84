"""The pass `pk-split-cells`: a product begins when the first tiles of a fetched row have come, not when all have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.counters import SignalOp, WaitOp
from pkc.dialect.program import RASTER, KernelOp, RoleOp, TasksOp
from pkc.dialect.tile import block_type, tile_type
from pkc.dialect.types import BlockType, SignalType, dtype_bytes
from pkc.passes.cells import constant, is_constant
from pkc.passes.derive import DERIVED, before
from pkc.passes.splits import Part, part_of

_TILES = 8
"""The fewest tiles that are awaited at once: looking at a counter takes as long as multiplying two of 128 x 64."""

_BYTES = _TILES * 128 * 64 * 2
"""What is awaited at once, of smaller tiles: they come as fast as larger ones, and looking takes as long."""

_BAND = 16
"""Rows of which the first tiles are fetched before the second ones: about as many as are computed at the same time."""


@dataclass(frozen=True)
class SplitCells(ModulePass):
    """Await a fetched row 128 KB at a time, at least eight tiles, in the loop that uses them; fetch rows side by side.

    With a row in one piece the tiles of its product stand still until all of it has come; so much is computed at the
    same time that they would wait for most of the array. Here every product goes on at the pace of the link.

    Before:

        pk.tasks (%i, %s) in (%rows, %n) { ... pk.signal %A_ready at %rank[%row] by %one ... }
        ...
        pk.wait %A_ready[%row] for %needed : !pk.signal<[M by 128]>
        scf.for %k = %zero to %n step %one { ... pk.load %A_landing ... }

    After:

        pk.tasks (%i, %s) in (%rows, %n) attributes {raster = 16} {
          %group = arith.divsi %s, %eight : index
          ... pk.signal %A_ready at %rank[%row, %group] by %one ...
        }
        ...
        scf.for %k = %zero to %n step %one {
          %group = arith.divsi %k, %eight : index
          scf.if %first_of_group {
            pk.wait %A_ready[%row, %group] for %needed : !pk.signal<[M by 128, K by 512]>
          }
          ... pk.load %A_landing ...
    """

    name = "pk-split-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp) and DERIVED in kernel.attributes:
                for part in [part for part in kernel.body.block.ops if isinstance(part, RoleOp)]:
                    if part.role.data is Role.Communicator:
                        _split(kernel, part)


@dataclass(frozen=True)
class _Pair:
    """A signal for each tile of a row, and the one place where the row is awaited before a loop over its tiles."""

    tasks: TasksOp
    signal: SignalOp
    stored: StoreOp
    tiles: BlockType
    wait: WaitOp
    own: SSAValue | None
    """Whether it is the rank's own, of which nothing is awaited."""
    pieces: SSAValue | None
    """How many signals there are for each tile of a row, if not one."""
    loop: scf.ForOp

    @property
    def together(self) -> int:
        """How many tiles are awaited at once."""
        kind = tile_type(self.stored.tile)
        return max(_TILES, _BYTES // (prod(kind.shape) * dtype_bytes(kind.element_type)))

    @property
    def part(self) -> Part | None:
        """The part of a row's tiles that the loop goes through, if not all of them."""
        return part_of(self.loop)


def _split(kernel: KernelOp, part: RoleOp) -> None:
    pairs = list(_pairs(part))
    if len(pairs) != 1:
        return
    pair = pairs[0]
    argument = pair.signal.signal
    assert isinstance(argument, BlockArgument) and isinstance(argument.type, SignalType)
    kind = SignalType([*argument.type.extents, BlockType(pair.tiles.of, pair.tiles.extent * pair.together)])
    Rewriter.replace_value_with_new_type(argument, kind)
    kernel.function_type = FunctionType.from_lists([arg.type for arg in kernel.body.block.args], [])
    pair.tasks.attributes[RASTER] = IntegerAttr(_BAND, i64)
    _signal_group(pair)
    _await_group(pair)


def _pairs(part: RoleOp) -> Iterator[_Pair]:
    for tasks in part.body.block.ops:
        if not isinstance(tasks, TasksOp) or len(tasks.counts) != 2:
            continue
        sent = [op for op in tasks.walk() if isinstance(op, SignalOp)]
        stored = [op for op in tasks.walk() if isinstance(op, StoreOp)]
        inner = tasks.body.block.args[1]
        if len(sent) != 1 or len(stored) != 1:
            continue
        numbered = [index for index in stored[0].indices if _number(index) is inner]
        waits = [use.operation for use in sent[0].signal.uses if isinstance(use.operation, WaitOp)]
        readers = [use.operation for use in stored[0].array.uses if isinstance(use.operation, LoadOp)]
        if len(numbered) != 1 or len(waits) != 1 or len(readers) != 1:
            continue
        place = list(stored[0].indices).index(numbered[0])
        loop = _loop_of(readers[0].indices[place])
        same = loop is not None and loop.parent is waits[0].parent and _goes_through_tiles(loop)
        if loop is not None and same:
            count = waits[0].count.owner
            own = count.cond if isinstance(count, arith.SelectOp) else None
            several = isinstance(count, arith.MuliOp) and isinstance(sent[0].parent_op(), scf.ForOp)
            pieces = count.lhs if isinstance(count, arith.MuliOp) and several else None
            yield _Pair(tasks, sent[0], stored[0], block_type(numbered[0]), waits[0], own, pieces, loop)


def _number(index: SSAValue) -> SSAValue | None:
    """The number of a block in the list of a whole dimension that follows no parts."""
    block = index.owner
    whole = isinstance(block, BlockOp) and block.sharded is None and block.part is block.start is block.stop is None
    return block.index if isinstance(block, BlockOp) and whole else None


def _loop_of(index: SSAValue) -> scf.ForOp | None:
    """The loop whose variable numbers a block."""
    number = _number(index)
    if not isinstance(number, BlockArgument) or number.index != 0:
        return None
    loop = number.owner.parent_op()
    return loop if isinstance(loop, scf.ForOp) else None


def _goes_through_tiles(loop: scf.ForOp) -> bool:
    return part_of(loop) is not None or (is_constant(loop.lb, 0) and is_constant(loop.step, 1))


def _signal_group(pair: _Pair) -> None:
    old, tiles = pair.signal, constant(pair.together)
    group = arith.DivSIOp(pair.tasks.body.block.args[1], tiles.result)
    signal = SignalOp(old.signal, (*old.indices, group.result), old.rank, old.amount)
    before(old, [tiles, group, signal])
    old.detach()
    old.erase()


def _await_group(pair: _Pair) -> None:
    """The wait moves into the loop, to the first tile of each group."""
    body, wait = pair.loop.body.block, pair.wait
    first_op = body.first_op
    assert first_op is not None
    turn = body.args[0]
    tiles, zero = constant(pair.together), constant(0)
    group, inside = arith.DivSIOp(turn, tiles.result), arith.RemSIOp(turn, tiles.result)
    ops: list[Operation] = [tiles, zero, group, inside, arith.CmpiOp(inside.result, zero.result, "eq")]
    left: list[Operation] = [arith.SubiOp(pair.loop.ub, turn)]
    part = pair.part
    if part is not None:
        # A part may begin inside a group, whose other tiles are signalled too.
        first = arith.CmpiOp(turn, pair.loop.lb, "eq")
        ops += [first, arith.OrIOp(ops[-1].results[0], first.result)]
        start = arith.MuliOp(group.result, tiles.result)
        left = [start, arith.SubiOp(part.turns, start.result)]
    if pair.own is not None:
        yes = arith.ConstantOp.from_int_and_width(1, 1)
        foreign = arith.XOrIOp(pair.own, yes.result)
        ops += [yes, foreign, arith.AndIOp(ops[-1].results[0], foreign.result)]
    branch = scf.IfOp(ops[-1].results[0], [], Region(Block()), Region())
    before(first_op, [*ops, branch])
    needed: list[Operation] = [*left, arith.MinSIOp(left[-1].results[0], tiles.result)]
    if pair.pieces is not None:
        needed.append(arith.MuliOp(pair.pieces, needed[-1].results[0]))
    needed += [WaitOp(wait.signal, (*wait.indices, group.result), needed[-1].results[0]), scf.YieldOp()]
    for op in needed:
        op.location = wait.location
        branch.true_region.block.add_op(op)
    wait.detach()
    wait.erase()
