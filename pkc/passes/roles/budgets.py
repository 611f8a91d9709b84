"""What a kernel takes of its GPU, against what there is: SMs, shared memory, registers, named barriers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import StringAttr

from pkc.diagnostics import Diagnostic
from pkc.dialect.access import AddToArrayOp, LoadOp, Scatter, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Role, number_on
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import COMM_SMS, FIRST_WARP, GROUP, QUEUE, REGISTERS, KernelOp, RoleOp
from pkc.dialect.roles import ChannelOp, ChannelType, ConsumeOp
from pkc.dialect.tile import AnyMmaOp, block_type, tile_type
from pkc.location import span_of
from pkc.passes import plan_errors
from pkc.passes.analysis import budget_errors as errors
from pkc.passes.analysis.clusters import channel_in_cta
from pkc.passes.analysis.dependence import maker, roles_around
from pkc.passes.analysis.live_tiles import Peak, peak
from pkc.passes.analysis.named_tiles import shape_text
from pkc.passes.analysis.row_lanes import shared_words
from pkc.passes.build import phase_of
from pkc.passes.roles.plan_warps import COMPUTE
from pkc.passes.roles.remote_accesses import array_name
from pkc.targets.target import Operands, Target, target_of


def budgets(kernel: KernelOp) -> Iterator[Diagnostic]:
    """What exceeds a budget. Of roles without planned warps nothing else is checked."""
    target, name, span = target_of(kernel), kernel.sym_name.data, span_of(kernel.location)
    arch, shared = target.arch, shared_memory(kernel)
    if shared > target.stage_memory:
        depths = {op: op.depth for op in kernel.body.block.ops if isinstance(op, ChannelOp)}
        yield plan_errors.SharedMemory(
            span, name, shared, target.stage_memory, stages_text(depths), stages_hint(kernel, depths)
        )
    roles = [role for role in kernel.roles if GROUP in role.attributes]
    yield from _sms(kernel, roles, target)
    yield from _warps(roles, target)
    needed = barriers(roles, target)
    if needed > arch.named_barriers:
        yield errors.TooManyBarriers(span, name, needed, arch.named_barriers)
    threads = 0
    for group in dict.fromkeys(map(group_of, roles)):
        total, launched = _register_file([role for role in roles if group_of(role) == group], target)
        available = target.launched_registers(launched)
        threads = max(threads, launched)
        if total > available:
            yield errors.RegisterFile(span, group, total, available)
    for role in roles:
        if role.role.data is Role.Consumer:
            yield from tiles(role, target)
            yield from _mmas(role, threads, target)


def shared_memory(kernel: KernelOp) -> int:
    """Bytes of shared memory that a CTA needs, barriers included: of the group that needs most."""
    target, channels = target_of(kernel), dict[str, dict[ChannelOp, int]]()
    for op in kernel.body.block.ops:
        if isinstance(op, ChannelOp):
            channels.setdefault(channel_group(op), {})[op] = op.depth
    taken = {group: bytes_of(depths) for group, depths in channels.items()}
    for role in kernel.roles:
        if size := between_warps(role, target):
            taken[group_of(role)] = taken.get(group_of(role), 0) + size
    taken[COMPUTE] = taken.get(COMPUTE, 0) + read_behind(kernel) + queue_of(kernel)
    return max(taken.values())


def between_warps(role: RoleOp, target: Target) -> int:
    """Bytes of shared memory through which the warps of a role reduce rows that they share."""
    return shared_words(role, target.arch.warp) * target.arch.register_bytes


def queue_of(kernel: KernelOp) -> int:
    """Bytes of shared memory that the queue takes from which a kernel's CTAs have their tasks."""
    return queue_bytes(number_on(kernel, QUEUE) or 0, target_of(kernel))


def queue_bytes(places: int, target: Target) -> int:
    """Bytes of shared memory for so many numbers of tasks, and for their barriers."""
    return places * (2 * target.arch.mbarrier_bytes + target.arch.register_bytes)


