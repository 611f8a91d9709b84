"""Calls that are like one that was checked, but for shapes, addresses and scalars.

That call knows the mesh and which argument is which parameter. Arrays are checked by what tells calls apart
(`pkc.runtime.arguments.fingerprints`); what does not fit is left to the checks that say why (`bind`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from pkc.codegen.artifact import ArrayParameter, Interface
from pkc.dialect.blocks import shard_length
from pkc.dialect.words import RANKS
from pkc.runtime.arguments import LONGEST, Bound, Span, lowest
from pkc.runtime.arrays import Kind
from pkc.runtime.element import ELEMENTS
from pkc.runtime.mesh import Mesh

Place: TypeAlias = tuple[str, Sequence[tuple[int, int]]]
"""Where a pointer goes: the parameter, and for each rank of this process that is told of it, its position among these
and how many bytes to add."""


class Form:
    """Calls of a kernel like one that was checked, with the fingerprints `given` of the arguments `names`.

    `settings` are dimensions that were named. They and what is neither an array nor a scalar must stay the same.
    """

    def __init__(
        self, interface: Interface, mesh: Mesh, names: Sequence[str], given: Sequence[Any], settings: Mapping[str, int]
    ) -> None:
        arrays, scalars = {array.name: array for array in interface.passed}, dict(interface.scalars)
        numbered = list(enumerate(names))
        self.names, self.settings, self.mesh = tuple(names), dict(settings), mesh
        self._base, self._count, self._dims = mesh.heap.base, len(mesh.local), (*interface.dims, RANKS)
        self._arrays = [_Like(at, arrays[name], given[at], mesh) for at, name in numbered if name in arrays]
        self._scalars = [(at, name, scalars[name]) for at, name in numbered if name in scalars]
        self._rest = [(at, given[at]) for at, name in numbered if name not in arrays and name not in scalars]
        self.places: Sequence[Place] = [place for like in self._arrays for place in like.places]
        """Of each pointer of the fingerprints."""
        first, lent = 0, list[int]()
        for like in self._arrays:
            like.number(first)
            lent += range(first, first + len(like.places)) if like.lent else ()
            first += len(like.places)
        self.lent, self._lowest = lent, lowest(mesh)
        """The pointers of tensors in place of arrays that are not private, and the least that they may be."""
        self._known: dict[str | int, int] = {RANKS: mesh.ranks, **{dim: int(size) for dim, size in settings.items()}}
        own = {like.name for like in self._arrays if like.own}
        self._heap = [array.name for array in interface.passed if array.name not in own]
        """In the order of `bind`, as processes compare what they launch, in whatever order each names its arguments."""
        self._known |= {dim: dim for like in self._arrays for dim in like.dims if isinstance(dim, int)}
        pairs = ((a, b) for b in range(len(self._arrays)) for a in range(b))
        self.apart = [(a, b) for a, b in pairs if self._arrays[a].written or self._arrays[b].written]
        """Arrays by position, of which one is written: they share no memory."""

    def too_low(self, pointers: Sequence[int]) -> bool:
        """Whether a tensor begins too low to take the place of an array."""
        return any(pointers[number] < self._lowest for number in self.lent)

    def bound(self, given: Sequence[Any], pointers: Sequence[int]) -> Bound | None:
        """The arguments with these fingerprints, whose arrays are at `pointers`; `None` if they do not fit."""
        if len(pointers) != len(self.places):
            return None
        for at, expected in self._rest:
            if given[at] != expected:
                return None
        scalars: dict[str, int | float] = {}
        for at, name, dtype in self._scalars:
            if (value := _number(given[at], dtype)) is None:
                return None
            scalars[name] = value
        # `list[Span]()` takes several times as long as `[]`.
        spans: list[list[Span]] = [[] for _ in range(self._count)]
        own: dict[str, tuple[int, ...]] = {}
        if self.lent and self.too_low(pointers):
            return None
        dims, heap = self._known.copy(), dict.fromkeys(self._heap, 0)
        for like in self._arrays:
            size = like.bytes(given[like.at], dims)
            if size is None:
                return None
            addresses: list[int] = []
            for number, rank, shift, apart in like.where:
                address = pointers[number] + shift
                addresses.append(address)
                spans[rank].append((address + apart, size))
            if like.own:
                own[like.name] = tuple(addresses)
            else:
                heap[like.name] = addresses[0] - self._base
        for taken in spans:
            for a, b in self.apart:
                (one, length), (two, other) = taken[a], taken[b]
                if one < two + other and two < one + length:
                    return None
        return Bound({dim: dims[dim] for dim in self._dims}, scalars, heap, own, spans)


class _Like:
    """An argument that is an array, or a list of them, and what others have in common with it."""

    def __init__(self, at: int, parameter: ArrayParameter, given: Any, mesh: Mesh) -> None:
        self.at, self.name, self.dims = at, parameter.name, parameter.dims
        self.written, private = parameter.written, parameter.layout == "private"
        self._size, self._ranks = ELEMENTS[parameter.dtype].bytes, mesh.ranks
        self._listed = isinstance(given, tuple) and isinstance(given[0], tuple | Kind)
        items: Sequence[Any] = self._in(given)
        self._items = [_alike(item) for item in items]
        self._shard = parameter.shard
        self._uneven = self._listed and any(type(item) is Kind and item.shard is not None for item in items)
        """Whether the memory of some rank has another shape than its array."""
        self.lent = not private and not any(alike for alike, _ in self._items)
        """Whether tensors are in its place."""
        self.own = private or self.lent
        """Whether each rank is told an address of its own."""
        self._lent_shard = self._shard if self.lent else None
        on = [rank.rank * mesh.heap.stride for rank in mesh.local]
        self._apart = [0] * len(on) if private else on
        """How far behind what the kernel is told a rank's memory is: of all but private arrays, it is told rank 0's."""
        shifts = on if private else [0] * len(on)
        if self._listed:
            local = enumerate(zip(mesh.local, items, strict=True))
            each = [[(at, rank.rank * item.heap.stride if type(item) is Kind else 0)] for at, (rank, item) in local]
        else:
            each = [list(enumerate(shifts if self._items[0][0] else [0]))]
        if self.lent:
            each = [[(at, shift - on[at]) for at, shift in ranks] for ranks in each]
        self.places: Sequence[Place] = [(self.name, ranks) for ranks in each]
        self.where: list[tuple[int, int, int, int]] = []
        """Of each rank the number of its pointer, its position, what is added, and how far behind its memory is."""

    def number(self, first: int) -> None:
        """Its pointers are those from `first` on."""
        for number, (_, each) in enumerate(self.places, first):
            self.where += [(number, rank, shift, self._apart[rank]) for rank, shift in each]

    def bytes(self, given: Any, dims: dict[str | int, int]) -> int | None:
        """The bytes of each array, if they fit; adds their dimensions to those that are known."""
        if not self._listed:
            only = _form(given, self._items[0])
            return None if only is None else self._bytes(*only, dims)
        items = cast("tuple[Any, ...]", given) if type(given) is tuple else ()
        if len(items) != len(self._items) or self._uneven:
            return None
        forms = [_form(item, like) for item, like in zip(items, self._items, strict=True)]
        first = forms[0]
        return None if first is None or forms.count(first) != len(forms) else self._bytes(*first, dims)

    def _in(self, given: Any) -> tuple[Any, ...]:
        return given if self._listed else (given,)

    def _bytes(self, shape: Sequence[int], strides: Sequence[int] | None, dims: dict[str | int, int]) -> int | None:
        names, count = self.dims, self._size
        if len(shape) != len(names):
            return None
        for axis in range(len(shape) - 1, -1, -1):
            extent = shape[axis]
            if (strides is not None and strides[axis] * self._size != count) or not 1 <= extent <= LONGEST:
                return None
            if axis == self._lent_shard:
                # Without a whole length to compare it with, it is left to the checks.
                if shard_length(dims.get(names[axis], 0), self._ranks) != extent:
                    return None
                count *= extent
                continue
            if dims.setdefault(names[axis], extent) != extent:
                return None
            count *= extent if axis != self._shard else shard_length(extent, self._ranks)
        return count


def _alike(item: Any) -> tuple[bool, tuple[Any, ...]]:
    """Whether a fingerprint is that of an array of a mesh, and what others must have in common with it."""
    if type(item) is Kind:
        return True, (item.heap, item.dtype, item.layout, item.shard, item.zigzag)
    return False, item[3:]


def _form(item: Any, like: tuple[bool, tuple[Any, ...]]) -> tuple[Sequence[int], Sequence[int] | None] | None:
    """Shape and strides of an array with this fingerprint, if all else is as it was; those of a mesh have no gaps."""
    if like[0]:
        return (item.shape, None) if type(item) is Kind and _alike(item) == like else None
    if type(item) is not tuple or item[3:] != like[1] or item[0]:
        return None
    found = cast("tuple[Any, ...]", item)
    return found[1], found[2]


def _number(given: Any, dtype: str) -> int | float | None:
    """The number with this fingerprint, if it fits a scalar."""
    if type(given) is not tuple or len(cast("tuple[Any, ...]", given)) != 2:
        return None
    kind, text = cast("tuple[type, str]", given)
    if dtype == "f32":
        return float(text) if kind is float or kind is int else None
    return int(text) if kind is int and -LONGEST - 1 <= int(text) <= LONGEST else None
