"""The arguments of a kernel, checked before anything is launched."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from pkc.codegen.artifact import ArrayParameter, Interface
from pkc.diagnostics import PkcError, listing
from pkc.dialect.blocks import shard_length
from pkc.dialect.words import RANKS
from pkc.location import NOWHERE
from pkc.runtime import argument_errors as errors
from pkc.runtime.arrays import Array, View, row_major
from pkc.runtime.element import ELEMENTS, element_name
from pkc.runtime.mesh import Mesh
from pkc.runtime.rank import Rank

LONGEST = 2**31 - 1
"""The largest dimension."""

ALIGNMENT = 16
"""Addresses of tensors are multiples of so many bytes."""


Span: TypeAlias = tuple[int, int]
"""The memory of an argument on a rank: its address, and its bytes."""


@dataclass(slots=True)
class Bound:
    """Arguments that fit: dimensions by name (with `ranks`), scalars, and addresses by array.

    `heap` has offsets in the symmetric heap, `own` for each rank of this process the address that its kernel is told:
    of a private array its own, of a tensor in place of another array where it would begin on rank 0.
    """

    dims: dict[str, int]
    scalars: dict[str, int | float]
    heap: dict[str, int]
    own: dict[str, tuple[int, ...]]
    spans: Sequence[Sequence[Span]] = ()
    """The memory of the arrays in the order of the arguments, for each rank of this process."""

    def describe(self, reached: Collection[str]) -> str:
        """What must be equal on all ranks; of arrays the places of those that other ranks reach."""
        places = (f"`{name}` at {offset:#x}" for name, offset in self.heap.items() if name in reached)
        return ", ".join([*self.sizes(), *places])

    def sizes(self) -> list[str]:
        """The dimensions as a caller says them."""
        return [f"{dim}={value}" for dim, value in self.dims.items() if dim != RANKS]


def fingerprints(values: Iterable[Any], pointers: list[int]) -> list[object]:
    """Keys that differ for arguments that need another plan; as little as possible, as they are made at each call.

    Tensors, views and arrays of a mesh that differ in their address alone share a plan: it is added to `pointers`, that
    of an array on rank 0.
    """
    found: list[object] = []
    for value in values:
        try:
            pointer = value.data_ptr()
        except AttributeError:
            found.append(_fingerprint(value, pointers))
            continue
        pointers.append(pointer)
        found.append((pointer % ALIGNMENT, value.shape, value.stride(), value.dtype, value.device))
    return found


def _fingerprint(value: Any, pointers: list[int]) -> object:
    """That of an argument that is no tensor."""
    if isinstance(value, Array):
        if value.freed:
            return id(value), "freed"
        pointers.append(value.address)
        return value.kind
    if isinstance(value, numbers.Number):
        # 1, True and 1.0 are equal, and so are both zeros.
        return type(value), str(value)
    if isinstance(value, list | tuple):
        return tuple(fingerprints(cast("Sequence[Any]", value), pointers))
    if isinstance(value, View):
        pointers.append(value.address)
        return value.address % ALIGNMENT, value.shape, value.strides, value.dtype, value.device
    # Anything else is refused, and so never looked up again.
    return id(value)


def lowest(mesh: Mesh) -> int:
    """The lowest address of a tensor in place of an array, on every rank: on rank 0 it would not begin below 0."""
    return (mesh.ranks - 1) * mesh.heap.stride


def takes_tensors(parameter: ArrayParameter, value: Any) -> bool:
    """Whether what is passed for an array that is not private is a tensor, or one for each rank of this process."""
    return parameter.layout != "private" and parameter.local and not isinstance(value, Array)


def bind(interface: Interface, mesh: Mesh, arguments: Mapping[str, Any], settings: Mapping[str, int]) -> Bound:
    """Check the arguments of a launch by name, and the settings of dimensions. Raises `PkcError`."""
    return _Binder(interface, mesh).bind(arguments, settings)


def reached(interface: Interface, parameter: ArrayParameter) -> errors.NotSymmetric:
    """Why an array cannot be a tensor."""
    return _not_symmetric(interface, parameter, "is reached by other ranks: it must be an array of the mesh")


def _not_symmetric(interface: Interface, parameter: ArrayParameter, problem: str) -> errors.NotSymmetric:
    shape = f"({', '.join(map(str, parameter.dims))}{',' * (len(parameter.dims) == 1)})"
    shard = "" if parameter.shard is None else f", {parameter.shard}{', zigzag=True' * parameter.zigzag}"
    wanted = (shape, parameter.dtype, parameter.layout, shard)
    return errors.NotSymmetric(NOWHERE, interface.name, parameter.name, problem, *wanted)


class _Binder:
    def __init__(self, interface: Interface, mesh: Mesh) -> None:
        self._interface, self._mesh, self._kernel = interface, mesh, interface.name
        self._found: dict[str, tuple[int, str, int]] = {}
        """The dimensions so far, with the array that shows each, empty if it is set, and the rank."""
        self._taken: dict[int, dict[ArrayParameter, Span]] = {rank.rank: {} for rank in mesh.local}
        """By rank, the memory of the arguments so far."""

    def bind(self, arguments: Mapping[str, Any], settings: Mapping[str, int]) -> Bound:
        self._check_names(self._interface.names, arguments)
        for dim, value in settings.items():
            self._set(dim, value, "", 0)
        heap: dict[str, int] = {}
        own: dict[str, tuple[int, ...]] = {}
        by_tensors = {each.name for each in self._interface.passed if takes_tensors(each, arguments[each.name])}
        # A tensor shows its shard alone: other arguments may tell how long the whole is.
        for parameter in sorted(self._interface.passed, key=lambda each: each.name in by_tensors):
            value = arguments[parameter.name]
            if parameter.layout == "private":
                views = list(self._private(parameter, value))
                own[parameter.name] = tuple(view.address for view in views)
            elif parameter.name in by_tensors:
                views = list(self._shards(parameter, value))
                on = zip(self._mesh.local, views, strict=True)
                own[parameter.name] = tuple(self._told(parameter, view, rank) for rank, view in on)
            else:
                array = self._symmetric(parameter, value)
                heap[parameter.name] = array.offset
                views = [array.local(rank.rank) for rank in self._mesh.local]
            self._check_apart(parameter, views)
        scalar_values = {name: self._scalar(name, arguments[name], dtype) for name, dtype in self._interface.scalars}
        spans = [
            [found for name in arguments for parameter, found in taken.items() if parameter.name == name]
            for taken in self._taken.values()
        ]
        return Bound(self._dims(), scalar_values, heap, own, spans)

    def _check_apart(self, parameter: ArrayParameter, views: Sequence[View]) -> None:
        """Refuse memory that another argument has too, if the kernel writes one of them."""
        for rank, view in zip(self._mesh.local, views, strict=True):
            first, size = view.address, math.prod(view.shape) * ELEMENTS[parameter.dtype].bytes
            for other, (start, length) in self._taken[rank.rank].items():
                written = [each.name for each in (parameter, other) if each.written]
                if written and first < start + length and start < first + size:
                    names = (other.name, parameter.name, rank.rank, written[0])
                    raise PkcError(errors.OverlappingArrays(NOWHERE, self._kernel, *names))
            self._taken[rank.rank][parameter] = first, size

    def _check_names(self, expected: Sequence[str], arguments: Mapping[str, Any]) -> None:
        if len(arguments) == len(expected) and all(name in arguments for name in expected):
            return
        missing = [name for name in expected if name not in arguments]
        extra = [name for name in arguments if name not in expected]
        found = f"{listing(missing)} missing" if missing else f"there is no {listing(extra)}"
        raise PkcError(errors.Arguments(NOWHERE, self._kernel, listing(expected) or "nothing", found))

    # Arrays

    def _symmetric(self, parameter: ArrayParameter, value: Any) -> Array:
        if not isinstance(value, Array):
            raise PkcError(reached(self._interface, parameter))
        value.check()
        if value.heap is not self._mesh.heap:
            raise self._not_symmetric(parameter, "is an array of another mesh")
        if (value.layout, value.shard, value.zigzag) != (parameter.layout, parameter.shard, parameter.zigzag):
            raise self._not_symmetric(parameter, f"has layout {_layout(value)}")
        self._check_type(parameter, value.dtype)
        self._shape(parameter, value.shape, self._mesh.local[0])
        return value

    def _not_symmetric(self, parameter: ArrayParameter, problem: str) -> PkcError:
        return PkcError(_not_symmetric(self._interface, parameter, problem))

    def _private(self, parameter: ArrayParameter, value: Any) -> Iterator[View]:
        ranks = self._mesh.local
        for rank, item in zip(ranks, self._items(parameter, value), strict=True):
            view = item.local(rank.rank) if isinstance(item, Array) else _view(item)
            if view is None:
                found = f"an argument of type {type(item).__name__}"
                raise PkcError(errors.NotATensor(NOWHERE, self._kernel, parameter.name, found))
            self._check_type(parameter, view.dtype)
            self._shape(parameter, view.shape, rank)
            self._check_memory(parameter, view, rank)
            yield view

    def _shards(self, parameter: ArrayParameter, value: Any) -> Iterator[View]:
        """The memory of an array that no other rank reaches: a tensor of the longest shard's shape on each rank."""
        for rank, item in zip(self._mesh.local, self._items(parameter, value), strict=True):
            view = _view(item)
            if view is None:
                raise self._not_symmetric(parameter, "is neither an array of the mesh nor a tensor")
            self._check_type(parameter, view.dtype)
            self._check_shard(parameter, view, rank)
            self._check_memory(parameter, view, rank)
            yield view

    def _told(self, parameter: ArrayParameter, view: View, rank: Rank) -> int:
        """Where an array would begin on rank 0 that begins at a tensor on another rank."""
        if view.address < lowest(self._mesh):
            place = f"begins at {view.address:#x} on rank {rank.rank}"
            raise self._not_symmetric(
                parameter, f"{place}; tensors in its place begin at {lowest(self._mesh):#x} or above"
            )
        return view.address - rank.rank * self._mesh.heap.stride

    def _check_shard(self, parameter: ArrayParameter, view: View, rank: Rank) -> None:
        """Compare a tensor with the memory of a shard; a length that nothing else tells is that of equal shards."""
        ranks, axis, shape = self._mesh.ranks, parameter.shard, list(view.shape)
        if axis is None or len(shape) != len(parameter.dims):
            self._shape(parameter, view.shape, rank)
            return
        dim = parameter.dims[axis]
        told = self._found[dim][0] if dim in self._found else dim
        others = ((place, other) for place, other in enumerate(parameter.dims) if place != axis)
        whole = next((shape[place] for place, other in others if other == dim), told)
        if isinstance(whole, str):
            shape[axis] *= ranks
        elif shape[axis] == shard_length(whole, ranks):
            shape[axis] = whole
        else:
            shown = (*shape[:axis], shard_length(whole, ranks), *shape[axis + 1 :])
            texts = [f"[{', '.join(map(str, each))}]" for each in (view.shape, shown)]
            raise PkcError(errors.ArgumentShape(NOWHERE, self._kernel, parameter.name, rank.rank, *texts))
        self._shape(parameter, tuple(shape), rank)

    def _items(self, parameter: ArrayParameter, value: Any) -> Sequence[Any]:
        """One item for each rank of this process."""
        count = len(self._mesh.local)
        lies = "private to each rank" if parameter.layout == "private" else "reached by its own rank alone"
        if isinstance(value, Array):
            if value.heap is self._mesh.heap and value.layout != "shard":
                return [value] * count
            found = "a sharded array" if value.layout == "shard" else "an array of another mesh"
            raise PkcError(errors.RankArrays(NOWHERE, self._kernel, parameter.name, lies, found, count))
        items: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value]
        if len(items) != count:
            found = f"{len(items)} array{'s' * (len(items) != 1)}"
            raise PkcError(errors.RankArrays(NOWHERE, self._kernel, parameter.name, lies, found, count))
        return items

    def _check_type(self, parameter: ArrayParameter, found: str) -> None:
        if found != parameter.dtype:
            raise PkcError(errors.ArgumentType(NOWHERE, self._kernel, parameter.name, found, parameter.dtype))

    def _shape(self, parameter: ArrayParameter, shape: tuple[int, ...], rank: Rank) -> None:
        wanted = [self._mesh.ranks if dim == RANKS else dim for dim in parameter.dims]
        fits = len(shape) == len(wanted) and all(
            isinstance(dim, str) or dim == extent for dim, extent in zip(wanted, shape, strict=True)
        )
        if not fits:
            texts = [f"[{', '.join(map(str, dims))}]" for dims in (shape, wanted)]
            raise PkcError(errors.ArgumentShape(NOWHERE, self._kernel, parameter.name, rank.rank, *texts))
        for dim, extent in zip(wanted, shape, strict=True):
            if isinstance(dim, str):
                self._set(dim, extent, parameter.name, rank.rank)

    def _check_memory(self, parameter: ArrayParameter, view: View, rank: Rank) -> None:
        place = (NOWHERE, self._kernel, parameter.name, rank.rank)
        if view.device != rank.device:
            found = "the host" if view.device < 0 else f"GPU {view.device}"
            raise PkcError(errors.ArgumentDevice(*place, found, rank.device))
        expected = row_major(view.shape)
        # The stride of a single position is never used.
        used = [axis for axis, extent in enumerate(view.shape) if extent > 1]
        if any(view.strides[axis] != expected[axis] for axis in used):
            raise PkcError(errors.ArgumentStrides(*place, str(list(view.strides)), str(list(expected))))
        if view.address % ALIGNMENT:
            raise PkcError(errors.ArgumentAlignment(*place, hex(view.address)))

    # Dimensions and scalars

    def _set(self, dim: str, value: object, array: str, rank: int) -> None:
        # Whether a class counts as `Integral` takes longer to answer than all else here.
        if not (type(value) is int or isinstance(value, numbers.Integral)) or not 1 <= int(value) <= LONGEST:
            raise self._bad_dim(dim, f"is {value} by {_source(array, rank)}; it must be from 1 to {LONGEST}")
        first, of, at = self._found.setdefault(dim, (int(value), array, rank))
        if first != value:
            raise self._bad_dim(dim, f"is {first} by {_source(of, at)}, and {value} by {_source(array, rank)}")

    def _dims(self) -> dict[str, int]:
        wanted = self._interface.dims
        unset = next((dim for dim in wanted if dim not in self._found), None)
        if unset is not None:
            raise self._bad_dim(unset, "has no value: no array and no setting gives it one")
        unknown = next((dim for dim in self._found if dim not in wanted), None)
        if unknown is not None:
            raise self._bad_dim(unknown, f"does not exist; there are {listing(wanted) or 'none'}")
        return {dim: self._found[dim][0] for dim in wanted} | {RANKS: self._mesh.ranks}

    def _bad_dim(self, dim: str, problem: str) -> PkcError:
        return PkcError(errors.LaunchDimension(NOWHERE, self._kernel, dim, problem))

    def _scalar(self, name: str, value: Any, dtype: str) -> int | float:
        if dtype == "f32" and isinstance(value, numbers.Real) and value is not True and value is not False:
            return float(value)
        if dtype == "i32" and isinstance(value, numbers.Integral) and -LONGEST - 1 <= int(value) <= LONGEST:
            return int(value)
        raise PkcError(errors.LaunchScalar(NOWHERE, self._kernel, name, repr(value), dtype))


def _source(array: str, rank: int) -> str:
    """What gives a dimension its value."""
    return f"`{array}` on rank {rank}" if array else "its setting"


def _view(value: Any) -> View | None:
    """What a torch tensor, or anything with the same members, has in memory; `None` for other objects."""
    if isinstance(value, View):
        return value
    if not hasattr(value, "data_ptr"):
        return None
    device = value.device.index if value.device.type == "cuda" else -1
    return View(value.data_ptr(), tuple(value.shape), tuple(value.stride()), element_name(value.dtype), device)


def _layout(array: Array) -> str:
    return array.layout if array.shard is None else f"{array.layout} {array.shard}{' zigzag' * array.zigzag}"
