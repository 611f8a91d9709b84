"""The pass `pk-join-dimensions`: elements that lie in turn in a short last dimension are loaded and stored together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeGuard

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, IntegerAttr, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import tables_of
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.program import JOINED, KernelOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import AnyMmaOp, CastOp, ClipOp, EnlargeOp, TransposeOp, block_type, tile_type
from pkc.dialect.types import BlockType, PGLType, PrivateType, dtype_bytes
from pkc.passes.analysis.effects import is_side_effect_free, only_reads
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.analysis.value_numbers import ValueNumbers
from pkc.passes.build import before
from pkc.passes.dce import drop_dead
from pkc.passes.integers import Integers
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

_SECTOR = 32
"""Bytes that memory gives at once: further apart, elements are no neighbours for it either."""

_MOST = 32 * 1024
"""Bytes of a joined tile of which not all elements are used, and of one beside MMAs, whose operands need the rest of
shared memory: tiles of their own can leave in the stages in which others came."""


class JoinDimensions(KernelPass):
    """Join the last two dimensions of arrays of which tasks access `X[m, n, 0]`, `X[m, n, 1]`, ..., as pairs.

    Elements of one of these tiles lie some elements apart, so that each would move by itself. What lies between them
    are those of the others: a load of all is one of neighbours, of which each tile has its part (`pk.pick`), and a
    store of all is one of a tile with the elements of each in turn (`pk.zip`). Then they move as other tiles do. The
    array has one dimension less, which a launch does not see (`pk.joined`). All tiles of a place are stored in one
    block of operations, and nothing in between touches the array; some may not be loaded, if all take little memory.
    What an MMA or a transposition reads as it is loaded, and what tables are made of, stays as it is.

    Before:

        pk.kernel @k(%X: !pk.private<[M, 64, 2], bf16> {pk.name = "X"}, ...)
        %a = pk.load %X[%m, %n, %0 : ...] : ... -> !pk.tile<8x64xbf16>
        %b = pk.load %X[%m, %n, %1 : ...] : ... -> !pk.tile<8x64xbf16>
        pk.store %p, %Y[%m, %n, %0 : ...] : ...
        pk.store %q, %Y[%m, %n, %1 : ...] : ...

    After:

        pk.kernel @k(%X: !pk.private<[M, 128], bf16> {pk.name = "X", pk.joined = 2 : i64}, ...)
        %both = pk.load %X[%m, %nn : ...] : ... -> !pk.tile<8x128xbf16>
        %a = pk.pick %both at 0 of 2 : !pk.tile<8x128xbf16> -> !pk.tile<8x64xbf16>
        %b = pk.pick %both at 1 of 2 : !pk.tile<8x128xbf16> -> !pk.tile<8x64xbf16>
        %pairs = pk.zip %p, %q : !pk.tile<8x64xbf16>, !pk.tile<8x64xbf16> -> !pk.tile<8x128xbf16>
        pk.store %pairs, %Y[%m, %nn : ...] : ...
    """

    name = "pk-join-dimensions"

    def run(self, kernel: KernelOp) -> None:
        numbers, joined = ValueNumbers(kernel), False
        for arg in kernel.body.block.args:
            apart = [op for op in _accesses(arg) if _is_apart(op)] if _is_short(arg) else []
            if not any(constant_of(op.indices[-1]) is not None for op in apart):
                continue
            groups = _groups(arg, numbers)
            if reason := _why_not(kernel, arg, groups):
                what = f"elements of `{kernel.argument_name(arg)}` that do not lie side by side move one by one"
                missed(JoinDimensions.name, apart[0], f"{what}: {reason}")
            else:
                _join(kernel, arg, groups)
                joined = True
        if joined:
            drop_dead(kernel.body)  # the blocks of the shorter dimension


_Access = LoadOp | StoreOp


@dataclass(frozen=True)
class _Group:
    """Loads of one place but for the last index, or stores to it, in one block, in their order."""

    ops: list[_Access]

    @property
    def block(self) -> SSAValue:
        """The second last index."""
        return self.ops[0].indices[-2]


def _accesses(arg: BlockArgument) -> Iterator[Operation]:
    """The operations that use an array, in their order."""
    kernel, users = arg.owner.parent_op(), {use.operation for use in arg.uses}
    assert kernel is not None
    return (op for op in kernel.walk() if op in users)


def _is_short(arg: BlockArgument) -> bool:
    """Whether memory gives what a private array has along its last dimension, several elements, at once."""
    kind = arg.type
    if not isinstance(kind, PrivateType) or kind.rank < 2:
        return False
    last = kind.dimensions[-1]
    return isinstance(last, int) and last > 1 and last * dtype_bytes(kind.element_type) <= _SECTOR


def _is_apart(op: Operation) -> TypeGuard[_Access]:
    """Whether an access is to a tile whose neighbours do not lie side by side."""
    if not isinstance(op, _Access) or len(op.indices) < 2:
        return False
    return isinstance(op.indices[-2].type, BlockType) and not isinstance(op.indices[-1].type, BlockType)


def _groups(arg: BlockArgument, numbers: ValueNumbers) -> list[_Group]:
    found: dict[tuple[object, ...], _Group] = {}
    for op in _accesses(arg):
        if _is_apart(op):
            found.setdefault((type(op), op.parent, numbers.all(op.indices[:-1])), _Group([])).ops.append(op)
    return list(found.values())


def _why_not(kernel: KernelOp, arg: BlockArgument, groups: Sequence[_Group]) -> str:
    """Why an array stays as it is; empty if it need not."""
    kind = arg.type
    assert isinstance(kind, PrivateType)
    *_, many, last = kind.dimensions
    assert isinstance(last, int)
    if not isinstance(many, int):
        return f"dimension {many} is no constant"
    if kernel.roles:
        return "roles that are written out access what they say"
    if any(isinstance(other.type, PGLType) for other in kernel.body.block.args):
        return "the kernel reaches other ranks"
    for op in _accesses(arg):
        if not isinstance(op, _Access) or isinstance(op.indices[-1].type, BlockType):
            return "other accesses are by tables, or to several of them at once"
        place = constant_of(op.indices[-1])
        if place is None or not 0 <= place < last:
            return f"the last index is no constant below {last}"
    beside = not is_spread(kernel)
    return next(filter(None, (_why_not_one(group, arg, last, beside_mmas=beside) for group in groups)), "")


def _why_not_one(group: _Group, arg: BlockArgument, count: int, *, beside_mmas: bool) -> str:
    """Why the accesses of a group are not one."""
    block, numbers = group.block.owner, [constant_of(op.indices[-1]) for op in group.ops]
    if not isinstance(block, BlockOp) or block.in_shard or block.outside is not None:
        return "their blocks are those of a shard, or begin in front of the array"
    is_all = set(numbers) == set(range(count))
    if isinstance(group.ops[0], StoreOp) and not (is_all and len(numbers) == count):
        return f"not each of the {count} is stored once beside the others"
    between, last = group.ops[0].next_op, group.ops[-1]
    while between is not None and between is not last:
        if between not in group.ops and not all(_may_stand_between(inner, group, arg) for inner in between.walk()):
            return "the array is accessed, or something is waited for, between those of one place"
        between = between.next_op
    kind = tile_type(group.ops[0].tile if isinstance(group.ops[0], StoreOp) else group.ops[0].result)
    if prod(kind.shape) * count * dtype_bytes(kind.element_type) > _MOST:
        if beside_mmas:
            return "beside MMAs, shared memory has no room for all of them at once"
        if not is_all:
            return f"not each of the {count} is loaded beside the others, and all of them take more than {_MOST} bytes"
    if any(isinstance(op, LoadOp) and _stays(op.result) for op in group.ops):
        return "an MMA, a transposition or a table reads them as they are loaded"
    return ""


def _may_stand_between(op: Operation, group: _Group, arg: BlockArgument) -> bool:
    """Whether an operation may stand between accesses to an array that become one: it reads what others have, or what
    is loaded, or stores to others."""
    if op.regions or is_side_effect_free(op):
        return True
    reads = only_reads(op) and (arg not in op.operands or isinstance(group.ops[0], LoadOp))
    return reads or (isinstance(op, StoreOp) and op.array is not arg)


def _stays(tile: SSAValue) -> bool:
    """Whether an MMA or an operation that needs a tile as it lies in its stage reads it, or it makes a table."""
    for op in {use.operation for use in tile.uses}:
        if isinstance(op, AnyMmaOp | TransposeOp | EnlargeOp) or tile in tables_of(op):
            return True
        if isinstance(op, ClipOp | CastOp) and _stays(op.result):
            return True
    return False


def _join(kernel: KernelOp, arg: BlockArgument, groups: Sequence[_Group]) -> None:
    """Let the last two dimensions of an array be one, and each group one access."""
    kind = arg.type
    assert isinstance(kind, PrivateType)
    *outer, many, last = kind.dimensions
    assert isinstance(many, int) and isinstance(last, int)
    array = Rewriter.replace_value_with_new_type(arg, PrivateType([*outer, many * last], kind.element_type))
    assert isinstance(array, BlockArgument)
    array.location = arg.location
    kernel.function_type = FunctionType.from_lists([one.type for one in kernel.body.block.args], [])
    entries = list(kernel.arg_attrs)
    entries[array.index] = DictionaryAttr({**entries[array.index].data, JOINED: IntegerAttr(last, i64)})
    kernel.arg_attrs = ArrayAttr(entries)
    for group in groups:
        (_load if isinstance(group.ops[0], LoadOp) else _store)(group, array, last)
    for op in list(_accesses(array)):
        if isinstance(op, _Access) and len(op.indices) > array_type(array).rank:
            _of_one(op, array, last)


def _of_one(op: _Access, array: SSAValue, count: int) -> None:
    """An access with one place of each of the two dimensions."""
    numbers, (*places, row, place) = Integers(op), op.indices
    known = constant_of(row)
    if known is not None:  # constants tell accesses apart
        places.append(numbers.number(known * count + _number(op)))
    else:
        places.append(numbers.plus(numbers.times(row, numbers.number(count)), place))
    if isinstance(op, StoreOp):
        before(op, [StoreOp(op.tile, array, places)])
    else:
        _replace(op, LoadOp(array, places))
        return
    op.detach()
    op.erase()


def _replace(op: LoadOp, made: LoadOp | PickOp) -> None:
    """Let another operation stand where one stood."""
    before(op, [made])
    made.result.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(made.result)
    op.detach()
    op.erase()


def _load(group: _Group, array: SSAValue, count: int) -> None:
    """One load where the first one stands, and what each had of it."""
    first = group.ops[0]
    load = LoadOp(array, [*first.indices[:-2], _block(group, first, count)])
    before(first, [load])
    for op in group.ops:
        assert isinstance(op, LoadOp)
        _replace(op, PickOp(load, _number(op), count))


def _store(group: _Group, array: SSAValue, count: int) -> None:
    """One store where the last one stands."""
    last = group.ops[-1]
    tiles = {_number(op): op.tile for op in group.ops if isinstance(op, StoreOp)}
    zipped = ZipOp([tiles[number] for number in range(count)])
    block = _block(group, last, count)
    before(last, [zipped, StoreOp(zipped.result, array, [*last.indices[:-2], block])])
    for op in group.ops:
        op.detach()
        op.erase()


def _number(op: _Access) -> int:
    """Which of the elements of the last dimension an access is to."""
    number = constant_of(op.indices[-1])
    assert number is not None
    return number


def _block(group: _Group, anchor: Operation, count: int) -> SSAValue:
    """The block of the joined dimension that has all elements of a group."""
    block, numbers = group.block.owner, Integers(anchor)
    assert isinstance(block, BlockOp)
    kind = block_type(block.result)
    assert isinstance(kind.of, int)
    bounds = [None if one is None else numbers.times(one, numbers.number(count)) for one in (block.start, block.stop)]
    joined = BlockType(kind.of * count, kind.extent * count)
    return numbers.made(BlockOp(block.index, joined, start=bounds[0], stop=bounds[1]))
