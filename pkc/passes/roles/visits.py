"""Which of the tiles that are fetched some task of this rank visits."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, SSAValue

from pkc.dialect.coordinates import FirstVisitedOp, OwnerOp, RankOp, VisitedOp
from pkc.dialect.program import TasksOp
from pkc.passes.analysis.dependence import ancestors, maker, sources
from pkc.passes.analysis.direction import Direction, direction
from pkc.passes.build import append, constant
from pkc.passes.program_slices import Known, copy_value, from_memory, iterations_of
from pkc.passes.roles.fetches import Fetch, grouped_place, in_shard, loop_of


def skipping_loop(fetch: Fetch) -> scf.ForOp | None:
    """The loop that fetches tiles of which each rank visits others, as its tasks skip what is masked there."""
    loops = [op for op in ancestors(fetch.read) if isinstance(op, scf.ForOp) and isinstance(op.ub.owner, VisitedOp)]
    found = next((loop for loop in loops if loop.body.block.args[0] in fetch.loops), None)
    by_rank = found is not None and any(isinstance(maker(value), RankOp) for value in sources([visited(found).needed]))
    return found if by_rank else None


def begins_later(fetch: Fetch) -> bool:
    """Whether tasks skip blocks in front of those that they need, all of which are fetched."""
    loops = (op for op in ancestors(fetch.read) if isinstance(op, scf.ForOp) and op.body.block.args[0] in fetch.loops)
    return any(isinstance(loop.lb.owner, FirstVisitedOp) for loop in loops)


def not_known(fetch: Fetch, loop: scf.ForOp) -> str:
    """Why it is not known which tiles a task visits; empty if it is."""
    needed, variable = visited(loop).needed, loop.body.block.args[0]
    if len(fetch.sites) > 1:
        return "they are read at several places"
    if variable in fetch.again or (fetch.group and loop_of(_grouped(fetch)) is not loop):
        return "one counter is for several of them"
    if from_memory(fetch.read, [needed]):
        return "arrays say which tasks visit them"
    if any(direction(needed, index) is Direction.UNKNOWN for index in _others(fetch, needed)):
        return "no task is known to visit all that others do"
    return "a loop computes which" if any(map(_is_carried, sources([needed]))) else ""


def is_visited(block: Block, fetch: Fetch, loop: scf.ForOp, known: Known) -> SSAValue:
    """Append to `block` whether some task of this rank visits the tile, or one before it in its group: whether that
    task does that runs most iterations."""
    needed, variable, location = visited(loop).needed, loop.body.block.args[0], fetch.read.location
    number, longest = known[variable], dict(known)
    ring = fetch.listed_ring
    if ring is not None and variable is ring.over:
        number, _, ops = in_shard(known[ring.block.result])
        for op in ops:
            append(block, op, location)
        assert ring.block.shard is not None
        longest[ring.block.shard] = next(op.result for op in ops if isinstance(op, OwnerOp))
    for index in _others(fetch, needed):
        one = append(block, constant(1), location)
        last = arith.SubiOp(copy_value(block, iterations_of(index), longest), one)
        longest[index] = append(block, last, location).result
        if direction(needed, index) is Direction.DOWN:
            longest[index] = append(block, constant(0), location).result
    if fetch.group:
        tiles = append(block, constant(fetch.group), location)
        group = append(block, arith.DivSIOp(number, tiles), location).result
        number = append(block, arith.MuliOp(group, tiles), location).result
    bound = copy_value(block, needed, longest)
    return append(block, arith.CmpiOp(number, bound, "slt"), location).result


def _grouped(fetch: Fetch) -> SSAValue:
    """The blocks some of which are a group."""
    place = grouped_place(fetch)
    assert place is not None
    return fetch.first.places[place]


def visited(loop: scf.ForOp) -> VisitedOp:
    """What says how many iterations of a loop a task runs."""
    assert isinstance(loop.ub.owner, VisitedOp)
    return loop.ub.owner


def _others(fetch: Fetch, needed: SSAValue) -> list[BlockArgument]:
    """The variables on which the number of iterations depends that do not fetch."""
    found = [value for value in sources([needed]) if isinstance(value, BlockArgument) and value not in fetch.loops]
    return [value for value in found if isinstance(maker(value), TasksOp | scf.ForOp)]


def _is_carried(value: SSAValue) -> bool:
    """Whether a loop computes a value, or a branch does."""
    first = isinstance(value, BlockArgument) and (value.index == 0 or not isinstance(maker(value), scf.ForOp))
    return bool(maker(value).regions) and not first
