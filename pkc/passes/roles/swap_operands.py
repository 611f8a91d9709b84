"""The pass `pk-swap-operands`: what is computed for an MMA becomes its left operand, which registers can hold."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.rewriter import Rewriter

from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.program import CONSUMERS, KernelOp, kernel_of
from pkc.dialect.reductions import FoldOp
from pkc.dialect.roles import ConsumeOp
from pkc.dialect.tile import ClipOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.types import TileType, dtype_bytes
from pkc.passes.analysis.dependence import sources
from pkc.passes.dce import drop_dead
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.turned import is_elementwise, is_loaded, is_matrix, turned, turns
from pkc.remarks import missed
from pkc.targets.target import Operands, target_of

_COLUMNS = 8
"""A result has a multiple of so many columns (PTX ISA: wgmma)."""
_BYTES = 2
"""Of elements that registers hold for an MMA as an accumulator holds them."""


class SwapOperands(KernelPass):
    """Exchange the operands of MMAs of which the right one is computed and the left one is loaded.

    Tensor cores read right operands in shared memory. One that is computed is written there by all warps, which wait
    for each other, and read again by each warpgroup. As a left operand it stays in the registers of the warps that
    compute it: a b is the transpose of b^T a^T, and of a loaded tile the transpose is its stage read the other way.

    What is computed from the result element by element, and what loops carry of it, is transposed with it, up to where
    it is stored: there it is written the other way round. If something else uses it, as a reduction of rows, operands
    stay as they are. So they do where columns of what the right operand is computed from are folded: threads read these
    in another way; and where warpgroups could not share what are the rows of the result then.

    Before:

        %w = pk.load %W[%n, %k] : ... -> !pk.tile<128x64xi8>
        %b = pk.cast %w : ... -> !pk.tile<128x64xbf16>
        %t = pk.transpose %b : ... -> !pk.tile<64x128xbf16>
        %y = pk.mma %x, %t, %zero : ... -> !pk.tile<32x128xf32>
        pk.store %y, %Y[%m, %n] : !pk.tile<32x128xf32>, ...

    After:

        %w = pk.load %W[%n, %k] : ... -> !pk.tile<128x64xi8>
        %b = pk.cast %w : ... -> !pk.tile<128x64xbf16>
        %t = pk.transpose %x : ... -> !pk.tile<64x32xbf16>
        %z = pk.mma %b, %t, %zero : ... -> !pk.tile<128x32xf32>
        %y = pk.transpose %z : ... -> !pk.tile<32x128xf32>
        pk.store %y, %Y[%m, %n] : !pk.tile<32x128xf32>, ...
    """

    name = "pk-swap-operands"

    def run(self, kernel: KernelOp) -> None:
        seen, changed = set[Operation](), False
        folded = sources(op.tile for op in kernel.walk() if isinstance(op, FoldOp))
        for mma in [op for op in kernel.walk() if isinstance(op, MmaOp)]:
            if mma in seen or not _may_gain(mma):
                continue
            found = _Results(mma, folded)
            seen.update(found.mmas)
            if found.obstacle:
                missed(SwapOperands.name, mma, f"its right operand goes through shared memory: {found.obstacle}")
            else:
                found.rewrite()
                changed = True
        if changed:
            drop_dead(kernel.body)  # estimates count what is there


def _may_gain(mma: MmaOp) -> bool:
    """Whether the right operand alone is computed, of elements that registers can hold for an MMA."""
    narrow = dtype_bytes(tile_type(mma.b).element_type) == _BYTES
    return narrow and not is_loaded(mma.b) and is_loaded(mma.a)


def _groups(mma: MmaOp, rows: int) -> int:
    """How many warpgroups share an accumulator of so many rows (`pk-plan-warps`)."""
    target, kernel = target_of(mma), kernel_of(mma)
    given = None if kernel is None else kernel.scheduled_number(CONSUMERS)
    return given or max(1, min(rows // target.mma.rows, target.arch.consumers))


def _can_turn(tile: SSAValue) -> bool:
    """Whether the transpose of a tile that is computed, or a branch gives, follows from that of loads."""
    if isinstance(tile.owner, scf.IfOp):
        return tile.has_one_use() and all(map(_can_turn, _yielded(tile.owner, tile)))
    return turns(tile)


def _yielded(branch: scf.IfOp, result: SSAValue) -> Iterator[SSAValue]:
    """What the branches give for a result."""
    for region in branch.regions:
        last = region.block.last_op
        assert isinstance(last, scf.YieldOp)
        yield last.operands[_number(branch, result)]


def _number(op: Operation, value: SSAValue) -> int:
    """Which result of an operation a value is."""
    return next(number for number, result in enumerate(op.results) if result is value)


class _Results:
    """The results that are transposed if the operands of an MMA are exchanged; `obstacle` is why they cannot be."""

    def __init__(self, mma: MmaOp, folded: Collection[SSAValue]) -> None:
        self._folded = folded
        self.mmas: list[MmaOp] = []
        self.obstacle = ""
        self._values: list[SSAValue] = []
        self._inputs: list[SSAValue] = []
        """What else is needed transposed."""
        self._exits: list[Use] = []
        self._made: dict[SSAValue, SSAValue] = {}
        self._multiply(mma)
        followed = 0
        while not self.obstacle and (followed < len(self._values) or self._pull()):
            for use in list(self._values[followed].uses) if followed < len(self._values) else ():
                self._follow(use)
            followed = min(followed + 1, len(self._values))
        if any(map(self._is_turned_back, self._beside())):
            self._refuse("its result is needed both as it is and transposed")

    def _pull(self) -> bool:
        """Take in the results of another MMA, with which these are combined; false if nothing is missing."""
        value = next((one for one in self._inputs if one not in self._values and not _can_turn(one)), None)
        if value is None:
            return False
        op = value.owner
        if isinstance(op, MmaOp) and _may_gain(op):
            self._multiply(op)
        elif isinstance(op, scf.ForOp):
            self._carry(op, _number(op, value))
        elif isinstance(op, Operation) and is_elementwise(op):
            self._inputs += filter(is_matrix, op.operands)
            self._add(value)
        else:
            self._refuse("its transpose, or that of what is added to the result, does not follow from loads")
        return True

    def _beside(self) -> set[SSAValue]:
        """What all that is transposed beside the results is computed from."""
        needed = [*self._inputs, *(mma.b for mma in self.mmas)]
        return sources(value for value in needed if value not in self._values)

    def _is_turned_back(self, value: SSAValue) -> bool:
        return isinstance(value.owner, TransposeOp) and value.owner.tile in self._values

    def _refuse(self, reason: str) -> None:
        self.obstacle = self.obstacle or reason

    def _multiply(self, mma: MmaOp) -> None:
        rows, columns = tile_type(mma.result).shape
        least, groups = target_of(mma).mma.rows, _groups(mma, columns)
        if target_of(mma).mma.operands is Operands.REGISTERS:
            self._refuse("as a left one it does, too")
        if columns % least:
            self._refuse(f"blocks of {columns} columns are no multiple of {least}")
        elif columns % (groups * least):
            self._refuse(f"{groups} warpgroups cannot share blocks of {columns} columns, {least} at a time")
        if rows % _COLUMNS:
            self._refuse(f"blocks of {rows} rows are no multiple of {_COLUMNS}")
        self.mmas.append(mma)
        self._inputs += [mma.acc]
        if not _can_turn(mma.b):
            self._refuse("its transpose does not follow from loads")
        if any(is_loaded(value) and value in self._folded for value in sources([mma.b])):
            self._refuse("columns of what it is computed from are folded beside it")
        self._add(mma.result)

    def _add(self, value: SSAValue) -> None:
        if value not in self._values:
            self._values.append(value)

    def _follow(self, use: Use) -> None:
        op = use.operation
        if isinstance(op, MmaOp):
            if use.index != _ACC or not _may_gain(op):
                self._refuse("another MMA needs its result, and no right operand in registers")
            elif op not in self.mmas:
                self._multiply(op)
        elif isinstance(op, scf.YieldOp):
            self._leave(op, use.index)
        elif isinstance(op, scf.ForOp):
            self._carry(op, use.index - _BOUNDS)
        elif isinstance(op, StoreOp | AccumulateOp | TransposeOp):
            self._exits.append(use)
        elif is_elementwise(op):
            self._inputs += filter(is_matrix, op.operands)
            self._add(op.results[0])
        else:
            self._refuse("its result is not only computed with element by element, and stored")

    def _leave(self, op: scf.YieldOp, index: int) -> None:
        around = op.parent_op()
        if isinstance(around, scf.ForOp):
            self._carry(around, index)
        elif isinstance(around, scf.IfOp):
            self._inputs += _yielded(around, around.results[index])
            self._add(around.results[index])
        else:
            self._refuse("its result leaves a loop that is none over blocks")

    def _carry(self, loop: scf.ForOp, index: int) -> None:
        last = loop.body.block.last_op
        assert last is not None
        self._inputs += [loop.iter_args[index], last.operands[index]]
        self._add(loop.body.block.args[index + 1])
        self._add(loop.results[index])

    def rewrite(self) -> None:
        """Transpose all values, and what they are made from."""
        makers = {value.owner for value in self._values if not isinstance(value.owner, Block)}
        for mma in self.mmas:
            mma.operands[0], mma.operands[1] = self._turn(mma.b), self._turn_view(mma, mma.a)
            self._turn_operand(mma, _ACC)
        for op in makers:
            if is_elementwise(op):
                for index, operand in enumerate(op.operands):
                    if is_matrix(operand):
                        self._turn_operand(op, index)
            if isinstance(op, ClipOp):
                op.properties["axis"] = IntegerAttr(1 - op.axis.value.data, op.axis.type)
        for value in self._values:
            self._turn_ways_in(value)
        now = {value: Rewriter.replace_value_with_new_type(value, _turned_type(value)) for value in self._values}
        for use in self._exits:
            self._leave_by(use, now)

    def _turn_operand(self, op: Operation, index: int) -> None:
        if op.operands[index] not in self._values:
            op.operands[index] = self._turn(op.operands[index])

    def _turn_ways_in(self, value: SSAValue) -> None:
        """Transpose what a loop begins with, and what branches and iterations give."""
        owner = value.owner
        if isinstance(owner, scf.IfOp):
            for region in owner.regions:
                last = region.block.last_op
                assert last is not None
                self._turn_operand(last, _number(owner, value))
        elif isinstance(owner, scf.ForOp):
            index, last = _number(owner, value), owner.body.block.last_op
            assert last is not None
            self._turn_operand(owner, index + _BOUNDS)
            self._turn_operand(last, index)

    def _leave_by(self, use: Use, now: dict[SSAValue, SSAValue]) -> None:
        op = use.operation
        value = op.operands[use.index]
        if isinstance(op, TransposeOp):
            op.result.replace_all_uses_with(value)
            op.detach()
            op.erase()
            return
        back = TransposeOp(value)
        back.location, back.result.name_hint = op.location, value.name_hint
        assert op.parent is not None
        op.parent.insert_op_before(back, op)
        op.operands[use.index] = back.result

    def _turn_view(self, mma: MmaOp, loaded: SSAValue) -> SSAValue:
        """The transpose of what is loaded, as the MMA alone sees it: it is used no earlier than that."""
        if isinstance(loaded.owner, TransposeOp):
            return loaded.owner.tile
        if isinstance(loaded.owner, ClipOp):
            return self._turn(loaded)
        made = TransposeOp(loaded)
        made.location = mma.location
        assert mma.parent is not None
        mma.parent.insert_op_before(made, mma)
        return made.result

    def _turn(self, tile: SSAValue) -> SSAValue:
        """The transpose of a tile that is none of the results, made where the tile is."""
        if tile not in self._made:
            self._made[tile] = self._turned(tile)
        return self._made[tile]

    def _turned(self, tile: SSAValue) -> SSAValue:
        op = tile.owner
        assert isinstance(op, Operation) and op.parent is not None
        if isinstance(op, TransposeOp):
            return op.tile
        if isinstance(op, scf.IfOp):
            index = _number(op, tile)
            for region in op.regions:
                last = region.block.last_op
                assert last is not None
                last.operands[index] = self._turn(last.operands[index])
            return Rewriter.replace_value_with_new_type(tile, _turned_type(tile))
        if isinstance(op, LoadOp | GatherOp | ConsumeOp):
            made: Operation = TransposeOp(tile)
            made.location = op.location
        else:
            made = turned(op, [self._turn(one) if is_matrix(one) else one for one in op.operands])
        op.parent.insert_op_after(made, op)
        return made.results[0]


def _turned_type(value: SSAValue) -> TileType:
    kind = tile_type(value)
    return TileType(kind.shape[::-1], kind.element_type)


_ACC = 2
"""The operand of an MMA that it adds to."""
_BOUNDS = 3
"""Operands of a loop in front of those that it carries."""
