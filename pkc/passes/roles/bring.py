"""The parts that bring operands to landing buffers: communicators that fetch or send, copy engines that copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.access import GatherOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockOp, DimOp, RankOp, RingPeerOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import RaiseOp, SignalAllOp, SignalOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS
from pkc.passes.analysis.dependence import sources
from pkc.passes.cells import Cells, constant, counter_ops, repeats
from pkc.passes.derive import add_role, append
from pkc.passes.roles.program_slices import CannotCopyError, Known, close_loops, copy_nest, copy_value
from pkc.passes.roles.pushes import push_of
from pkc.passes.roles.remote_accesses import REMOTE, Read, planned, shard_of
from pkc.passes.roles.straddling import follow_parts, overlapping, spans


@dataclass(frozen=True)
class Staging:
    """Operands that are brought together: read at the same place of arrays alike, in the same loops."""

    reads: Sequence[Read]
    landings: Sequence[BlockArgument]
    """The landing buffer of each."""
    places: Sequence[SSAValue]
    """The indices at which a tile lies in its landing buffer."""
    loops: Sequence[SSAValue]
    """The variables of the loops and tasks on which the places depend, outermost first."""
    cells: Cells
    ready: BlockArgument

    @property
    def first(self) -> Read:
        return self.reads[0]

    @property
    def whole(self) -> bool:
        """Whether nothing is announced before all has arrived."""
        return planned(self.first) == "none"

    @property
    def spanning(self) -> SSAValue | None:
        """The block of the reader along the dimension that is split, if it may lie in several parts."""
        if isinstance(self.first, GatherOp):
            return None
        index = self.first.indices[shard_of(self.first.array)]
        return index if spans(index) else None

    @property
    def again(self) -> list[SSAValue]:
        """The loops by which the pieces of one cell are brought."""
        return [] if self.whole else comes_back(self.cells, self.places, self.loops)


def is_task(variable: SSAValue) -> bool:
    owner = variable.owner
    return isinstance(owner, Block) and isinstance(owner.parent_op(), TasksOp)


def comes_back(cells: Cells, places: Sequence[SSAValue], loops: Sequence[SSAValue]) -> list[SSAValue]:
    """The innermost loops, which all pieces of one cell are fetched by: only after them is the cell announced."""
    again = repeats(cells, places, loops)
    if list(loops[len(loops) - len(again) :]) != again or any(map(is_task, again)):
        raise CannotCopyError
    return again


def fetch(kernel: KernelOp, staging: Staging) -> None:
    """A communicator goes through the loops of the reads, loads each tile once and stores it here."""
    part, at_cell, known = _loops(kernel, staging, Role.Communicator)
    cell = [copy_value(at_cell, staging.places[place], known) for place in staging.cells.places]
    body = copy_nest(at_cell, staging.first, staging.again, known)
    for tile, landing in _tiles(body, staging, known):
        indices = [copy_value(body, index, known) for index in staging.places]
        append(body, StoreOp(tile, landing, indices), staging.first.location)
    if staging.spanning is not None:
        role = part.parent_op()
        assert role is not None
        # A copy is of one rank's rows, whoever reads them.
        follow_parts(role, block_type(staging.spanning).of)
    if staging.whole:
        _announce(part, staging, [], SignalOp)
    elif staging.spanning is None:
        _announce(at_cell, staging, cell, RaiseOp)
    else:
        _announce_overlapping(at_cell, staging, cell)
    close_loops(part)


def copy(kernel: KernelOp, staging: Staging) -> None:
    """A copy engine copies whole cells: everything along the dimensions that only the inner loops go through."""
    part, at_cell, known = _loops(kernel, staging, Role.CopyEngine)
    cell = [copy_value(at_cell, staging.places[place], known) for place in staging.cells.places]
    again = set(staging.again)
    outer = {place: index for place, index in enumerate(staging.places) if again.isdisjoint(sources([index]))}
    box = {place: copy_value(at_cell, index, known) for place, index in outer.items()}
    for read, landing in zip(staging.reads, staging.landings, strict=True):
        append(at_cell, CopyOp(read.array, box, landing, box), read.location)
    _announce(at_cell, staging, cell, RaiseOp)
    close_loops(part)


def push(kernel: KernelOp, staging: Staging) -> None:
    """A communicator goes through the own tiles of the reads, and stores each in the buffers of all ranks."""
    read, location = staging.first, staging.first.location
    part = add_role(kernel, Role.Communicator, read)
    rank = append(part, RankOp(), location).result
    known: Known = {}
    plan = push_of(read, staging.loops)
    plan.enter(part, rank, known)
    again = staging.again
    own = plan.loops(staging.loops)
    top = part if any(map(is_task, own)) else _one_task(part, read)
    at_cell = copy_nest(top, read, [v for v in own if v not in again], known)
    plan.inside(at_cell, rank, known)
    cell = [copy_value(at_cell, staging.places[place], known) for place in staging.cells.places]
    body = copy_nest(at_cell, read, again, known)
    for tile, landing in _tiles(body, staging, known):
        indices = [copy_value(body, index, known) for index in staging.places]
        inner, peer = _peers(body, read)
        append(inner, StoreOp(tile, landing, indices, peer), location)
    zero, one = constant(0), constant(1)
    if staging.whole:
        for op in (zero, one, SignalAllOp(staging.ready, (zero.result,), one)):
            append(part, op, location)
    else:
        inner, peer = _peers(at_cell, read)
        ops, counter = counter_ops(cell)
        for op in (*ops, one, RaiseOp(staging.ready, counter, peer, one)):
            append(inner, op, location)
    close_loops(part)


def _loops(kernel: KernelOp, staging: Staging, role: Role) -> tuple[Block, Block, Known]:
    """A new part with the loops of the reads, up to where a cell is known: the part, there, and what is known."""
    part = add_role(kernel, role, staging.first)
    known: Known = {}
    top = part if any(map(is_task, staging.loops)) else _one_task(part, staging.first)
    again = staging.again
    return part, copy_nest(top, staging.first, [v for v in staging.loops if v not in again], known), known


def _one_task(block: Block, read: Read) -> Block:
    """The body of a single task, so that one CTA fetches what depends on no task."""
    one = append(block, constant(1), read.location)
    body = Block(arg_types=[IndexType()])
    append(block, TasksOp([one.result], Region(body)), read.location)
    return body


def _tiles(body: Block, staging: Staging, known: Known) -> list[tuple[SSAValue, BlockArgument]]:
    """The tiles of the reads, read anew, each with its landing buffer."""
    found: list[tuple[SSAValue, BlockArgument]] = []
    for read, landing in zip(staging.reads, staging.landings, strict=True):
        tile = copy_value(body, read.results[0], known)
        if isinstance(tile.owner, Operation):
            tile.owner.attributes.pop(REMOTE, None)
        found.append((tile, landing))
    return found


def _peers(block: Block, read: Read) -> tuple[Block, SSAValue]:
    """A loop over all ranks, from the one after this to this one: its body, and the rank."""
    zero, one, ranks = (append(block, op, read.location) for op in (constant(0), constant(1), DimOp(RANKS)))
    inner = Block(arg_types=[IndexType()])
    append(block, scf.ForOp(zero.results[0], ranks.results[0], one.results[0], [], inner), read.location)
    after = constant(1)
    step = arith.AddiOp(inner.args[0], after.result)
    peer = RingPeerOp(step.result)
    for op in (after, step, peer):
        append(inner, op, read.location)
    return inner, peer.result


def _announce_overlapping(block: Block, staging: Staging, cell: list[SSAValue]) -> None:
    """Signal all cells that a piece overlaps: the reader's blocks span parts, that of the piece follows them."""
    location, spanning = staging.first.location, staging.spanning
    assert spanning is not None
    place = next(i for i, p in enumerate(staging.cells.places) if staging.places[p] is spanning)
    ops, first, stop = overlapping(cell[place], block_type(spanning))
    one = constant(1)
    inner = Block(arg_types=[IndexType()])
    for op in (*ops, one, scf.ForOp(first, stop, one.result, [], inner)):
        append(block, op, location)
    reached = append(inner, BlockOp(inner.args[0], block_type(spanning)), location)
    _announce(inner, staging, [*cell[:place], reached.result, *cell[place + 1 :]], SignalOp)


def _announce(block: Block, staging: Staging, cell: list[SSAValue], how: type[SignalOp] | type[RaiseOp]) -> None:
    ops, counter = counter_ops(cell)
    rank, one = RankOp(), constant(1)
    for op in (*ops, rank, one, how(staging.ready, counter, rank, one)):
        append(block, op, staging.first.location)
