"""Scratch arrays and counters of a kernel, for each set of dimensions that it was launched with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pkc.codegen.artifact import ArrayParameter, Artifact, SignalParameter, TensorMaps, Waits
from pkc.diagnostics import Diagnostic
from pkc.dialect import blocks
from pkc.dialect.words import RANKS
from pkc.runtime import reports
from pkc.runtime.arrays import memory_shape
from pkc.runtime.element import ELEMENTS
from pkc.runtime.enqueue import counters, counters_along
from pkc.runtime.kernel_parameters import extents_of, in_memory
from pkc.runtime.mesh import Mesh
from pkc.runtime.offsets import ALIGNMENT

_EPOCHS = "epochs of CTAs"
"""What has memory beside arrays and signals, whose names have no blanks."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Scratch arrays and counters of a kernel for one set of dimensions: offsets in the symmetric heap.

    Counters and epochs keep their values from launch to launch, so these belong together.
    """

    offsets: dict[str, int]
    epochs: int
    restarting: tuple[int, int]
    """Offset and size, in bytes, of the counters that restart with each launch."""
    signals: tuple[tuple[int, int], ...]
    """The same of all counters."""


class KernelMemory:
    """The memory of a kernel of `grid` CTAs on a mesh, by dimensions, which have `ranks` too."""

    def __init__(self, artifact: Artifact, mesh: Mesh, grid: int) -> None:
        self._artifact, self._mesh, self._grid = artifact, mesh, grid
        self._by_dims: dict[tuple[tuple[str, int], ...], Memory] = {}
        """A kernel without memory of its own has epochs alone, the same for all."""
        waits = artifact.waits
        self._reports = waits.reports if waits is not None else ""
        self._reports_at: int | None = None
        """Where they are: of whatever dimensions, as after the first report nothing is launched any more."""
        # No epoch is that of a launch to come, and no report is there before.
        zero = {array.name for array in artifact.arrays if array.packets or array.name == self._reports}
        scratch = [array for array in artifact.arrays if array.scratch]
        self._arrays = [(array, _splits(artifact, array)) for array in scratch]
        self._signals = [signal.name for signal in artifact.signals]
        self._restarting = [signal.name for signal in artifact.signals if signal.restarts]
        zeroed = [[array.name] for array in scratch if array.name in zero and array.name != self._reports]
        zeroed += [[name] for name in (*self._signals, _EPOCHS) if name not in self._restarting]
        plain = [array for array in scratch if array.name not in zero]
        # What other ranks may write before this one has begun, each set of dimensions has for itself. All else they
        # reach between the beginning and the end of a launch of this rank, and launches come one after the other.
        self._kept = [[array.name] for array in plain if array.kept]
        self._passing = [array.name for array in plain if not array.kept]
        # Side by side, so that one call clears them.
        self._zeroed = [*zeroed, self._restarting]
        self.shared = bool(artifact.signals or scratch)
        """Whether launches have anything to do with each other."""

    def known(self, dims: Mapping[str, int]) -> Memory | None:
        """What was allocated for these dimensions."""
        return self._by_dims.get(self._key(dims))

    def allocate(self, dims: Mapping[str, int]) -> Memory:
        """Memory for these dimensions, new on all ranks. Raises `PkcError`."""
        sizes = {array.name: _bytes(array, splits, dims) for array, splits in self._arrays}
        for signal in self._artifact.signals:
            sizes[signal.name] = 4 * counters(signal, dims)
        sizes[_EPOCHS] = 4 * (self._grid + 1)  # and the number of tasks that CTAs have taken from a queue
        heap = self._mesh.heap
        offsets = _placed(heap.allocate, self._kept, sizes)
        for number, name in enumerate(self._passing):
            offsets[name] = heap.range_of(sizes[name], ("scratch", number))
        offsets |= _placed(self._mesh.zeroed, self._zeroed, sizes)
        if self._reports:
            if self._reports_at is None:
                self._reports_at = self._mesh.zeroed(sizes[self._reports])
            offsets[self._reports] = self._reports_at
        together = self._restarting
        restarting = (offsets[together[0]], sum([sizes[name] for name in together])) if together else (0, 0)
        signals = tuple([(offsets[name], sizes[name]) for name in self._signals])
        memory = Memory(offsets, offsets.pop(_EPOCHS), restarting, signals)
        self._by_dims[self._key(dims)] = memory
        return memory

    def signals(self) -> Sequence[tuple[int, int]]:
        """Offset and bytes of all counters."""
        return [place for memory in self._by_dims.values() for place in memory.signals]

    def reported(self, waits: Waits, known: Sequence[str], *, limit: float) -> Diagnostic | None:
        """What threads of all ranks that gave up waiting, after `limit` seconds, have reported; `known` are other
        facts, a line each."""
        if self._reports_at is None:
            return None
        ranks, shape = range(self._mesh.ranks), (self._grid, 2 * waits.warps, reports.WORDS)
        written = {rank: self._words(rank, self._reports_at, shape) for rank in ranks}
        stuck: list[Memory] = []
        found = reports.read(waits, written, partial(self._counter_at, stuck))
        if not found:
            return None
        absent: list[str] = []
        for memory in {memory.epochs: memory for memory in stuck}.values():
            launches = {rank: int(self._words(rank, memory.epochs, (1,))[0]) for rank in ranks}
            absent += reports.missing_launches(launches)
        return reports.diagnose(self._artifact.name, found, limit, [*absent, *known])

    def _key(self, dims: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        return tuple(dims.items()) if self.shared else ()

    def _words(self, rank: int, offset: int, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Words of the memory of any rank, as they are now: nobody need answer."""
        words, mesh = np.empty(shape, np.int32), self._mesh
        with mesh.current(mesh.local[0]):
            mesh.driver.cuMemcpyDtoH(words.ctypes.data, mesh.heap.address(rank, offset), words.nbytes)
        return words

    def _counter_at(self, stuck: list[Memory], rank: int, name: str, low: int) -> tuple[int, ...]:
        """The indices of the counter of signal `name` whose address has this low half; whose memory it is in is added
        to those that are `stuck`."""
        number = self._signals.index(name)
        for key, memory in self._by_dims.items():
            offset, size = memory.signals[number]
            place = (low - self._mesh.heap.address(rank, offset)) % 2**32
            if place < size:
                stuck.append(memory)
                return _indices(self._artifact.signals[number], place // 4, dict(key))
        return ()


def _indices(signal: SignalParameter, place: int, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The indices of the counter that is the `place`-th of a signal."""
    indices: list[int] = []
    for extent in reversed(signal.dims):
        place, index = divmod(place, counters_along(extent, dims))
        indices.append(index)
    return tuple(reversed(indices))


def _placed(
    allocate: Callable[[int], int], groups: Sequence[Sequence[str]], sizes: Mapping[str, int]
) -> dict[str, int]:
    """The offset of each name, in what is allocated for all at once; names of a group lie side by side."""
    behind: dict[str, int] = {}
    end = 0
    for group in groups:
        for name in group:
            behind[name] = end
            end += sizes[name]
        end = -(-end // ALIGNMENT) * ALIGNMENT
    first = allocate(end) if end else 0
    return {name: first + at for name, at in behind.items()}


def _splits(artifact: Artifact, array: ArrayParameter) -> set[int]:
    """Dimensions of an array whose blocks follow shards, though it is not sharded along them."""
    maps = (field for field in artifact.fields if isinstance(field, TensorMaps) and field.array == array.name)
    return {field.split for field in maps if field.split is not None} - {array.shard}


def _bytes(array: ArrayParameter, splits: set[int], dims: Mapping[str, int]) -> int:
    """The bytes on each rank; a dimension whose blocks follow shards has room for all shards at full length."""
    extents = list(in_memory(array, memory_shape(extents_of(array, dims), array.shard, dims[RANKS])))
    for split in splits:
        extents[split] = dims[RANKS] * blocks.shard_length(extents[split], dims[RANKS])
    return math.prod(extents) * ELEMENTS[array.dtype].bytes * (2 if array.packets else 1)
