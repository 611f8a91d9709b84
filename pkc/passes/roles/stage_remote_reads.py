"""The pass `pk-stage-remote-reads`: operands of other ranks that are fetched ahead get receive buffers and counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import BlockArgument, SSAValue

from pkc import remarks
from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp
from pkc.dialect.fetch import FetchOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import Layout, PGLType
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.dependence import enclosing_tasks, role_around, same_value, same_values
from pkc.passes.build import add_parameter
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import from_zero, iterations_of, variables
from pkc.passes.roles.fetches import buffer_of, can_fetch, groups_of
from pkc.passes.roles.remote_accesses import Read, address, array_name, is_pushed, planned, remote_reads, shard_of
from pkc.passes.roles.stage_rows import is_whole_list

_STAGED = ("inter_sm", "none", "copy_engine")


class StageRemoteReads(KernelPass):
    """Let each remote operand that is fetched ahead go through a receive buffer: it becomes a `pk.fetch`.

    Counters: with `inter_sm` and `copy_engine` there is one for the tiles that agree in task indices and in the sharded
    dimension, with `none` one for all. Operands that are read side by side at the same place, as K and V of attention,
    or Q and what belongs to its rows, share a counter; the same tiles of one array, read in several loops of a task,
    share the receive buffer too, and are fetched once.

    Before:

        %a = pk.load %A[%m, %k : ...] {remote = {overlap = "inter_sm", ...}} : !pk.pgl<[M, K], bf16, shard 0> -> ...

    After:

        %0 = pk.load %A[%m, %k : ...] {remote = {overlap = "inter_sm", ...}} : !pk.pgl<[M, K], bf16, shard 0> -> ...
        %a = pk.fetch %0 into %A_fetched[%m, %k : ...] ready %A_ready : !pk.private<[M, K], bf16>,
          !pk.signal<[M by 128]>, !pk.tile<128x64xbf16> -> !pk.tile<128x64xbf16>
    """

    name = "pk-stage-remote-reads"

    def run(self, kernel: KernelOp) -> None:
        reads = [op for op in remote_reads(kernel) if planned(op) in _STAGED and role_around(op) is None]
        for read in reads:
            if not can_fetch(read, whole=planned(read) == "none"):
                raise PkcError(errors.CannotStage(span_of(read.location), array_name(read.array)))
        together = _together(reads)
        for group in together:
            _fetch(kernel, group)
        for read in _fetched_again(together):
            reason = f"`{array_name(read.array)}` is fetched once more: its tiles here are others, or for another phase"
            remarks.missed(self.name, read, reason, of_ranks=True)


def _together(reads: Sequence[Read]) -> list[list[Read]]:
    """Reads that share a counter."""
    groups: list[list[Read]] = []
    for read in reads:
        group = next((group for group in groups if _beside(group[0], read) or _has(group, read)), None)
        groups.append([read]) if group is None else group.append(read)
    return groups


def _beside(one: Read, other: Read) -> bool:
    """Whether two reads stand side by side, at the same place of arrays alike."""
    if not isinstance(one, LoadOp) or not isinstance(other, LoadOp) or one.array is other.array:
        return False
    same_place = one.parent is other.parent and _same_up_to_whole(one, other)
    return same_place and shard_of(one.array) == shard_of(other.array) and planned(one) == planned(other)


def _same_up_to_whole(one: LoadOp, other: LoadOp) -> bool:
    """Whether two loads have the same indices, or one has more, which take whole dimensions."""
    few, many = sorted((tuple(one.indices), tuple(other.indices)), key=len)
    more = many[len(few) :]
    return many[: len(few)] == few and all(map(is_whole_list, more)) and not variables(one, more)


def _has(group: Sequence[Read], read: Read) -> bool:
    """Whether a group fetches the tiles of a read already."""
    return any(one.array is read.array and _same_tiles(one, read) for one in group)


def _same_tiles(one: Read, other: Read) -> bool:
    """Whether two reads of an array go through the same tiles, whatever their loops, in the same tasks."""
    if not isinstance(one, LoadOp) or not isinstance(other, LoadOp) or planned(one) != planned(other):
        return False
    if enclosing_tasks(one)[-1:] != enclosing_tasks(other)[-1:]:
        return False  # another phase, before which the array may be written
    left, right = variables(one, one.indices), variables(other, other.indices)
    known: dict[SSAValue, SSAValue] = {}
    for a, b in zip(left, right, strict=False):
        alike = from_zero(a) and from_zero(b) and same_value(iterations_of(a), iterations_of(b), known)
        if a is not b and not alike:
            return False
        known[a] = b
    return len(left) == len(right) and same_values(one.indices, other.indices, known)


def _fetched_again(groups: Sequence[Sequence[Read]]) -> Iterator[Read]:
    """Reads of arrays that an earlier group fetches too."""
    seen: set[SSAValue] = set()
    for group in groups:
        yield from (read for read in group if read.array in seen)
        seen |= {read.array for read in group}


def _fetch(kernel: KernelOp, reads: Sequence[Read]) -> None:
    """A buffer for each array, counters for all, and a `pk.fetch` behind each read."""
    first = reads[0]
    buffers: dict[SSAValue, BlockArgument] = {}
    for read in reads:
        if read.array in buffers:
            continue
        kind, _ = buffer_of(read)
        if is_pushed(read):
            kind = PGLType(kind.dimensions, kind.element_type, Layout.Symmetric)
        buffers[read.array] = add_parameter(kernel, f"{array_name(read.array)}.fetched", kind, read.location)
    tile_groups = groups_of(first, buffer_of(first)[1], variables(first, address(first)))
    ready = add_parameter(kernel, f"{'_'.join(map(array_name, buffers))}.ready", tile_groups.type, first.location)
    for read in reads:
        tile = read.results[0]
        fetched = FetchOp(tile, buffers[read.array], buffer_of(read)[1], ready)
        fetched.location = read.location
        fetched.result.name_hint = tile.name_hint
        tile.replace_uses_with_if(fetched.result, lambda use, fetch=fetched: use.operation is not fetch)
        block = read.parent
        assert block is not None
        block.insert_op_after(fetched, read)
