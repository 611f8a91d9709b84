"""The pass `pk-plan-fetch`: how what is fetched comes: past local shards, by many CTAs, some tiles at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue

from pkc import remarks
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import COMM_SMS, KernelOp
from pkc.dialect.tile import tile_type
from pkc.dialect.types import dtype_bytes
from pkc.location import describe
from pkc.passes.analysis.dependence import sources
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import by_launch, from_zero, iterations_of
from pkc.passes.roles.fetches import Fetch, await_before, fetches, grouped_place, is_task, loop_of, read_of, split_index
from pkc.passes.roles.remote_accesses import address, array_name, is_pushed, planned
from pkc.passes.roles.visits import begins_later, not_known, skipping_loop, visited
from pkc.targets.target import target_of


class PlanFetch(KernelPass):
    """Decide for each transfer, however many arrays and loops it has, and say why where the answer is no:

    - `local`: the local shard is read from the array itself. So the first tasks, which are those of the local shard,
      need not wait for copies;
    - `spread`: iterations of the loops that fetch tiles are shared out among CTAs. So the first tiles do not wait
      for one CTA that copies them all, and all CTAs have as much to copy;
    - `group`: of a row of tiles as many are awaited at once, in the loop that uses them, as the target says (128 KB,
      at least eight tiles). If a row were awaited as a whole, its first MMA would be idle until all of it has arrived.
      With `group` and no `spread` one CTA fetches all tiles of a group, and CTAs share out groups: of lists whose
      lengths are read from arrays, which have other numbers of tiles in each launch;
    - `visited`: where tasks skip tiles, and those of each rank others, what none of a rank visits is not fetched.

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
        if missed := _nothing(fetch):
            remarks.missed(self.name, fetch.first, missed, of_ranks=True)
            return
        if missed := _not_local(fetch):
            remarks.missed(
                self.name, fetch.first, f"the local shard of {fetch.names} is copied too: {missed}", of_ranks=True
            )
        local = not missed
        spread, alone = (0, "") if planned(fetch.read) == "copy_engine" else _spread(fetch)
        group, missed = _group(fetch, spread)
        if alone and not (group and _shares_groups(fetch, spread)):
            rest = "only the outer loops of copies" if spread else "copies"
            are = "are spread over CTAs" if spread else "are not spread over CTAs"
            remarks.missed(self.name, fetch.first, f"{rest} of {fetch.names} {are}: {alone}", of_ranks=True)
        if missed:
            how = "all at once" if fetch.again else "one by one"
            remarks.missed(self.name, fetch.first, f"tiles of {fetch.names} are awaited {how}: {missed}", of_ranks=True)
        for each in fetch.ops:
            each.decide(local=local, spread=spread, group=group)
        visited = UnitAttr() if self._is_visited(fetch) else None
        for each in fetch.ops:
            each.visited = visited

    def _is_visited(self, fetch: Fetch) -> bool:
        """Whether only tiles are fetched that a task visits."""
        loop = skipping_loop(fetch)
        missed = not_known(fetch, loop) if loop is not None else ""
        in_front = "it lies in front of what tasks need" if begins_later(fetch) else ""
        for reason in filter(None, (missed, in_front)):
            said = f"what no task of a rank visits of {fetch.names} is fetched too: {reason}"
            remarks.missed(self.name, fetch.first, said, of_ranks=True)
        return loop is not None and not missed


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
    varying = by_launch(read, address(read))
    for number, variable in enumerate(fetch.inner):
        if not from_zero(variable):
            return number, "a loop over its tiles does not go up from 0 in steps of 1"
        if variable in again and varying:
            return number, f"{varying} says how many come, so that launches would have other numbers of signals"
        follows = ring is not None and variable is ring.over and ring.ranks in fetch.inner[:number]
        if not follows and _depends(iterations_of(variable), fetch.loops):
            return number, "another index says how many iterations a loop over its tiles has"
    return len(fetch.inner), ""


def _shares_groups(fetch: Fetch, spread: int) -> bool:
    """Whether CTAs share out groups of tiles, each of which one of them announces: of lists that arrays give their
    lengths, whose counters do not get the same number of signals in each launch."""
    again = fetch.again
    return spread == 0 and len(again) == 1 and again == fetch.inner and from_zero(again[0])


def _depends(count: SSAValue, indices: list[SSAValue]) -> bool:
    return not sources([count]).isdisjoint(indices)


