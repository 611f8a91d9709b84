"""Tiles that the autoschedule tries instead of those of a program, as settings of the schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from pkc.cost.operations import is_dependent
from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.coordinates import BlockIndexOp, BlockNumberOp, BlockPositionOp, written_type
from pkc.dialect.elementwise import AddOp, MaxOp, MinOp, MulOp
from pkc.dialect.program import CONSUMERS, KernelOp
from pkc.dialect.reductions import RowMaxOp, RowMinOp, RowSumOp
from pkc.dialect.tile import CastOp, ClipOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.types import BlockType, Dim, TileType, dtype_bytes
from pkc.driver.sizes import counts_blocks, goes_on, other_sizes, reduced_alone, settings
from pkc.frontend.schedule import TILE
from pkc.passes.analysis.axes import written_axis
from pkc.passes.analysis.dependence import sources
from pkc.passes.roles.remote_accesses import planned
from pkc.targets.target import Target

_OF_ROWS = 10
"""Registers of a thread for values of rows: five of two rows."""


def other_tiles(kernel: KernelOp, target: Target) -> list[Mapping[str, str]]:
    """Each combination of tiles that a kernel with planned remote accesses could have; none if `why_none` says why."""
    if carries_numbers(kernel):
        return []
    kept = {f"{TILE}{dim}": size for dim, size in followed(kernel).items()}
    return [
        found
        for found in _combinations(kernel, target)
        if all(kept.get(key, size) == size for key, size in ((key, int(size)) for key, size in found.items()))
    ]


def _combinations(kernel: KernelOp, target: Target) -> list[Mapping[str, str]]:
    chain = _chain(kernel)
    if chain is not None:
        return list(_of_chain(kernel, chain, target))
    dims = _matmul_dims(kernel)
    if dims is not None and reduced_alone(kernel).isdisjoint(dims.names):
        sizes = (sizes for sizes in _sizes(target) if sizes != dims.sizes)
        return [settings(dict(zip(dims.names, each, strict=True))) for each in sizes]
    return [*other_sizes(kernel, target), *_of_scaled(kernel, target)]


def is_plain(kernel: KernelOp) -> bool:
    """Whether tiles that fit compile: those of a matmul of loaded operands, or of MMAs that need one another. Left
    operands that are transposed have no instructions for few rows."""
    if any(isinstance(op, MmaOp) and _is_transposed(op.a) for op in kernel.walk()):
        return False
    return _chain(kernel) is not None or _matmul_dims(kernel) is not None


def _is_transposed(operand: SSAValue) -> bool:
    while isinstance(operand.owner, ClipOp | CastOp):
        operand = operand.owner.operands[0]
    return isinstance(operand.owner, TransposeOp)


def why_none(kernel: KernelOp) -> str:
    """Why a kernel's tiles are not chosen."""
    mmas = [op for op in kernel.walk() if isinstance(op, MmaOp)]
    if carries_numbers(kernel) or followed(kernel):
        return "where blocks begin, or how many came before, is part of what it computes"
    if any(map(is_dependent, mmas)):
        if any(map(planned, kernel.walk())):
            return "its MMAs need one another, and it reaches other ranks"
        return (
            "its MMAs need one another, and do not share one dimension of rows and one of a loop, of run-time length,"
            " of which no block is reduced by itself"
        )
    if any(map(counts_blocks, kernel.walk())):
        return "how many blocks there are, or have been signalled, is part of what it computes"
    return "it has no blocks of a dimension of run-time length that could have another size"


def carries_numbers(kernel: KernelOp) -> bool:
    """Whether a kernel carries numbers from one block to the next: its result may depend on the size of all blocks."""
    loops = (op for op in kernel.walk() if isinstance(op, scf.ForOp))
    return any(not isinstance(value.type, TileType) for loop in loops for value in loop.iter_args)


def followed(kernel: KernelOp) -> dict[Dim, int]:
    """The size of the blocks whose beginnings or numbers a kernel computes with, by dimension: its result may depend on
    it."""
    places = (op for op in kernel.walk() if isinstance(op, BlockPositionOp | BlockNumberOp | BlockIndexOp))
    kinds = (op.block.type for op in places)
    return {kind.of: kind.extent for kind in kinds if isinstance(kind, BlockType)}


# Matmuls


def _sizes(target: Target) -> Iterator[tuple[int, int, int]]:
    tiles = target.tiles
    for rows, columns in product(tiles.rows, tiles.columns):
        if rows * columns <= tiles.most:
            yield from ((rows, columns, inner) for inner in tiles.inner)
        if rows * columns <= tiles.small:
            yield from ((rows, columns, inner) for inner in tiles.deep)


