"""The semantics of `coordinates.py`: what ranks, dimensions and block lists are, as functions of the operands.

Some take a first argument more (`depends_on`): the rank, or the epoch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Protocol

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from pkc.dialect import blocks, coordinates
from pkc.dialect.access import ReadOp
from pkc.dialect.blocks import Block
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS, BlockType

RANK, EPOCH = "rank", "epoch"


class Machine(Protocol):
    """What positions depend on: the sizes of dimensions, the ranks, who runs a role."""

    @property
    def ranks(self) -> int: ...

    def size(self, dim: str | int) -> int: ...

    def ctas_of(self, role: str) -> Sized:
        """The CTAs of a rank that run a role."""
        ...

    def check_shard(self, op: Operation, rank: int) -> None:
        """Raise `PkcError` if `op` asks for the shard of a rank that does not exist."""
        ...

    def refuse_bound(self, op: coordinates.BlockCountOp, rank: int, bound: int, *, ends: bool) -> None:
        """Raise `PkcError`: a list begins or ends outside of its dimension, as an array says."""
        ...


@dataclass(frozen=True)
class Sizes:
    """A machine without CTAs: its sizes alone. `dims` has the number of ranks too."""

    dims: Mapping[str, int]

    @property
    def ranks(self) -> int:
        return self.dims[RANKS]

    def size(self, dim: str | int) -> int:
        return dim if isinstance(dim, int) else self.dims[dim]

    def ctas_of(self, role: str) -> Sized:
        raise AssertionError(f"no CTA runs {role} here")

    def check_shard(self, op: Operation, rank: int) -> None:
        assert 0 <= rank < self.ranks, f"{op.name} of rank {rank}"

    def refuse_bound(self, op: coordinates.BlockCountOp, rank: int, bound: int, *, ends: bool) -> None:
        """Sizes are asked for before anything runs, and by what has no data."""


def itself(number: int) -> int:
    """The function of an operation whose result is known, or is the argument of `depends_on`."""
    return number


def _peer(ranks: int, rank: int, step: int) -> int:
    return (rank + step) % ranks


def _rotated(index: int, shift: int, count: int) -> int:
    return (index + shift) % count if count else 0


def _visited(needed: int, count: int) -> int:
    return max(0, min(needed, count))


def _first(block: Block) -> int:
    return block.start


def _last(block: Block) -> int:
    """The last position; of an empty block the one where it would begin."""
    return block.start + max(block.length - 1, 0)


def _zigzag(op: coordinates.ZigzagPositionOp | coordinates.ZigzagGapOp, machine: Machine) -> Callable[[Block], int]:
    kind = block_type(op.block)
    n, ranks = machine.size(kind.of), machine.ranks
    length = blocks.shard_length(n, ranks)

    def place(block: Block) -> tuple[int, int]:
        shard = blocks.owner(n, ranks, block.start)
        return shard, block.start - shard * length

    if isinstance(op, coordinates.ZigzagGapOp):
        return lambda block: blocks.half(n, ranks) - place(block)[1]
    last = kind.extent - 1 if op.last is not None else 0

    def position(block: Block) -> int:
        shard, within = place(block)
        return blocks.zigzag(n, ranks, shard, within + last)

    return position


def _zigzag_count(op: coordinates.ZigzagCountOp, machine: Machine) -> Callable[[int, int], int]:
    n, ranks, size = machine.size(op.block.of), machine.ranks, op.block.extent
    inside = size - 1 if op.last is not None else 0
    return lambda limit, shard: blocks.zigzag_count(n, ranks, size, shard, inside, limit)


def _sharded_before(op: coordinates.ShardedCountOp, machine: Machine) -> Callable[[int], int]:
    return functools.partial(blocks.sharded_before, machine.size(op.block.of), machine.ranks, op.block.extent)


def _is_whole(op: coordinates.IsWholeOp, machine: Machine) -> Callable[[Block], bool]:
    extent = block_type(op.block).extent
    return lambda block: block.length == extent


def _number(kind: BlockType, machine: Machine) -> Callable[[Block], int]:
    n, size, ranks = machine.size(kind.of), kind.extent, machine.ranks
    return lambda block: blocks.number(n, ranks, size, block.start)


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
    if op.shard is None and op.sharded is not None:
        total = blocks.sharded_count(n, ranks, size)
        return lambda: total
    bounds, listed = _bounds(op, n, machine), bounds_in_memory(op)
    if not listed:
        return lambda *operands: blocks.count(*bounds(operands), size)

    looked_at = [(number, operand is op.stop) for number, operand in enumerate(op.operands) if operand in listed]

    def checked(rank: int, *operands: int) -> int:
        for number, ends in looked_at:
            if not 0 <= operands[number] <= n:
                machine.refuse_bound(op, rank, operands[number], ends=ends)
        return blocks.count(*bounds(operands), size)

    return checked


def bounds_in_memory(op: coordinates.BlockCountOp) -> list[SSAValue]:
    """The bounds of a list that are elements of arrays as they are, or its start and such an element. Others are
    computed, and clamped to the dimension."""

    def is_element(value: SSAValue | None) -> bool:
        return value is not None and isinstance(value.owner, ReadOp)

    def is_length(value: SSAValue) -> bool:
        terms = value.owner.operands if isinstance(value.owner, arith.AddiOp) else ()
        return op.start in terms and any(is_element(term) for term in terms)

    return [bound for bound in (op.start, op.stop) if bound is not None and (is_element(bound) or is_length(bound))]


def _block(op: coordinates.BlockOp, machine: Machine) -> Callable[..., Block]:
    kind = block_type(op.result)
    n, size, ranks = machine.size(kind.of), kind.extent, machine.ranks
    if op.shard is None and op.sharded is not None:
        return functools.partial(blocks.sharded_block, n, ranks, size)
    bounds = _bounds(op, n, machine)

    def numbered(index: int, *operands: int) -> Block:
        return blocks.block(*bounds(operands), size, index)

    return numbered


def _bounds(
    op: coordinates.BlockCountOp | coordinates.BlockOp, n: int, machine: Machine
) -> Callable[[tuple[int, ...]], tuple[int, int]]:
    """The first position of a list and the one after its last, from those of `shard`, `start`, `stop` that it has."""
    if op.shard is not None:

        def of_rank(operands: tuple[int, ...]) -> tuple[int, int]:
            (rank,) = operands
            machine.check_shard(op, rank)
            return blocks.shard_bounds(n, machine.ranks, rank)

        return of_rank
    if isinstance(op, coordinates.BlockOp) and op.outside is not None:
        return lambda operands: (min(operands[0], n), blocks.clamp(n, None, operands[1] if op.stop else None)[1])
    if op.start is not None and op.stop is not None:
        return lambda operands: blocks.clamp(n, operands[0], operands[1])
    if op.start is not None:
        return lambda operands: blocks.clamp(n, operands[0], None)
    if op.stop is not None:
        return lambda operands: blocks.clamp(n, None, operands[0])
    return lambda operands: (0, n)


_FUNCTIONS: dict[type[Operation], Callable[[Any, Machine], Callable[..., Any]]] = {
    coordinates.RankOp: lambda op, machine: itself,
    coordinates.EpochOp: lambda op, machine: itself,
    coordinates.RingPeerOp: lambda op, machine: functools.partial(_peer, machine.ranks),
    coordinates.DimOp: lambda op, machine: functools.partial(itself, machine.size(op.dim.data)),
    coordinates.CtasOp: lambda op, machine: functools.partial(itself, len(machine.ctas_of(op.role.data))),
    coordinates.BlockPositionOp: lambda op, machine: _first,
    coordinates.ZigzagPositionOp: _zigzag,
    coordinates.ZigzagGapOp: _zigzag,
    coordinates.ZigzagCountOp: _zigzag_count,
    coordinates.ShardedCountOp: _sharded_before,
    coordinates.IsWholeOp: _is_whole,
    coordinates.VisitedOp: lambda op, machine: _visited,
    coordinates.FirstVisitedOp: lambda op, machine: max,
    coordinates.BlockNumberOp: lambda op, machine: _number(block_type(op.block), machine),
    coordinates.RotateOp: lambda op, machine: _rotated,
    coordinates.InterleaveOp: lambda op, machine: functools.partial(
        blocks.interleaved, machine.size(op.block.of), machine.ranks, op.block.extent
    ),
    coordinates.OwnerOp: _owner,
    coordinates.BlockIndexOp: _index,
    coordinates.BlockCountOp: _count,
    coordinates.BlockOp: _block,
}

_DEPENDS: dict[type[Operation], str] = {
    coordinates.RankOp: RANK,
    coordinates.RingPeerOp: RANK,
    coordinates.EpochOp: EPOCH,
}


def position_function(op: Operation, machine: Machine) -> Callable[..., Any] | None:
    """The function of an operation of this kind; None for one of another kind."""
    found = _FUNCTIONS.get(type(op))
    return None if found is None else found(op, machine)


def depends_on(op: Operation) -> str | None:
    """What the result depends on beside operands, if it does: `RANK`, or `EPOCH`."""
    if isinstance(op, coordinates.BlockCountOp):
        return RANK if bounds_in_memory(op) else None
    return _DEPENDS.get(type(op))
