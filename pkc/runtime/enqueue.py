"""Steps of copy engines as calls of the driver, with the addresses of one rank.

A kernel may fill all SMs and wait for what is enqueued beside it. So only what the copy engines and the front end of a
GPU do without SMs may be enqueued: copies between GPUs, waits for values and writes of values. The driver copies within
one GPU by a kernel, so a launch with copy engines leaves a few SMs free for that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pkc.codegen.artifact import Artifact, Extent, SignalParameter
from pkc.dialect import blocks
from pkc.dialect.blocks import Block
from pkc.dialect.words import JOINED, RANKS
from pkc.runtime.arrays import memory_shape, row_major
from pkc.runtime.element import ELEMENTS
from pkc.runtime.kernel_parameters import Values, extents_of
from pkc.runtime.steps import Box, Copy, Raise, Reset, Step, Wait

MOST_AT_ONCE = 255
"""Waits and writes in one call of the driver."""


@dataclass(frozen=True)
class Await:
    """The stream goes on when the counter at an address is at least `value`."""

    address: int
    value: int


@dataclass(frozen=True)
class Write:
    """A counter becomes `value`, after all earlier copies of the stream are visible everywhere."""

    address: int
    value: int


@dataclass(frozen=True)
class Move:
    """A copy of `rows` rows of `width` bytes; pitches are the bytes from one row to the next."""

    source: int
    target: int
    width: int
    rows: int = 1
    source_pitch: int = 0
    target_pitch: int = 0


Action: TypeAlias = Await | Write | Move


class Placer:
    """Finds arrays and counters for a rank: `values` has their addresses, and the dimensions."""

    def __init__(self, artifact: Artifact, values: Values) -> None:
        self._arrays = {array.name: array for array in artifact.arrays}
        self._signals = {signal.name: signal for signal in artifact.signals}
        self._values = values
        self._ranks = values.dims[RANKS]
        self.copied: set[str] = set()
        """The arrays between which copies were found."""

    def actions(self, steps: Sequence[Step]) -> Iterator[Action]:
        """What a stream does for some steps, in order."""
        rank = self._values.rank
        for step in steps:
            match step:
                case Wait():
                    yield Await(self._counter(step.signal, step.indices, rank), step.value)
                case Raise():
                    yield Write(self._counter(step.signal, step.indices, step.rank), step.value)
                case Reset():
                    first = self._counter(step.signal, None, rank)
                    for number in range(counters(self._signals[step.signal], self._values.dims)):
                        yield Write(first + 4 * number, 0)
                case Copy():
                    yield from self._copy(step)

    def _counter(self, name: str, indices: Sequence[int] | None, rank: int) -> int:
        """The address of a counter; of the first one of a signal without `indices`."""
        number = 0
        for extent, index in zip(self._signals[name].dims, indices or (), strict=indices is not None):
            number = number * counters_along(extent, self._values.dims) + index
        return self._values.addresses[name] + rank * self._values.heap_stride + 4 * number

    # Copies

    def _copy(self, step: Copy) -> Iterator[Move]:
        self.copied |= {step.source.array, step.target.array}
        lengths, source_strides, source = self._box(step.source)
        target_lengths, target_strides, target = self._box(step.target)
        assert lengths == target_lengths
        if 0 in lengths:
            return
        width = ELEMENTS[self._arrays[step.source.array].dtype].bytes
        outer: list[tuple[int, int, int]] = []
        for length, *strides in reversed(list(zip(lengths, source_strides, target_strides, strict=True))):
            if not outer and strides == [width, width]:
                width *= length
            elif length > 1:
                outer.insert(0, (length, strides[0], strides[1]))
        for first in self._copies(step.source, written=False):
            for second in self._copies(step.target, written=True):
                yield from _moves(source + first, target + second, width, outer)

    def _copies(self, box: Box, *, written: bool) -> list[int]:
        """Offsets in bytes from the address of `_box` to the copies that are meant: one, or one on each rank."""
        array, values = self._arrays[box.array], self._values
        if array.layout == "replicate" and written:
            # Begins with the next rank, so that not all send to one at a time.
            ranks = [(values.rank + step) % self._ranks for step in range(1, self._ranks + 1)]
            return [rank * values.heap_stride for rank in ranks]
        return [values.rank * values.heap_stride if array.layout in ("replicate", "symmetric") else 0]

    def _box(self, box: Box) -> tuple[list[int], list[int], int]:
        """The lengths of a box's axes, their strides in bytes, and its address; that at the owner if it is sharded."""
        array, values = self._arrays[box.array], self._values
        extents = extents_of(array, values.dims)
        shape = memory_shape(extents, array.shard, self._ranks)
        strides = [ELEMENTS[array.dtype].bytes * stride for stride in row_major(shape)]
        address = values.addresses[box.array]
        lengths: list[int] = []
        used: list[int] = []
        for number, (extent, stride) in enumerate(zip(extents, strides, strict=True)):
            index = box.indices.get(number, Block(0, extent))
            start = index if isinstance(index, int) else index.start
            if number == array.shard:
                owner, start = divmod(start, blocks.shard_length(extent, self._ranks))
                address += min(owner, self._ranks - 1) * values.heap_stride
            address += start * stride
            if not isinstance(index, int):
                lengths.append(index.length)
                used.append(stride)
        return lengths, used, address