@dataclass(frozen=True)
class _Dims:
    """The dimensions of a matmul: of the rows, the columns, and of the sum; `sizes` are those of their blocks."""

    names: tuple[Dim, Dim, Dim]
    sizes: tuple[int, int, int]


def _matmul_dims(kernel: KernelOp) -> _Dims | None:
    """The dimensions, if all matmuls of a kernel have the same three, and none is a constant."""
    if kernel.roles:
        return None
    found: set[_Dims] = set()
    for op in kernel.walk():
        if not isinstance(op, MmaOp):
            continue
        left, right = _blocks(op.a), _blocks(op.b)
        if left is None or right is None:
            return None
        (rows, inner), (_, columns) = left, right
        names = rows.of, columns.of, inner.of
        if len(set(names)) < 3 or not all(isinstance(name, str) for name in names):
            return None
        found.add(_Dims(names, (rows.extent, columns.extent, inner.extent)))
    return found.pop() if len(found) == 1 else None


def summed_over(kernel: KernelOp) -> Dim | None:
    """The dimension that all matmuls of a kernel sum over, if they have the same three."""
    dims = _matmul_dims(kernel)
    return dims and dims.names[2]


def _blocks(value: SSAValue) -> tuple[BlockType, BlockType] | None:
    """The blocks that the two axes of an operand come from, if it is loaded."""
    owner = value.owner
    if isinstance(owner, TransposeOp):
        inner = _blocks(owner.tile)
        return inner and (inner[1], inner[0])
    if isinstance(owner, CastOp | ClipOp):
        return _blocks(owner.tile)
    if not isinstance(owner, LoadOp):
        return None
    found = [kind for index in owner.indices if (kind := written_type(index)) is not None]
    return (found[0], found[1]) if len(found) == 2 else None


# Loops whose one MMA is used in its iteration


def _of_scaled(kernel: KernelOp, target: Target) -> Iterator[Mapping[str, str]]:
    """Rows for more warpgroups than usual: tensor cores have work while two of them compute with what their MMAs gave.
    Product and sum are in registers."""
    mmas = [op for op in kernel.walk() if isinstance(op, MmaOp)]
    if len(mmas) != 1 or not is_scaled(mmas[0]) or any(map(planned, kernel.walk())):
        return
    down = written_axis(mmas[0].result, 0)
    fixed = kernel.scheduled_number(CONSUMERS) is not None or kernel.roles
    if fixed or down is None or not isinstance(down.of, str):
        return
    threads = target.arch.warpgroup * target.arch.warp
    each = 2 * tile_type(mmas[0].result).shape[1] * target.mma.rows // threads
    for rows in target.tiles.chained_rows:
        consumers = rows // target.mma.rows
        if consumers > target.arch.consumers and each <= _room(consumers, target):
            yield {**settings({down.of: rows}), CONSUMERS: str(consumers)}


def is_scaled(mma: MmaOp) -> bool:
    """Whether something else than the sum of a loop needs an MMA in its iteration."""
    return isinstance(mma.parent_op(), scf.ForOp) and not goes_on(mma)


# Loops whose MMAs need one another


@dataclass(frozen=True)
class _Chain:
    """A loop whose MMAs need one another: the blocks of rows of all results, and those that the loop goes through."""

    rows: BlockType
    looped: BlockType
    mmas: tuple[MmaOp, ...]
    twice: frozenset[Operation]
    """Loads of which two stages are in use: those in the loop."""


def _chain(kernel: KernelOp) -> _Chain | None:
    """The loop of a kernel that has one, if both dimensions are of run-time length, and all operands of this rank."""
    mmas = [op for op in kernel.walk() if isinstance(op, MmaOp)]
    loops = {op.parent_op() for op in mmas}
    loop = loops.pop() if len(loops) == 1 else None
    if not isinstance(loop, scf.ForOp) or not any(map(is_dependent, mmas)) or any(map(planned, kernel.walk())):
        return None
    number = loop.body.block.args[0]
    found = [op for op in loop.walk() if isinstance(op, LoadOp)]
    turning = {op: [index for index in op.indices if number in sources((index,))] for op in found}
    looped = {written_type(index) for indices in turning.values() for index in indices}
    rows = {written_axis(op.result, 0) for op in mmas}
    if len(looped) != 1 or len(rows) != 1:
        return None
    (across,), (down,) = looped, rows
    if not isinstance(across, BlockType) or not isinstance(down, BlockType):
        return None
    if across.of == down.of or not isinstance(across.of, str) or not isinstance(down.of, str):
        return None
    if not all(_goes_on(op, loop) for op in loop.walk() if _sums_up(op, across)):
        return None
    return _Chain(down, across, tuple(mmas), frozenset(op for op, indices in turning.items() if indices))