def bytes_of(depths: Mapping[ChannelOp, int]) -> int:
    """Bytes of shared memory that channels with so many stages take."""
    return Taken(depths).bytes


class Taken:
    """Shared memory that channels take while their stages become more. Those of different phases lie in the same
    memory (`pk-reuse-memory`), but for their barriers."""

    def __init__(self, depths: Mapping[ChannelOp, int]) -> None:
        self.depths: dict[ChannelOp, int] = dict.fromkeys(depths, 0)
        self._each = {channel: _of_stage(channel) for channel in depths}
        self._barriers, self._stages = 0, dict[int | None, int]()
        for channel, depth in depths.items():
            self._add(channel, depth)

    @property
    def bytes(self) -> int:
        phases = (size for phase, size in self._stages.items() if phase is not None)
        return self._stages.get(None, 0) + max(phases, default=0) + self._barriers

    def add(self, channel: ChannelOp, more: int) -> None:
        """Give a channel more stages, and what leaves in them; fewer if `more` is negative."""
        self._add(channel, more)
        guest = channel.guest
        if guest is not None and guest in self.depths:
            self._add(guest, more)

    def _add(self, channel: ChannelOp, more: int) -> None:
        phase, stage, barriers = self._each[channel]
        self.depths[channel] += more
        self._stages[phase] = self._stages.get(phase, 0) + more * stage
        self._barriers += more * barriers


def _of_stage(channel: ChannelOp) -> tuple[int | None, int, int]:
    """The phase of a channel, and the bytes of one of its stages and of the barriers of that."""
    target = target_of(channel)
    stage = target.stage_bytes(in_cta_of(channel)) if channel.host is None else 0
    return phase_of(channel), stage, 2 * target.arch.mbarrier_bytes


def in_cta_of(channel: ChannelOp) -> ChannelType:
    """What a CTA of the GPU has of the tiles of a stage."""
    return channel_in_cta(channel, channel.kind)


def stages_text(depths: Mapping[ChannelOp, int]) -> str:
    """The tiles of channels with so many stages, and the bytes that they take; those that need most first."""
    taken = {
        channel: depth * target_of(channel).stage_bytes(in_cta_of(channel))
        for channel, depth in depths.items()
        if channel.host is None
    }
    return "; ".join(
        f"{content(channel)}: {depths[channel]} stage{'s' * (depths[channel] > 1)} of"
        f" {' and '.join(map(shape_text, in_cta_of(channel).tiles))}, {size} bytes"
        for channel, size in sorted(taken.items(), key=lambda one: -one[1])
    )


def content(channel: ChannelOp) -> str:
    """What goes through a channel: where it is stored, or else from where it comes."""
    consumed = (use.operation for use in channel.result.uses if isinstance(use.operation, ConsumeOp))
    users = [use.operation for op in consumed for tile in op.tiles for use in tile.uses]
    stored = dict.fromkeys(f"`{array_name(op.array)}`" for op in users if isinstance(op, _WRITES))
    return f"what goes to {' and '.join(stored)}" if stored else channel.label.data


_WRITES = StoreOp | AddToArrayOp | Scatter


def read_behind(kernel: KernelOp) -> int:
    """Bytes of shared memory behind all stages that MMAs may read: if a left operand has fewer rows than an MMA
    reads, the MMA reads on behind it; the rows that it computes from that are in no tile."""
    target = target_of(kernel)
    if target.mma.operands is Operands.REGISTERS:
        return 0
    lefts = [tile_type(op.a) for op in kernel.walk() if isinstance(op, AnyMmaOp) and tile_type(op.a).rank]
    missing = (max(0, target.mma.rows - kind.shape[0]) * target.shared_layout(kind).width for kind in lefts)
    return max(missing, default=0)


def barriers(roles: list[RoleOp], target: Target) -> int:
    """Named barriers of a CTA: one for itself, and those of each role."""
    return 1 + sum(barriers_of(role, target.arch.warpgroup) for role in roles)


