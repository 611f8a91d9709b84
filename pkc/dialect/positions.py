"""The operations that say where: ranks, dimensions, block lists. Functions of their operands.

Of some what runs them is the first argument (`depends_on`): the rank, or the number of the launch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sized
from typing import Any, Protocol

from xdsl.ir import Operation

from pkc.dialect import blocks, coordinates
from pkc.dialect.blocks import Block
from pkc.dialect.tile import block_type

RANK, EPOCH = "rank", "epoch"


class Machine(Protocol):
    """What positions depend on: the sizes of dimensions, the ranks, who runs a role."""

    @property
    def ranks(self) -> int: ...

    def size(self, dim: str | int) -> int: ...

    def workers(self, role: str) -> Sized:
        """The CTAs of a rank that run a role."""
        ...

    def check_part(self, op: Operation, rank: int) -> None:
        """Raise `PkcError` if there is no such rank to have a part of a dimension."""
        ...


def depends_on(op: Operation) -> tuple[str, ...]:
    """What the result depends on beside operands: `RANK`, or `EPOCH`."""
    if isinstance(op, coordinates.EpochOp):
        return (EPOCH,)
    return (RANK,) if isinstance(op, coordinates.RankOp | coordinates.RingPeerOp) else ()


def position_function(op: Operation, machine: Machine) -> Callable[..., Any] | None:
    """The meaning of an operation of this kind; None for one of another."""
    match op:
        case coordinates.RankOp() | coordinates.EpochOp():
            return itself
        case coordinates.RingPeerOp():
            ranks = machine.ranks
            return lambda rank, step: (rank + step) % ranks
        case coordinates.DimOp():
            size = machine.size(op.dim.data)
            return lambda: size
        case coordinates.BlockPositionOp():
            return _first
        case coordinates.BlockNumberOp():
            kind = block_type(op.block)
            n, size, ranks = machine.size(kind.of), kind.extent, machine.ranks
            return functools.partial(_number, n, ranks, size)
        case coordinates.RotateOp():
            return _rotated
        case coordinates.InterleaveOp():
            return functools.partial(blocks.interleaved, machine.size(op.block.of), machine.ranks, op.block.extent)
        case coordinates.CtasOp():
            return lambda: len(machine.workers(op.role.data))
        case coordinates.OwnerOp():
            return _owner(op, machine)
        case coordinates.BlockIndexOp():
            return _index(op, machine)
        case coordinates.BlockCountOp():
            return _count(op, machine)
        case coordinates.BlockOp():
            return _block(op, machine)
        case _:
            return None


def itself(number: int) -> int:
    """The meaning of `pk.rank` and `pk.epoch`."""
    return number


def _rotated(index: int, shift: int, count: int) -> int:
    return (index + shift) % count if count else 0


def _first(block: Block) -> int:
    return block.start


def _last(block: Block) -> int:
    """The last position; of an empty block the one where it would begin."""
    return block.start + max(block.length - 1, 0)


def _number(n: int, ranks: int, size: int, block: Block) -> int:
    return blocks.number(n, ranks, size, block.start)


def _owner(op: coordinates.OwnerOp, machine: Machine) -> Callable[..., int]:
    n, ranks = machine.size(block_type(op.block).of), machine.ranks
    end = _last if op.last is not None else _first

    def owner(block: Block) -> int:
        return blocks.owner(n, ranks, end(block))

    return owner


def _index(op: coordinates.BlockIndexOp, machine: Machine) -> Callable[..., int]:
    n, size, ranks = machine.size(op.of.of), op.of.extent, machine.ranks
    end, sharded = _last if op.last is not None else _first, op.sharded is not None

    def index(block: Block) -> int:
        return blocks.index_of(n, ranks, size, end(block), sharded=sharded)

    return index


def _count(op: coordinates.BlockCountOp, machine: Machine) -> Callable[..., int]:
    n, size, ranks = machine.size(op.block.of), op.block.extent, machine.ranks
    if op.part is None and op.sharded is not None:
        total = blocks.sharded_count(n, ranks, size)
        return lambda: total
    bounds = _bounds(op, n, machine)
    return lambda *operands: blocks.count(*bounds(operands), size)


def _block(op: coordinates.BlockOp, machine: Machine) -> Callable[..., Block]:
    kind = block_type(op.result)
    n, size, ranks = machine.size(kind.of), kind.extent, machine.ranks
    if op.part is None and op.sharded is not None:
        return functools.partial(blocks.sharded_block, n, ranks, size)
    bounds = _bounds(op, n, machine)

    def numbered(index: int, *operands: int) -> Block:
        return blocks.block(*bounds(operands), size, index)

    return numbered


def _bounds(
    op: coordinates.BlockCountOp | coordinates.BlockOp, n: int, machine: Machine
) -> Callable[[tuple[int, ...]], tuple[int, int]]:
    """The first position of a list and the one after its last, from the operands `part`, `start`, `stop` it has."""
    if op.part is not None:

        def of_rank(operands: tuple[int, ...]) -> tuple[int, int]:
            (rank,) = operands
            machine.check_part(op, rank)
            return blocks.part(n, machine.ranks, rank)

        return of_rank
    if op.start is not None and op.stop is not None:
        return lambda operands: blocks.clamp(n, operands[0], operands[1])
    if op.start is not None:
        return lambda operands: blocks.clamp(n, operands[0], None)
    if op.stop is not None:
        return lambda operands: blocks.clamp(n, None, operands[0])
    return lambda operands: (0, n)