def _group(fetch: Fetch, spread: int) -> tuple[int, str]:
    """How many tiles are awaited at once; why not so many, but one or all of a counter."""
    again = fetch.again
    if not fetch.inner:
        return 0, ""  # a task has one tile
    if planned(fetch.read) == "copy_engine":
        return 0, f"a copy engine brings {'all tiles of a counter' if again else 'each'} in one copy"
    if spread < len(fetch.inner) and not _shares_groups(fetch, spread):
        return 0, "one CTA fetches all tiles of a counter's last loops" if spread else "one CTA fetches them"
    place = grouped_place(fetch)
    if place is None:
        return 0, "they are no list of blocks that one loop goes through"
    if not again and (varying := _visited_by_launch(fetch)):
        return 0, f"{varying} says which of them tasks visit, so that launches would have other numbers of signals"
    for op in (site[0] for site in fetch.sites):
        loop = loop_of(op.places[place])
        anchor = await_before(op, fetch.counter(op))
        if loop is None or (anchor is not loop if again else anchor.parent is not loop.body.block):
            return 0, "they are read in a loop inside of another one"
        if not from_zero(loop.body.block.args[0]):
            return 0, "they are read in a loop that does not go up from 0 in steps of 1"
    kinds, tuning = [tile_type(op.tile) for op in fetch.by_buffer], target_of(fetch.first).tuning
    size = sum(prod(kind.shape) * dtype_bytes(kind.element_type) for kind in kinds)
    return max(tuning.awaited_tiles, tuning.awaited_bytes // size), ""


def _visited_by_launch(fetch: Fetch) -> str:
    """What may decide otherwise in the next launch which tiles come."""
    loop = skipping_loop(fetch)
    needed = [] if loop is None else [visited(loop).needed]
    return by_launch(fetch.read, [*address(fetch.read), *needed])


@dataclass(frozen=True)
class FetchPlan:
    """How the tiles of one transfer come, and how many at a time."""

    place: str
    arrays: tuple[str, ...]
    by: str
    """Who fetches them: `copy engines`, `all CTAs`, `8 CTAs`, `one CTA`."""
    pushed: bool
    """Whether these are of the arrays' owner, which sends the tiles."""
    loops: int | None
    """Loops that one CTA runs, because they are not spread; nothing is said of owners and copy engines."""
    group: int
    """Tiles of an array that one counter announces; 0 for all that the loops of `again` fetch, or all of the array."""
    again: int
    """Loops over the tiles of one counter."""
    local: bool
    """Whether the local shard stays where it is."""
    visited: bool = False
    """Whether only what tasks of the rank visit is fetched."""

    def __str__(self) -> str:
        names = " and ".join(f"`{name}`" for name in self.arrays)
        by = f"sent by {self.by} of the owner" if self.pushed else f"by {self.by}"
        if self.loops is not None and self.by != "one CTA":
            by += f", each of which runs {_innermost(self.loops)}" if self.loops else ", tile by tile"
        each = " of each" if len(self.arrays) > 1 else ""
        if self.group:
            counter = f"one counter for {self.group} tile{'s' * (self.group > 1)}{each}"
        else:
            counter = f"one counter for all tiles{' of ' * bool(self.again)}{_innermost(self.again)}"
        local = "the local shard is read in place" if self.local else "the local shard is copied too"
        visited = "; only what a task visits" if self.visited else ""
        return f"{self.place}: fetch of {names}: {by}; {counter}; {local}{visited}"


def _innermost(loops: int) -> str:
    return f"the {loops} innermost loops" if loops > 1 else "the innermost loop" * loops


def explain_fetch(module: ModuleOp) -> list[FetchPlan]:
    """What the pass decided, for each transfer."""
    kernels = (op for op in module.ops if isinstance(op, KernelOp))
    return [_explain(kernel, fetch) for kernel in kernels for fetch in fetches(kernel)]


def _explain(kernel: KernelOp, fetch: Fetch) -> FetchPlan:
    sms, pushed, again = kernel.scheduled_number(COMM_SMS), is_pushed(fetch.read), len(fetch.again)
    by = f"{sms} CTAs" if sms else "all CTAs"
    if sms == 1 or not (fetch.spread or any(map(is_task, fetch.loops))):
        by = "one CTA"
    loops: int | None = len(fetch.inner) - len(fetch.spread)
    if planned(fetch.read) == "copy_engine":
        by, loops = "copy engines", None
    group = fetch.group or (0 if again or fetch.whole else 1)
    names = tuple(array_name(read_of(op).array) for op in fetch.by_buffer)
    local, visited = fetch.first.local is not None, fetch.first.visited is not None
    place = describe(fetch.first.location)
    return FetchPlan(place, names, by, pushed, None if pushed else loops, group, again, local, visited)