_ACROSS: dict[type[Operation], type[Operation]] = {RowMaxOp: MaxOp, RowMinOp: MinOp, RowSumOp: AddOp, MmaOp: AddOp}
"""How the reduction of a block goes into that of all blocks."""


def _sums_up(op: Operation, across: BlockType) -> bool:
    """Whether an operation reduces along the blocks that a loop goes through."""
    if type(op) not in _ACROSS:
        return False
    operand = op.operands[0]
    return written_axis(operand, tile_type(operand).rank - 1) == across


def _goes_on(op: Operation, loop: scf.ForOp) -> bool:
    """Whether the reduction of a block is used for nothing but that of all blocks so far: else what a kernel computes
    depends on the size of blocks."""
    carried = set(loop.body.block.args[1:])
    if isinstance(op, MmaOp) and not carried.isdisjoint(sources([op.acc])):
        return True
    todo = [op.results[0]]
    while todo:
        value = todo.pop()
        for user in (use.operation for use in value.uses):
            if isinstance(user, MulOp):
                todo.append(user.result)
            elif not isinstance(user, _ACROSS[type(op)]) or carried.isdisjoint(sources(user.operands)):
                return False
    return True


def _of_chain(kernel: KernelOp, chain: _Chain, target: Target) -> Iterator[Mapping[str, str]]:
    """Those that fit into shared memory and registers, by what tiles have of these; with two stages, if any have."""
    given, each = kernel.scheduled_number(CONSUMERS), target.mma.rows
    narrowest = min(dtype_bytes(tile_type(op.a).element_type) for op in kernel.walk() if isinstance(op, MmaOp))
    lengths = [size for size in target.tiles.chained if size % (target.mma.depth // narrowest) == 0]
    for rows in target.tiles.chained_rows:
        consumers = rows // each
        if given not in (None, consumers):
            continue
        room = _room(consumers, target) - _OF_ROWS
        fitting = [size for size in lengths if _tile_registers(chain, rows, size, target) <= room]
        for stages in (1, 2):
            some = [size for size in fitting if _shared(kernel, chain, rows, size, stages) <= target.stage_memory]
            fitting = some if some or stages == 1 else fitting
        sizes = {chain.rows.of: rows} if rows != chain.rows.extent else {}
        more = {CONSUMERS: str(consumers)} if given is None and consumers > target.arch.consumers else {}
        for size in fitting:
            # The shorter iterations are, the more of them is what does not overlap.
            if 3 * size >= 2 * fitting[-1] and (sizes or size != chain.looped.extent):
                yield {**settings({**sizes, chain.looped.of: size}), **more}


def _resized(chain: _Chain, kind: BlockType, rows: int, looped: int) -> int:
    return {chain.rows.of: rows, chain.looped.of: looped}.get(kind.of, kind.extent)


def _shared(kernel: KernelOp, chain: _Chain, rows: int, looped: int, stages: int) -> int:
    """Bytes of the tiles that are loaded and stored, with so many stages of those in the loop."""
    total = 0
    for op in kernel.walk():
        if isinstance(op, LoadOp | StoreOp | AccumulateOp):
            tile = tile_type(op.result if isinstance(op, LoadOp) else op.tile)
            kinds = [kind for index in op.indices if (kind := written_type(index)) is not None]
            size = prod(_resized(chain, kind, rows, looped) for kind in kinds) * dtype_bytes(tile.element_type)
            total += size * (stages if op in chain.twice else 1)
    return total


def _tile_registers(chain: _Chain, rows: int, looped: int, target: Target) -> float:
    """Registers of a thread for the results of MMAs, and for what is computed from some of them for others."""
    total = 0
    for op in chain.mmas:
        kind = written_axis(op.b, 1)
        wide = tile_type(op.result).shape[1] if kind is None else _resized(chain, kind, rows, looped)
        total += wide * dtype_bytes(tile_type(op.result).element_type)
        if is_dependent(op) and (kind := written_axis(op.b, 0)) is not None:
            total += _resized(chain, kind, rows, looped) * dtype_bytes(tile_type(op.a).element_type)
    threads = target.arch.warpgroup * target.arch.warp
    return total * target.mma.rows / threads / target.arch.register_bytes


def _room(consumers: int, target: Target) -> int:
    """Registers that each thread of so many warpgroups has for tiles, beside a warpgroup that moves tiles."""
    group = target.arch.warpgroup * target.arch.warp
    rest = target.launched_registers((consumers + 1) * group) - group * target.registers.moving
    many = rest // (consumers * group) // 8 * 8
    return min(many, target.arch.most_registers, target.arch.thread_registers) - target.registers.reserve
