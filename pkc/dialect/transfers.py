"""How tiles move, and what follows for memory order: the attributes `transfer`, `order` and `fenced`.

Two proxies reach memory (PTX ISA, Memory Consistency Model): ordinary instructions use the generic proxy, TMA and wgmma
the async proxy. Accesses through the one are not ordered against accesses through the other without a fence.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue, Use

from pkc.dialect.access import AddToArrayOp, LoadOp, StoreOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.fences import DrainOp, Fence, FenceOp
from pkc.dialect.program import PHASE
from pkc.dialect.roles import ChannelOp, CommitOp, ConsumeOp, ReleaseDeferredOp, ReleaseOp, channel_of
from pkc.dialect.tile import AnyMmaOp, MmaOp, TransposeOp, pieces_of, reads_registers

TRANSFER = "transfer"
"""On an access: `by` says how it moves its tile, `why` why so. `rows` is the size of a chunk, if the tile is moved in
chunks; each is read before the next is written. `whole` if it moves so only where its blocks are whole, and else by
ordinary instructions: a load decides when it runs, a store is split (`pk-split-stores`). `anywhere` if its rows begin
at no multiple of what TMA moves: each comes with what lies around it, and readers shift it into place."""

UNREAD = "unread"
"""On a load: the axes of its tile along which nothing reads what lies past the end of the block. There it may have any
values; by TMA those that the array has."""

NEVER_READ = "never_read"
"""On a load: the axes along which nothing reads what its tile has past the end of the block even where that is the end
of the array, behind which TMA gives zeros."""

BOXES = "boxes"
"""On a gather: so many of its rows, beginning with the first, lie behind each other along a dimension of the array,
and the next ones, and so on, as its tables have it; and which dimension. They make a box of TMA."""

CACHE, KEEP, ONCE = "cache", "keep", "once"
"""On an access: what the L2 cache is told of its tile, if it moves by TMA. It comes again in the same task, and is
given up last; or it does not, and is given up first."""

INSIDE = "its block ends inside of the array, where TMA does not stop"
"""Why ordinary instructions store what TMA stores elsewhere."""

TMA, ASYNC, REGISTER = "tma", "async", "register"
"""TMA: between global and shared memory, through the async proxy. Async: from global to shared memory, 16 bytes of a
thread at once from wherever its address says, through the generic proxy (PTX: cp.async). Register: by ordinary
instructions."""

FENCED = "fenced"
"""On a kernel: memory order is explicit. Signals and waits order only what `order`, fences and drains say."""


def transfer(
    by: str, why: str, rows: int | None = None, *, whole: bool = False, anywhere: bool = False
) -> DictionaryAttr:
    """The plan for one access."""
    plan: dict[str, Attribute] = {"by": StringAttr(by), "why": StringAttr(why)}
    if rows is not None:
        plan["rows"] = IntegerAttr(rows, i64)
    if whole:
        plan["whole"] = UnitAttr()
    if anywhere:
        plan["anywhere"] = UnitAttr()
    return DictionaryAttr(plan)


def pieces(op: Operation) -> int | None:
    """The rows of a chunk, if an access moves its tile in chunks."""
    plan = op.attributes.get(TRANSFER)
    rows = plan.data.get("rows") if isinstance(plan, DictionaryAttr) else None
    return rows.value.data if isinstance(rows, IntegerAttr) else None


def only_whole(op: Operation) -> bool:
    """Whether an access is planned to move as its plan says only where its blocks are whole."""
    return _is_planned(op, "whole")


def begins_anywhere(op: Operation) -> bool:
    """Whether the rows of a load are planned to come with what lies around them."""
    return _is_planned(op, "anywhere")


def _is_planned(op: Operation, key: str) -> bool:
    plan = op.attributes.get(TRANSFER)
    return isinstance(plan, DictionaryAttr) and key in plan.data


def needs_threads(op: Operation) -> bool:
    """Whether an access goes, at least for some blocks, by ordinary instructions."""
    return not moves_by_tma(op) or only_whole(op)


def unread_axes(op: Operation) -> tuple[int, ...]:
    """The axes of a loaded tile along which nothing reads what lies past the end of the block."""
    return _axes(op, UNREAD)


def boxes(op: Operation) -> tuple[int, int] | None:
    """How many rows of a gather lie behind each other, and along which dimension, if it is known (`pk-plan-boxes`)."""
    found = _axes(op, BOXES)
    return (found[0], found[1]) if found else None


def never_read_axes(op: Operation) -> tuple[int, ...]:
    """Those along which this holds where that is the end of the array, too."""
    return _axes(op, NEVER_READ)


def _axes(op: Operation, key: str) -> tuple[int, ...]:
    axes = op.attributes.get(key)
    return tuple(map(int, axes.get_values())) if isinstance(axes, DenseArrayBase) else ()


def moves_by_tma(op: Operation) -> bool:
    """Whether an access is planned to go through the async proxy."""
    plan = op.attributes.get(TRANSFER)
    return isinstance(plan, DictionaryAttr) and plan.data["by"] == StringAttr(TMA)


def moves_async(op: Operation) -> bool:
    """Whether the threads of an access are planned to go on while its tile is on its way to a stage."""
    plan = op.attributes.get(TRANSFER)
    return isinstance(plan, DictionaryAttr) and plan.data["by"] == StringAttr(ASYNC)


def stage_of(tile: SSAValue) -> ConsumeOp | None:
    """The `pk.consume` that a tile comes from, if it lies in a stage."""
    return tile.owner if isinstance(tile.owner, ConsumeOp) else None


def mma_operand_stage(operand: SSAValue) -> ConsumeOp | None:
    """The `pk.consume` that an operand of an MMA comes from, transposed or not, if it lies in a stage."""
    owner = operand.owner
    return mma_operand_stage(owner.tile) if isinstance(owner, TransposeOp) else stage_of(operand)


def stages_of_pieces(op: Operation) -> list[ConsumeOp]:
    """The stages that an MMA in pieces reads wherever its product is used: its operands, if they lie there."""
    if not isinstance(op, MmaOp) or not pieces_of(op):
        return []
    return [stage for stage in map(mma_operand_stage, (op.a, op.b)) if stage is not None]


def crosses_proxies(commit: CommitOp) -> Operation | None:
    """An operation that reads through the async proxy (TMA, wgmma) what ordinary instructions wrote to the stage."""
    for use in commit.channel.uses:
        if isinstance(use.operation, ConsumeOp):
            for made, tile in zip(commit.tiles, use.operation.tiles, strict=True):
                readers = (reading.operation for reading in _uses(tile) if _asynchronous(reading))
                reader = None if _by_tma(made) else next(readers, None)
                if reader is not None:
                    return reader
    return None


def read_by_threads(channel: SSAValue, role: Operation) -> bool:
    """Whether a role reads stages of a channel by ordinary instructions, and TMA fills their memory again: what a
    thread has asked for may still be on its way when it gives a stage back, and a barrier orders the generic proxy
    alone."""
    if not any(map(_filled_by_tma, _in_its_memory(channel))):
        return False
    uses = [use.operation for use in channel.uses]
    consumed = [tile for op in uses if isinstance(op, ConsumeOp) and role.is_ancestor(op) for tile in op.tiles]
    reading = (use for tile in consumed for use in _uses(tile))
    return any(not isinstance(use.operation, TransposeOp) and not _asynchronous(use) for use in reading)


def _in_its_memory(channel: SSAValue) -> Iterator[SSAValue]:
    """A channel, and those of other phases, whose stages lie where its own do (`pk-reuse-memory`)."""
    yield channel
    own = channel_of(channel)
    if PHASE not in own.attributes or own.parent is None:
        return
    others = (op for op in own.parent.ops if isinstance(op, ChannelOp) and PHASE in op.attributes)
    yield from (op.result for op in others if op.attributes[PHASE] != own.attributes[PHASE])


def _filled_by_tma(channel: SSAValue) -> bool:
    commits = (use.operation for use in channel.uses if isinstance(use.operation, CommitOp))
    owners = (tile.owner for commit in commits for tile in commit.tiles)
    return any(isinstance(owner, LoadOp | GatherOp) and moves_by_tma(owner) for owner in owners)


def is_read_fenced(release: ReleaseOp | ReleaseDeferredOp) -> bool:
    """Whether a fence stands in front of the release of a stage, with nothing but other releases and drains between, or
    that of a commit, which comes behind all that is read for it."""
    op = release.prev_op
    while isinstance(op, ReleaseOp | ReleaseDeferredOp | DrainOp):
        op = op.prev_op
    if isinstance(op, CommitOp):
        op = op.prev_op
    return isinstance(op, FenceOp) and op.kind.data is Fence.AsyncShared


def is_fenced(commit: CommitOp) -> bool:
    """Whether a fence stands between what ordinary instructions write to the stage and its commit.

    What is still on its way then is fenced by whoever consumes the stage.
    """
    made = {tile.owner for tile in commit.tiles if not _by_tma(tile)}
    arriving = {owner for owner in made if isinstance(owner, Operation) and moves_async(owner)}
    if arriving and not all(_is_fenced_behind(use.operation) for use in commit.channel.uses):
        return False
    made -= arriving
    if not made:
        return True
    op = commit.prev_op
    while op is not None and op not in made:
        if isinstance(op, FenceOp) and op.kind.data is Fence.AsyncShared:
            return True
        op = op.prev_op
    return False


def _is_fenced_behind(op: Operation) -> bool:
    """Whether a fence follows at once, if the operation consumes a stage."""
    return not isinstance(op, ConsumeOp) or (
        isinstance(op.next_op, FenceOp) and op.next_op.kind.data is Fence.AsyncShared
    )


def _by_tma(tile: SSAValue) -> bool:
    return isinstance(tile.owner, LoadOp | GatherOp) and not needs_threads(tile.owner)


def _uses(tile: SSAValue) -> Iterator[Use]:
    for use in tile.uses:
        yield use
        if isinstance(use.operation, TransposeOp):  # the layout that wgmma is told
            yield from _uses(use.operation.result)


def _asynchronous(use: Use) -> bool:
    op = use.operation
    if isinstance(op, AnyMmaOp):
        return op.operands[use.index] is not op.acc and not reads_registers(op)
    return isinstance(op, StoreOp | AddToArrayOp) and moves_by_tma(op)
