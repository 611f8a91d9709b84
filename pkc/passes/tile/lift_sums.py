"""The pass `pk-lift-sums`: each task contributes once to a tile of a sum over ranks."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, Pure, only_has_effect

from pkc.dialect.access import AccumulateOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import CastOp, FullOp, tile_type
from pkc.dialect.types import FLOATS, TileType, f32
from pkc.passes.build import defined_in, is_constant
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.tile.branch_sums import contribute_behind
from pkc.remarks import missed


class LiftSums(KernelPass):
    """Add up what a task contributes to a tile before it contributes it, so that contributions can be counted.

    Contributions of one block to one tile become one. A loop whose contributions all go to one tile carries their sum,
    in f32, and contributes it at its end. A branch gives what it contributes, or zeros. A loop that contributes to
    other tiles in each iteration, and that a task consists of, becomes tasks: nothing is carried from one iteration to
    the next.

    Before:

        pk.tasks (%i) in (%rows) {
          scf.for %k = ... {
            %t = ... : !pk.tile<128x64xf32>
            pk.accumulate %t, %C[%m, %n : ...] : ...
          }
        }

    After:

        pk.tasks (%i) in (%rows) {
          %zero = pk.full 0.0 : f32 : !pk.tile<128x64xf32>
          %sum = scf.for %k = ... iter_args(%acc = %zero) -> (!pk.tile<128x64xf32>) {
            %t = ... : !pk.tile<128x64xf32>
            %next = pk.add %acc, %t : !pk.tile<128x64xf32>
            scf.yield %next : !pk.tile<128x64xf32>
          }
          pk.accumulate %sum, %C[%m, %n : ...] : ...
        }
    """

    name = "pk-lift-sums"

    def run(self, kernel: KernelOp) -> None:
        for block in [region.block for op in kernel.walk() for region in op.regions if region.blocks]:
            _join(block)
        for op in reversed([op for op in kernel.walk() if isinstance(op, AccumulateOp)]):
            while op.parent is not None and _lift_once(op, kernel):
                _join(op.parent)
        for loop in [op for op in kernel.walk() if isinstance(op, scf.ForOp)]:
            if any(isinstance(op, AccumulateOp) for op in loop.body.block.ops):
                _to_tasks(loop)
        for op in [op for op in kernel.walk() if isinstance(op, AccumulateOp)]:
            if not isinstance(op.parent_op(), TasksOp):
                inside = (
                    "a branch" if isinstance(op.parent_op(), scf.IfOp) else "a loop, beside which the task does more"
                )
                missed(self.name, op, f"how often a task contributes is not known before: it stands in {inside}")


def _lift_once(op: AccumulateOp, kernel: KernelOp) -> bool:
    """Contribute behind the loop or branch that stands around."""
    around = op.parent_op()
    if isinstance(around, scf.ForOp):
        return lift(op, around)
    if not isinstance(around, scf.IfOp) or kernel.roles or kernel.in_any_order:
        return False
    return contribute_behind(op, around, unrounded(op, op))


def _join(block: Block) -> None:
    """Contributions to the same tile are the last one of them, if nothing reads the array in between."""
    last: dict[tuple[SSAValue, ...], AccumulateOp] = {}
    for op in reversed([op for op in block.ops if isinstance(op, AccumulateOp)]):
        place = (op.array, *op.indices)
        after = last.setdefault(place, op)
        if after is op:
            continue
        total = AddOp(unrounded(op, after), unrounded(after, after))
        _insert(total, after)
        after.operands[0] = _stored(total.result, tile_type(after.tile), after)
        op.detach()
        op.erase()


def unrounded(op: AccumulateOp, place: Operation) -> SSAValue:
    """What is contributed, in f32 or i32; as it was before it was rounded to the array's type."""
    made, kind = op.tile.owner, tile_type(op.tile)
    if isinstance(made, CastOp) and tile_type(made.tile).element_type == f32:
        return made.tile
    if kind.element_type not in FLOATS or kind.element_type == f32:
        return op.tile
    return _insert(CastOp(op.tile, f32), place)


