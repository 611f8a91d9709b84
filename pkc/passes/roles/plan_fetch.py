"""The pass `pk-plan-fetch`: how what is fetched comes: past local shards, by many CTAs, some tiles at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from pkc import remarks
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import tile_type
from pkc.dialect.types import dtype_bytes
from pkc.passes.analysis.dependence import sources
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.fetches import Fetch, await_before, fetches, grouped_place, loop_of, split_index
from pkc.passes.roles.program_slices import from_memory, from_zero, iterations_of
from pkc.passes.roles.remote_accesses import address, is_pushed, planned

_TILES = 8
"""The fewest tiles that are awaited at once: looking at a counter takes as long as the MMAs of two of 128 x 64."""

_BYTES = _TILES * 128 * 64 * 2
"""What is awaited at once, of smaller tiles: they come as fast as larger ones, and looking takes as long."""


@dataclass(frozen=True)
class PlanFetch(KernelPass):
    """Decide for each transfer, however many arrays and loops it has, and say why where the answer is no:

    - `local`: the local shard is read from the array itself. So the first tasks, which are those of the local shard,
      need not wait for copies;
    - `spread`: iterations of the loops that fetch tiles are shared out among CTAs. So the first tiles do not wait
      for one CTA that copies them all, and all CTAs have as much to copy;
    - `group`: of a row of tiles 128 KB are awaited at once, at least eight tiles, in the loop that uses them. If a
      row were awaited as a whole, its first MMA would be idle until all of it has arrived.

    Before:

        %a = pk.fetch %0 into %A_fetched[%m, %k : ...] ready %A_ready : ...

    After:

        %a = pk.fetch %0 into %A_fetched[%m, %k : ...] ready %A_ready local spread 1 group 8 : ...
    """

    name = "pk-plan-fetch"

    def run(self, kernel: KernelOp) -> None:
        for fetch in fetches(kernel):
            self._plan(fetch)

    def _plan(self, fetch: Fetch) -> None:
        missed = _nothing(fetch)
        local, spread, group = False, 0, 0
        if missed:
            remarks.missed(self.name, fetch.first, missed)
            return
        if missed := _not_local(fetch):
            remarks.missed(self.name, fetch.first, f"the local shard of {fetch.names} is copied too: {missed}")
        local = not missed
        if planned(fetch.read) != "copy_engine":
            spread, missed = _spread(fetch)
            if missed:
                rest = "only the outer loops of copies" if spread else "copies"
                are = "are spread over CTAs" if spread else "are not spread over CTAs"
                remarks.missed(self.name, fetch.first, f"{rest} of {fetch.names} {are}: {missed}")
            group, missed = _group(fetch, spread)
            if missed:
                remarks.missed(self.name, fetch.first, f"tiles of {fetch.names} are awaited all at once: {missed}")
        for each in fetch.ops:
            each.decide(local=local, spread=spread, group=group)


def _nothing(fetch: Fetch) -> str:
    """Why nothing is to be decided."""
    if fetch.whole:
        return f"all of {fetch.names} is awaited before anything is computed, as `overlap=none` says"
    return f"the owner of {fetch.names} sends it, to all ranks alike" if is_pushed(fetch.read) else ""


def _not_local(fetch: Fetch) -> str:
    """Why the local shard cannot stay where it is."""
    index = split_index(fetch.first)
    if index is None:
        return "a table says which rows a tile has"
    if fetch.straddling is not None:
        return "its blocks reach over the boundaries between the ranks' shards"
    known = isinstance(index.owner, BlockOp) and index in fetch.counter(fetch.first)
    return "" if known else "no counter is for blocks of one rank alone"


def _spread(fetch: Fetch) -> tuple[int, str]:
    """How many loops, from outside, can be shared out; why not the next one."""
    read, again, ring = fetch.read, fetch.again, fetch.ring
    varying = from_memory(read, address(read))
    for number, variable in enumerate(fetch.inner):
        if not from_zero(variable):
            return number, "a loop over its tiles does not go up from 0 in steps of 1"
        if variable in again and varying:
            return number, "how many come is read from an array, so that launches would have other numbers of signals"
        follows = ring is not None and variable is ring.over and ring.ranks in fetch.inner[:number]
        if not follows and _depends(iterations_of(variable), fetch.loops):
            return number, "another index says how many iterations a loop over its tiles has"
    return len(fetch.inner), ""


def _depends(count: SSAValue, indices: list[SSAValue]) -> bool:
    return not sources([count]).isdisjoint(indices)


def _group(fetch: Fetch, spread: int) -> tuple[int, str]:
    """How many tiles are awaited at once; why not less than all of a counter."""
    again = fetch.again
    if not again:
        return 0, ""  # a counter is for one tile
    if spread < len(fetch.inner):
        return 0, "one CTA fetches all tiles of a counter's last loops" if spread else "one CTA fetches them"
    place = grouped_place(fetch)
    if place is None:
        return 0, "they are no list of blocks that one loop goes through"
    for op in (site[0] for site in fetch.sites):
        loop = loop_of(op.places[place])
        if loop is None or await_before(op, fetch.counter(op)) is not loop:
            return 0, "they are read in a loop inside of another one"
        if not from_zero(loop.body.block.args[0]):
            return 0, "they are read in a loop that does not go up from 0 in steps of 1"
    kinds = [tile_type(op.tile) for op in fetch.by_buffer]
    return max(_TILES, _BYTES // sum(prod(kind.shape) * dtype_bytes(kind.element_type) for kind in kinds)), ""
