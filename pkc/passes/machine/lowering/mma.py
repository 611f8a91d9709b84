"""MMA instructions that read shared memory (PTX ISA: wgmma); those that read registers are in `warp_mma.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from pkc.dialect.machine import SubviewOp
from pkc.dialect.tile import AnyMmaOp, FullOp, MmaOp, MmaWaitOp, in_flight, pieces_of, tile_type
from pkc.dialect.types import dtype_bytes, dtype_name, f32
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import fragments, spread, warp_mma
from pkc.passes.machine.lowering.context import Staged, WarpRole, warpgroup
from pkc.passes.machine.lowering.missing import CannotLowerError, slow
from pkc.targets.target import Operands

_MODES = {128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class _Operand:
    """An operand in shared memory, and whether the elements of the contracted dimension lie side by side."""

    tile: Staged
    along_k: bool

    def step(self, k: int) -> int:
        """Bytes to the `k`th element of the contracted dimension."""
        layout, size = self.tile.layout, dtype_bytes(self.tile.type.element_type)
        if not self.along_k:
            return k * layout.width
        return k // layout.columns * layout.panel_bytes + k % layout.columns * size

    def other(self, position: int) -> int:
        """Bytes to a position of the dimension that is not contracted."""
        layout = self.tile.layout
        return position * layout.width if self.along_k else position // layout.columns * layout.panel_bytes

    def high_bits(self) -> int:
        """A descriptor without its address: leading and stride byte offsets, swizzle mode."""
        layout = self.tile.layout
        leading = 1 if self.along_k else layout.panel_bytes >> 4
        return leading << 16 | (8 * layout.width >> 4) << 32 | _MODES[layout.width] << 62


def multiply(role: WarpRole, op: MmaOp) -> None:
    """acc + a @ b, in the registers of acc; complete, but for the MMAs that stay in flight."""
    if pieces_of(op):
        in_pieces(role, op)
        return
    issue(role, op)
    if role.emit.target.mma.operands is not Operands.REGISTERS:
        role.emit.do(f"wgmma_wait_{in_flight(op)}")


def wait(role: WarpRole, op: MmaWaitOp) -> None:
    """Wait for an MMA that was issued, after which its registers may be read."""
    acc = role.tiles[op.issued]
    assert isinstance(acc, fragments.RegisterTile)
    for value in op.behind:
        made = role.tiles[value]
        if isinstance(made, fragments.RegisterTile) and made.element_type == f32:
            role.emit.do(f"settle_{made.fragment.count}", made.registers)
    role.emit.do(f"wgmma_wait_{op.left.value.data}")
    role.emit.do(f"wgmma_done_{acc.fragment.count}", acc.registers)
    role.tiles[op.result] = acc


def issue(role: WarpRole, op: AnyMmaOp) -> None:
    """Begin acc + a @ b, in the registers of acc, or in new ones if something else reads these later. MMA instructions
    that read shared memory need no zeros to begin with."""
    in_registers = role.emit.target.mma.operands is Operands.REGISTERS
    if op.acc in role.folded or op.result in role.folded:
        raise CannotLowerError(op, "an MMA whose result is combined with reductions of columns")
    before = fragments.as_elements(role, op.acc)
    from_zero = not in_registers and isinstance(op.acc.owner, FullOp) and op.acc.owner.constant == 0
    if isinstance(before, fragments.RegisterTile) and fragments.only_use(op.acc, op):
        acc = before
    else:
        acc = fragments.allocate(role, before.fragment, before.element_type, op.result.name_hint)
        if isinstance(before, fragments.RegisterTile):
            slow(op, "what the MMA adds to is copied first: it is used by something else too")
        if not from_zero:
            fragments.copy(role, before, acc)
    role.tiles[op.result] = acc
    if in_registers:
        warp_mma.multiply(role, op, acc)
    else:
        part = _Part(range(acc.fragment.repeats), range(tile_type(op.b).shape[1]))
        _from_shared(role, op, acc.registers, part, from_zero)


def in_pieces(role: WarpRole, op: MmaOp) -> None:
    """Registers for one piece of a product, and the MMA of the first; `finish_piece` waits for it in front of what uses
    it, and `issue_piece` issues the others."""
    fragment = spread.fragment_of(role, op.result)
    each = fragment.count // pieces_of(op)
    registers = role.emit.registers(each, f32, op.result.name_hint)

    def element(emit: Emitter, index: SSAValue) -> SSAValue:
        return emit.get(registers, emit.modulo(index, each))

    role.tiles[op.result] = fragments.PieceTile(fragment, f32, element, registers=registers)
    issue_piece(role, op, 0)


def issue_piece(role: WarpRole, op: MmaOp, number: int) -> None:
    """Begin a @ b for a piece: some columns of some rows."""
    tile = role.tiles[op.result]
    assert isinstance(tile, fragments.PieceTile)
    across = pieces_of(op) // tile.fragment.repeats
    width, (repeat, place) = tile_type(op.b).shape[1] // across, divmod(number, across)
    columns = range(place * width, (place + 1) * width)
    _from_shared(role, op, tile.registers, _Part((repeat,), columns), from_zero=True)


def finish_piece(role: WarpRole, op: MmaOp) -> None:
    """Wait for the piece that was issued."""
    tile = role.tiles[op.result]
    assert isinstance(tile, fragments.PieceTile)
    role.emit.do("wgmma_wait_0")
    role.emit.do(f"wgmma_done_{tile.fragment.count // pieces_of(op)}", tile.registers)


@dataclass(frozen=True)
class _Part:
    """What an MMA computes at once: of the rows of each warpgroup some times those of an instruction, some columns."""

    repeats: Sequence[int]
    columns: range


def _from_shared(role: WarpRole, op: AnyMmaOp, to: SSAValue, part: _Part, from_zero: bool) -> None:
    """A part of an MMA, in steps along k, of which the first writes what the others add to, if it is `from_zero`."""
    emit, mma = role.emit, role.emit.target.mma
    m, k = tile_type(op.a).shape
    step = mma.depth // dtype_bytes(tile_type(op.a).element_type)
    if k % step:
        raise CannotLowerError(op, f"an MMA over {k} elements", f"blocks of a multiple of {step}")
    b = _shared(role, op, op.b, 0)
    starts_b = _descriptor(role, b, b.tile.address)
    left = role.tiles[op.a]
    a = _shared(role, op, op.a, 1) if isinstance(left, Staged) else None
    if a is None and dtype_bytes(tile_type(op.a).element_type) == 1:
        raise CannotLowerError(
            op, "an MMA of 8-bit floats that are computed", "round them to bf16, and multiply by an array of bf16"
        )
    left_registers = None if a is not None else fragments.materialize(role, op.a).registers
    dtypes = dict.fromkeys(dtype_name(tile_type(operand).element_type) for operand in (op.a, op.b))
    name = f"wgmma_n{{n}}_{'_'.join(dtypes)}_{'s' if a else 'r'}s_"
    name += ("k" if a is None or a.along_k else "m") + ("k" if b.along_k else "n")
    emit.do("wgmma_fence")
    group = warpgroup(role)
    if a is not None and m % mma.rows and not a.along_k:
        what = f"an MMA of {m} rows whose left operand has the rows innermost"
        raise CannotLowerError(op, what, f"blocks of a multiple of {mma.rows} rows")
    for place, repeat in enumerate(part.repeats):
        block = emit.plus(group, repeat * role.threads.warpgroups)
        starts_a = None
        if a is not None:
            starts_a = _descriptor(role, a, emit.plus(a.tile.address, emit.times(block, a.other(mma.rows))))
        for column in range(part.columns.start, part.columns.stop, mma.columns):
            width = min(mma.columns, part.columns.stop - column)
            subview = SubviewOp(to, (place * len(part.columns) + column - part.columns.start) // 2, width // 2)
            emit.add(subview)
            for first in range(0, k, step):
                if a is not None and starts_a is not None:
                    lefts = [emit.plus(starts_a, a.step(first) >> 4)]
                else:
                    assert left_registers is not None
                    base = repeat * k // 4 + first // 4
                    lefts = [emit.get(left_registers, base + i) for i in range(4)]
                right = emit.plus(starts_b, (b.step(first) + b.other(column)) >> 4)
                adds = emit.const(0 if from_zero and first == 0 else 1)
                emit.do(name.format(n=width), subview.result, *lefts, right, adds)
    emit.do("wgmma_commit")


def finish(role: WarpRole, ops: Sequence[MmaOp]) -> None:
    """Behind a loop whose MMAs stay in flight: wait for the last ones, after which their registers may be read."""
    role.emit.do("wgmma_wait_0")
    done: dict[SSAValue, int] = {}
    for op in ops:
        acc = role.tiles[op.result]
        assert isinstance(acc, fragments.RegisterTile)
        done[acc.registers] = acc.fragment.count
    for registers, count in done.items():
        role.emit.do(f"wgmma_done_{count}", registers)


def _shared(role: WarpRole, op: AnyMmaOp, value: SSAValue, contracted: int) -> _Operand:
    """An operand of which axis `contracted` is summed over."""
    tile = role.tiles[value]
    if not isinstance(tile, Staged):
        raise CannotLowerError(op, "an MMA whose right operand is computed", "compute the left one")
    along_k = (0 if tile.transposed else 1) == contracted
    row = tile.type.shape[-1] * dtype_bytes(tile.type.element_type)
    if not tile.layout.swizzle:
        raise CannotLowerError(op, f"an MMA of tiles with rows of {row} bytes", "rows of a multiple of 32 bytes")
    return _Operand(tile, along_k)


def _descriptor(role: WarpRole, operand: _Operand, address: SSAValue) -> SSAValue:
    """The matrix descriptor of an operand that begins at `address` (PTX ISA: wgmma, matrix descriptor)."""
    emit = role.emit
    return emit.plus(emit.wide(emit.right(emit.bit_and(address, 0x3FFFF), 4)), operand.high_bits())