def _stored(value: SSAValue, kind: TileType, place: Operation) -> SSAValue:
    """A sum in the type of the array."""
    return value if value.type == kind else _insert(CastOp(value, kind.element_type), place)


def _insert(op: Operation, place: Operation) -> SSAValue:
    op.location = place.location
    assert place.parent is not None
    place.parent.insert_op_before(op, place)
    return op.results[0]


def lift(op: AccumulateOp, loop: scf.ForOp) -> bool:
    """Contribute behind a loop what it contributes to one tile; False if it is not one tile."""
    body, around = loop.body.block, loop.parent
    end = body.last_op
    assert around is not None and isinstance(end, scf.YieldOp)
    moved = _invariant(op.indices, loop)
    if moved is None or op.parent is not body:
        return False
    for other in moved:
        other.detach()
        around.insert_op_before(other, loop)
    wide = unrounded(op, op)
    kind, stored = tile_type(wide), tile_type(op.tile)
    total = body.insert_arg(kind, len(body.args))
    added = AddOp(total, wide)
    _insert(added, op)
    zero = FullOp(0.0 if kind.element_type in FLOATS else 0, kind)
    zero.location = op.location
    around.insert_op_before(zero, loop)
    body.insert_op_before(_like(scf.YieldOp(*end.operands, added.result), end), end)
    end.detach()
    end.erase()
    region = loop.detach_region(loop.body)
    summed = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, zero.result], region)
    summed.attributes |= loop.attributes
    around.insert_op_before(_like(summed, loop), loop)
    for old, new in zip(loop.results, summed.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()
    op.detach()
    around.insert_op_after(op, summed)
    op.operands[0] = _stored(summed.results[-1], stored, op)
    return True


def _like(op: Operation, other: Operation) -> Operation:
    op.location = other.location
    return op


def _invariant(values: Iterable[SSAValue], loop: scf.ForOp) -> list[Operation] | None:
    """What has to be moved in front of a loop for values that are the same in all iterations; None if one is not."""
    found: list[Operation] = []

    def add(value: SSAValue) -> bool:
        if not defined_in(value, loop):
            return True
        made = value.owner
        if isinstance(made, Block) or made.regions or not made.has_trait(Pure):
            return False
        if made in found:
            return True
        if not all(add(operand) for operand in made.operands):
            return False
        found.append(made)
        return True

    return found if all(add(value) for value in values) else None


def _to_tasks(loop: scf.ForOp) -> None:
    """Make tasks of the iterations of a loop, if the task has nothing else to do: what the loop uses of it, each of the
    new tasks does for itself."""
    tasks, block = loop.parent_op(), loop.parent
    if not isinstance(tasks, TasksOp) or block is None or loop.results:
        return
    if not (is_constant(loop.lb, 0) and is_constant(loop.step, 1)):
        return
    others = [op for op in block.ops if op is not loop]
    integers = [op for op in others if not any(isinstance(kind, TileType) for kind in _kinds(op))]
    tiles = [op for op in others if op not in integers]
    if not all(op.has_trait(Pure) and not op.regions for op in integers):
        return
    if not all(only_has_effect(op, MemoryEffectKind.READ) or op.has_trait(Pure) for op in tiles if not op.regions):
        return
    if any(op.regions for op in tiles) or any(loop.is_before_in_block(op) for op in tiles):
        return
    region = loop.detach_region(loop.body)
    body = region.block
    end = body.last_op
    assert end is not None
    end.detach()
    end.erase()
    for op in reversed(tiles):
        op.detach()
        first = body.first_op
        if first is None:
            body.add_op(op)
        else:
            body.insert_op_before(op, first)
    inner = TasksOp([loop.ub], region)
    block.insert_op_before(_like(inner, loop), loop)
    loop.detach()
    loop.erase()


def _kinds(op: Operation) -> list[Attribute]:
    return [value.type for value in (*op.operands, *op.results) if value.type != IndexType()]
