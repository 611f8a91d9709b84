"""Arrays in the symmetric heap, and views of them in the memory of one rank."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from pkc.diagnostics import PkcError
from pkc.dialect.blocks import shard_bounds, shard_length, zigzag_halves
from pkc.location import NOWHERE
from pkc.runtime.element import ELEMENTS
from pkc.runtime.errors import FreedArray, OtherRank

if TYPE_CHECKING:
    from pkc.runtime.heap import Heap
    from pkc.runtime.mesh import Mesh

Where: TypeAlias = tuple[slice, ...]
ArrayLayout: TypeAlias = Literal["private", "shard", "replicate", "symmetric"]


@dataclass(frozen=True)
class View:
    """Elements in the memory of one GPU: strides in elements.

    Libraries that know `__cuda_array_interface__` take it without a copy, such as `torch.as_tensor`; it shows bf16
    and 8-bit floats as integers of their size (`pkc.runtime.torch.tensor` shows them as they are).
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        size = ELEMENTS[self.dtype].bytes
        return {
            "shape": self.shape,
            "typestr": ELEMENTS[self.dtype].typestr,
            "data": (self.address if math.prod(self.shape) else 0, False),
            "strides": tuple(size * stride for stride in self.strides),
            "version": 3,
        }


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Kind:
    """What arrays of a mesh have in common, but for their address; there is one of each as long as it is in use."""

    heap: Heap
    shape: tuple[int, ...]
    dtype: str
    layout: ArrayLayout
    shard: int | None
    zigzag: bool
    trims: int
    """How often the heap had shrunk before: other processes have to map this memory (`Heap.trims_before`)."""


class Array:
    """An array over all ranks of a mesh; `mesh.empty` makes it.

    `shape` is that of the whole array. With layout `shard`, rank r has shard r of dimension `shard`: shards are
    ceil(extent / ranks) long, the last ones may be shorter or empty. With any other layout each rank has all of it.
    With `zigzag` a shard has two ranges of positions, one after the other (docs/language.md, section 3).
    """

    def __init__(
        self,
        mesh: Mesh,
        shape: tuple[int, ...],
        dtype: str,
        layout: ArrayLayout,
        shard: int | None,
        *,
        zigzag: bool = False,
        offset: int | None = None,
    ) -> None:
        self.mesh, self.heap = mesh, mesh.heap
        self.shape, self.dtype, self.layout, self.shard, self.zigzag = shape, dtype, layout, shard, zigzag
        self.bytes = math.prod(self.memory_shape) * ELEMENTS[dtype].bytes
        """How much memory it has on each rank."""
        self.offset = self.heap.allocate(self.bytes) if offset is None else offset
        """Its offset in the symmetric heap; new memory unless it is given."""
        self.address = self.heap.address(0, self.offset)
        """Its address on rank 0."""
        about = shape, dtype, layout, shard, zigzag, self.heap.trims_before(self.offset)
        self.kind = mesh.kinds.get(about) or mesh.kinds.setdefault(about, Kind(self.heap, *about))
        self.freed = False

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """The shape that each rank has memory for: that of the longest shard."""
        return memory_shape(self.shape, self.shard, self.heap.ranks)

    def local(self, rank: int) -> View:
        """The elements of the array that are on a rank of this process. Raises `PkcError`."""
        self.check()
        if rank not in self.heap.devices:
            raise PkcError(OtherRank(NOWHERE, rank, ", ".join(map(str, self.heap.devices))))
        shape = list(self.shape)
        if self.shard is not None:
            first, last = shard_bounds(self.shape[self.shard], self.heap.ranks, rank)
            shape[self.shard] = last - first
        address, device = self.heap.address(rank, self.offset), self.heap.devices[rank]
        return View(address, tuple(shape), row_major(self.memory_shape), self.dtype, device)

    def tensor(self, rank: int | None = None) -> Any:
        """`local(rank)` as a torch tensor, without a copy; by default of the first rank of this process."""
        from pkc.runtime.torch import tensor

        return tensor(self.local(self.mesh.local[0].rank if rank is None else rank))

    def scatter(self, whole: Any) -> None:
        """Copy the elements that the ranks of this process have from a torch tensor of the whole array, on any device.

        On torch's current streams, as launches are.
        """
        for rank in self.mesh.local:
            mine = self.tensor(rank.rank)
            for there, here in self.ranges(rank.rank):
                mine[here].copy_(whole[there])

    def gather(self, shards: Sequence[Any] | None = None) -> Any:
        """The whole array as a new torch tensor, on the GPU of the first of `shards`.

        `shards` has what `tensor(rank)` gives on each rank, in order. By default all ranks are of this process; with
        one process for each GPU, `torch.distributed.all_gather` gives such a list. Raises `PkcError`.
        """
        given = [self.tensor(rank) for rank in range(self.heap.ranks)] if shards is None else shards
        whole = given[0].new_empty(self.shape)
        for rank, mine in enumerate(given):
            for there, here in self.ranges(rank):
                whole[there].copy_(mine[here])
        return whole

    def ranges(self, rank: int) -> list[tuple[Where, Where]]:
        """The elements that are on a rank, as slices of the whole array and of the rank's tensor."""
        every = (slice(None),) * len(self.shape)
        if self.shard is None:
            return [(every, every)]
        before, extent, ranks = every[: self.shard], self.shape[self.shard], self.heap.ranks
        first, last = shard_bounds(extent, ranks, rank)
        found: list[tuple[Where, Where]] = []
        at = 0
        for start, length in zigzag_halves(extent, ranks, rank) if self.zigzag else [(first, last - first)]:
            found.append(((*before, slice(start, start + length)), (*before, slice(at, at + length))))
            at += length
        return found

    def free(self) -> None:
        """Free the memory; every rank must do so, in the same order. No kernel may still use it. Raises `PkcError`."""
        self.check()
        self.freed = True
        self.heap.free(self.offset)

    def check(self) -> None:
        """Raises `PkcError` if the array has no memory any more."""
        self.mesh.check()
        if self.freed:
            shape = f"[{', '.join(map(str, self.shape))}]"
            raise PkcError(FreedArray(NOWHERE, f"array of {self.dtype}{shape}"))


def problem_of(dtype: str, shape: tuple[object, ...], layout: str, shard: int | None) -> str:
    """Why there is no such array; empty if there is."""
    if dtype not in ELEMENTS:
        return f"`{dtype}` is none of {', '.join(ELEMENTS)}"
    if not all(isinstance(extent, numbers.Integral) for extent in shape):
        return f"shape {list(shape)} is not made of integers"
    if not shape or min(cast("tuple[int, ...]", shape)) < 1:
        return f"shape {list(shape)} has no elements"
    if layout not in get_args(ArrayLayout):
        return f"layout `{layout}` is none of {', '.join(get_args(ArrayLayout))}"
    if (shard is not None) != (layout == "shard"):
        return "layout `shard`, and no other, needs the dimension that `shard` says"
    if shard is not None and not 0 <= shard < len(shape):
        return f"there is no dimension {shard} of {len(shape)}"
    return ""


def memory_shape(shape: tuple[int, ...], shard: int | None, ranks: int) -> tuple[int, ...]:
    """The shape of the memory that each rank has for an array of this shape."""
    if shard is None:
        return shape
    return (*shape[:shard], shard_length(shape[shard], ranks), *shape[shard + 1 :])


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of an array without gaps, outermost first."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)