def barriers_of(role: RoleOp, size: int) -> int:
    """Named barriers of a role with warpgroups of `size` warps: one for all its warps, if there are several; one for
    each warpgroup, unless these are single warps."""
    return (warps_of(role) > 1) + warpgroups_of(role, size)


def warpgroups_of(role: RoleOp, size: int) -> int:
    """The warpgroups of a role that meet at barriers of their own: none if they are single warps."""
    return warps_of(role) // size if size > 1 else 0


def warps_of(role: RoleOp) -> int:
    """The planned warps of a role."""
    return role.warps.value.data if role.warps is not None else 1


def group_of(role: RoleOp) -> str:
    """The SMs that run a role."""
    group = role.attributes.get(GROUP)
    return group.data if isinstance(group, StringAttr) else COMPUTE


def channel_group(channel: ChannelOp) -> str:
    """The SMs that a channel is in: those of the roles that it joins."""
    return next(map(group_of, roles_around(use.operation for use in channel.result.uses)), COMPUTE)


def _sms(kernel: KernelOp, roles: list[RoleOp], target: Target) -> Iterator[Diagnostic]:
    sms = number_on(kernel, COMM_SMS) or 0
    most = target.arch.sms - any(group_of(role) == COMPUTE for role in roles)
    if sms > most:
        yield errors.NoSmsLeft(span_of(kernel.location), sms, target.arch.sms, most)


def _warps(roles: list[RoleOp], target: Target) -> Iterator[Diagnostic]:
    """Warps that two roles of a CTA have, or that a CTA does not have."""
    taken: dict[tuple[str, int], RoleOp] = {}
    most = target.arch.threads // target.arch.warp
    for role in roles:
        first = number_on(role, FIRST_WARP) or 0
        for warp in range(first, first + warps_of(role)):
            other = taken.setdefault((group_of(role), warp), role)
            if other is not role or warp >= most:
                problem = f"{other.role.data} has it too" if other is not role else f"a CTA has {most} warps"
                yield errors.NoSuchWarp(span_of(role.location), str(role.role.data), warp, problem)
                break


def _register_file(roles: list[RoleOp], target: Target) -> tuple[int, int]:
    """Registers of all warpgroups of a CTA, each with the most of its roles; how many threads these are."""
    threads = target.arch.warpgroup * target.arch.warp
    each: dict[int, int] = {}
    for role in roles:
        first = number_on(role, FIRST_WARP) or 0
        for warp in range(first, first + warps_of(role)):
            group = warp // target.arch.warpgroup
            each[group] = max(each.get(group, 0), (number_on(role, REGISTERS) or 0))
    return sum(each.values()) * threads, len(each) * threads