def _moves(source: int, target: int, width: int, axes: Sequence[tuple[int, int, int]]) -> Iterator[Move]:
    """The copies of a box: one call moves rows with a pitch, any further axis takes a call for each position."""
    if not axes:
        yield Move(source, target, width)
        return
    *outer, (rows, source_pitch, target_pitch) = axes
    for place in itertools.product(*(range(length) for length, _, _ in outer)):
        steps = [(at * one, at * two) for at, (_, one, two) in zip(place, outer, strict=True)]
        first, second = sum(one for one, _ in steps), sum(two for _, two in steps)
        yield Move(source + first, target + second, width, rows, source_pitch, target_pitch)


# Copies side by side


def side_by_side(strands: Iterable[Sequence[Action]]) -> list[Sequence[Action]]:
    """The strands that do anything; copies of consecutive tasks are joined where they lie side by side.

    The counter writes of joined tasks come after all their copies. A task that waits for something stays as it is.
    """
    found: list[Sequence[Action]] = []
    joined = 0
    for strand in filter(None, strands):
        both = _joined(found[-1], strand) if 0 < joined < JOINED else None
        if both is None:
            found.append(strand)
            joined = 0
        else:
            found[-1] = both
        joined += 1
    return found


def _joined(first: Sequence[Action], second: Sequence[Action]) -> Sequence[Action] | None:
    if any(isinstance(action, Await) for action in (*first, *second)):
        return None
    moves = [[action for action in strand if isinstance(action, Move)] for strand in (first, second)]
    if not moves[0] or len(moves[0]) != len(moves[1]):
        return None
    copied = [_one_copy(*pair) for pair in zip(*moves, strict=True)]
    written = [action for action in (*first, *second) if isinstance(action, Write)]
    return None if None in copied else [*(move for move in copied if move is not None), *written]


def _one_copy(first: Move, second: Move) -> Move | None:
    """Both copies as one, if that is possible."""
    steps = second.source - first.source, second.target - first.target
    if first.rows == second.rows == 1:
        return replace(first, width=first.width + second.width) if steps == (first.width, first.width) else None
    alike = replace(second, source=first.source, target=first.target, rows=first.rows) == first
    below = steps == (first.rows * first.source_pitch, first.rows * first.target_pitch)
    return replace(first, rows=first.rows + second.rows) if alike and below else None


def counters(signal: SignalParameter, dims: Mapping[str, int]) -> int:
    """How many counters a signal has on each rank."""
    return math.prod(counters_along(extent, dims) for extent in signal.dims)


def counters_along(extent: Extent, dims: Mapping[str, int]) -> int:
    """How many counters there are along a dimension of a signal."""
    if not isinstance(extent, tuple):
        return dims[extent] if isinstance(extent, str) else extent
    of, size = extent
    return blocks.numbers(dims[of] if isinstance(of, str) else of, dims[RANKS], size)


# Calls


@dataclass(frozen=True)
class Call:
    """A call of the driver that enqueues; the stream comes last, or first for `cuStreamBatchMemOp`."""

    name: str
    arguments: tuple[Any, ...]

    def on(self, stream: int) -> tuple[Any, ...]:
        if self.name == "cuStreamBatchMemOp":
            return (stream, *self.arguments)
        return (*self.arguments, stream)


def calls(api: Any, actions: Iterable[Action]) -> Iterator[Call]:
    """The calls for what a stream does; consecutive waits and writes go into one call.

    A write has a memory barrier in front of it: current drivers do not leave it out.
    """
    together: list[Any] = []
    for action in actions:
        if isinstance(action, Move):
            yield from _batches(together)
            together = []
            yield _move(api, action)
        else:
            together.append(_operation(api, action))
    yield from _batches(together)


def _batches(operations: list[Any]) -> Iterator[Call]:
    for first in range(0, len(operations), MOST_AT_ONCE):
        some = operations[first : first + MOST_AT_ONCE]
        yield Call("cuStreamBatchMemOp", (len(some), some, 0))


def _operation(api: Any, action: Await | Write) -> Any:
    kinds = api.CUstreamBatchMemOpType
    made = api.CUstreamBatchMemOpParams()
    if isinstance(action, Await):
        made.operation = kinds.CU_STREAM_MEM_OP_WAIT_VALUE_32
        value, flags = made.waitValue, api.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
    else:
        made.operation = kinds.CU_STREAM_MEM_OP_WRITE_VALUE_32
        value = made.writeValue
        flags = api.CUstreamWriteValue_flags.CU_STREAM_WRITE_VALUE_DEFAULT
    value.address, value.value, value.flags = action.address, action.value, int(flags)
    return made


def _move(api: Any, move: Move) -> Call:
    if move.rows == 1:
        return Call("cuMemcpyAsync", (move.target, move.source, move.width))
    copy = api.CUDA_MEMCPY2D()
    copy.srcMemoryType = copy.dstMemoryType = api.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    copy.srcDevice, copy.srcPitch = move.source, move.source_pitch
    copy.dstDevice, copy.dstPitch = move.target, move.target_pitch
    copy.WidthInBytes, copy.Height = move.width, move.rows
    return Call("cuMemcpy2DAsync", (copy,))


def kinds(actions: Iterable[Action], rank_at: Callable[[int], int | None]) -> Iterator[Move]:
    """One copy of each shape between each two ranks; `rank_at` says whose memory an address is in."""
    seen: set[object] = set()
    for move in actions:
        if isinstance(move, Move):
            shape = (move.width, move.rows, move.source_pitch, move.target_pitch)
            kind = (*shape, rank_at(move.source), rank_at(move.target))
            if kind not in seen:
                seen.add(kind)
                yield move
