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
from pkc.passes.roles.pushes import Push


def skipping_loop(fetch: Fetch) -> scf.ForOp | None:
    """The loop that fetches tiles of which each rank visits others, as its tasks skip what is masked there."""
    loops = [op for op in ancestors(fetch.read) if isinstance(op, scf.ForOp) and isinstance(op.ub.owner, VisitedOp)]
    found = next((loop for loop in loops if loop.body.block.args[0] in fetch.loops), None)
    by_rank = found is not None and any(isinstance(maker(value), RankOp) for value in sources([visited(found).needed]))
    return found if by_rank else None


def begins_later(fetch: Fetch) -> bool:
    """Whether tasks skip blocks in front of those that they need, all of which are fetched."""
    loops = [op for op in ancestors(fetch.read) if isinstance(op, scf.ForOp) and op.body.block.args[0] in fetch.loops]
    later = [loop for loop in loops if isinstance(loop.lb.owner, FirstVisitedOp)]
    return any(loop is not skipping_loop(fetch) or first_needed(fetch, loop) is None for loop in later)


def first_needed(fetch: Fetch, loop: scf.ForOp) -> SSAValue | None:
    """The first iteration of a loop that its task needs, if it is known of all tasks which needs the earliest one."""
    begins = loop.lb.owner
    if not isinstance(begins, FirstVisitedOp) or _why_unknown(fetch, begins.needed):
        return None
    return begins.needed


def not_known(fetch: Fetch, loop: scf.ForOp) -> str:
    """Why it is not known which tiles a task visits; empty if it is."""
    needed, variable = visited(loop).needed, loop.body.block.args[0]
    if len(fetch.sites) > 1:
        return "they are read at several places"
    if variable in fetch.again or (fetch.group and loop_of(_grouped(fetch)) is not loop):
        return "one counter is for several of them"
    return _why_unknown(fetch, needed)


def _why_unknown(fetch: Fetch, needed: SSAValue) -> str:
    """Why it is not known which of all tasks needs the most of a loop's iterations, or the earliest."""
    if from_memory(fetch.read, [needed]):
        return "arrays say which tasks visit them"
    if any(direction(needed, index) is Direction.UNKNOWN for index in _others(fetch, needed)):
        return "no task is known to visit all that others do"
    return "a loop computes which" if any(map(_is_carried, sources([needed]))) else ""


def is_visited(block: Block, fetch: Fetch, loop: scf.ForOp, known: Known) -> SSAValue:
    """Append to `block` whether some task of this rank visits the tile, or another one of its group: whether the task
    does that runs most iterations, and the one that begins with the earliest."""
    variable, location, own = loop.body.block.args[0], fetch.read.location, dict(known)
    ring = fetch.listed_ring
    if ring is not None and variable is not ring.over:
        ring = None
    number, inside = _place(block, fetch, variable, known, ring)
    if ring is not None:
        assert ring.block.shard is not None
        own[ring.block.shard] = append(block, OwnerOp(known[ring.block.result]), location).result
    if fetch.group:
        tiles = append(block, constant(fetch.group), location)
        rest = append(block, arith.RemSIOp(inside, tiles.result), location)
        number = append(block, arith.SubiOp(number, rest.result), location).result
    bound = _extreme(block, fetch, visited(loop).needed, own, Direction.UP)
    found = append(block, arith.CmpiOp(number, bound, "slt"), location).result
    begins = first_needed(fetch, loop)
    if begins is None:
        return found
    first = _extreme(block, fetch, begins, own, Direction.DOWN)
    one = append(block, constant(max(fetch.group, 1)), location)
    behind = append(block, arith.AddiOp(number, one.result), location).result
    later = append(block, arith.CmpiOp(behind, first, "sgt"), location).result
    return append(block, arith.AndIOp(found, later), location).result


def _place(
    block: Block, fetch: Fetch, variable: SSAValue, known: Known, ring: Push | None
) -> tuple[SSAValue, SSAValue]:
    """Append to `block` the number of the tile in the loop that skips others, and that by which it is in its group;
    that loop may be the one of a `ring`."""
    index = None if ring is None else ring.block.result
    if index is None and fetch.group and not fetch.again and grouped_place(fetch) is not None:
        index = _grouped(fetch)  # of one shard, though the loop goes through all
    if index is None:
        return known[variable], known[variable]
    inside, _, ops = in_shard(copy_value(block, index, known))
    for op in ops:
        append(block, op, fetch.read.location)
    return (known[variable] if ring is None else inside), inside


def _extreme(block: Block, fetch: Fetch, number: SSAValue, known: Known, way: Direction) -> SSAValue:
    """Append to `block` the greatest that a number is in any task, or with `way` down the least."""
    found, location = dict(known), fetch.read.location
    for index in _others(fetch, number):
        if direction(number, index) is not way:
            found[index] = append(block, constant(0), location).result
            continue
        one = append(block, constant(1), location)
        last = arith.SubiOp(copy_value(block, iterations_of(index), found), one)
        found[index] = append(block, last, location).result
    return copy_value(block, number, found)


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