def tiles(role: RoleOp, target: Target) -> Iterator[errors.TooManyRegisters]:
    """Only a consumer has whole tiles in registers, accumulators and operands; other roles go chunk by chunk."""
    found = peak(role)
    threads, registers = warps_of(role) * target.arch.warp, (number_on(role, REGISTERS) or 0)
    each, reserve = -(-found.registers // threads), target.registers.reserve
    if found.op is not None and each > min(registers, target.arch.thread_registers) - reserve:
        where = (str(role.role.data), found.registers, each, threads, registers, reserve)
        hint = _what_helps(role, found, target.mma.columns)
        yield errors.TooManyRegisters(span_of(found.op.location), *where, tiles_text(found), hint)


def _what_helps(role: RoleOp, found: Peak, columns: int) -> str:
    """What an author can do: no size of blocks makes rows shorter that are a whole dimension."""
    kind = tile_type(max(found.tiles, key=lambda tile: tile[1])[0])
    length, kernel = kind.shape[-1], role.parent_op()
    assert isinstance(kernel, KernelOp)
    if length < columns // 2 or not _is_whole(kernel, length):
        return "use smaller blocks"
    if kind.rank > 1:
        part = min(length // 2, columns)
        return (
            f"use smaller blocks; or give each task a part of the rows of {length}:"
            f" `tasks(..., blocks({length}, {part}))`, where what all parts need is computed for each"
        )
    return _of_whole_rows(kernel, length)


def stages_hint(kernel: KernelOp, depths: Mapping[ChannelOp, int]) -> str:
    """What an author can do about too many bytes in shared memory, of channels with so many stages."""
    channels = (op for op in kernel.body.block.ops if isinstance(op, ChannelOp) and op.host is None)
    tiles = [tile for channel in channels for tile in in_cta_of(channel).tiles if tile.rank]
    largest = max(tiles, key=lambda tile: prod(tile.shape), default=None)
    if largest is not None and largest.rank == 1 and _is_whole(kernel, largest.shape[0]):
        return _of_whole_rows(kernel, largest.shape[0])
    fewer = any(depth > 1 for channel, depth in depths.items() if channel.host is None)
    return "use smaller blocks, or fewer `stages`" if fewer else "use smaller blocks"


def _is_whole(kernel: KernelOp, length: int) -> bool:
    """Whether blocks of so many positions are whole dimensions."""
    blocks = (block_type(op.result) for op in kernel.walk() if isinstance(op, BlockOp))
    return any(block.of == block.extent == length for block in blocks)


def _of_whole_rows(kernel: KernelOp, length: int) -> str:
    whole = f"rows of {length} are as long as their dimension, which no size of blocks changes"
    if sums := sorted(_sums(kernel)):
        return f"{whole}; add up {_listed(sums)} in `tasks` of blocks of both dimensions, and let rows be `tasks(M)`"
    if in_place := sorted(_in_place(kernel, length)):
        return f"{whole}; they could be in pieces if they were stored to another array than {_listed(in_place)}"
    return whole


def _sums(kernel: KernelOp) -> Iterator[str]:
    """The sums over ranks and tasks that a task contributes a row to: what passes add for them is named after them."""
    names = map(kernel.argument_name, kernel.body.block.args)
    yield from {name.partition(".")[0] for name in names if name.endswith((".shares", ".slots"))}


def _in_place(kernel: KernelOp, length: int) -> Iterator[str]:
    """What is loaded and stored, of arrays with rows of a length."""
    accesses = [op for op in kernel.walk() if isinstance(op, LoadOp | StoreOp)]
    rows = [op for op in accesses if array_type(op.array).dimensions[-1] == length]
    loaded = {op.array for op in rows if isinstance(op, LoadOp)}
    stored = {op.array for op in rows if isinstance(op, StoreOp)}
    yield from (name for name in map(array_name, loaded & stored) if "." not in name)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def tiles_text(found: Peak) -> str:
    """The tiles of a peak, those that need most registers first."""
    lines = ((span_of(maker(value).location).line, tile_type(value), taken) for value, taken in found.tiles)
    each = [f"{shape_text(kind)} of line {line}: {taken} registers" for line, kind, taken in lines if taken]
    more = [f"{len(each) - _LISTED} more"] if len(each) > _LISTED else []
    return ", ".join([*each[:_LISTED], *more])


_LISTED = 6
"""So many tiles are named."""


def _mmas(role: RoleOp, threads: int, target: Target) -> Iterator[Diagnostic]:
    """An MMA that no warpgroup of a CTA of so many threads can carry out."""
    available = target.launched_registers(threads) // threads
    mmas = [op for op in role.walk() if isinstance(op, AnyMmaOp)]
    widest = max(mmas, key=_columns, default=None)
    if widest is None:
        return
    mma, arch = target.mma, target.arch
    columns = min(_columns(widest), mma.columns)
    needed = columns * mma.rows // (arch.warpgroup * arch.warp) + mma.spare
    if needed > available:
        yield errors.TooWideMma(span_of(widest.location), columns, needed, threads, available)


def _columns(op: AnyMmaOp) -> int:
    return tile_type(op.result).shape[-1]
