"""Tensors of shapes that were not passed before, in a call that is else like one that was.

That call knows the mesh, the scalars and which tensor is which parameter. Shapes are checked by what tells calls apart
(`pkc.runtime.arguments.fingerprint`); what does not fit is left to the checks that say why.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

from pkc.codegen.artifact import Interface
from pkc.dialect.words import RANKS
from pkc.runtime.arguments import LONGEST, Bound, Span
from pkc.runtime.element import ELEMENTS
from pkc.runtime.mesh import Mesh


class Reshaped:
    """Calls of a kernel whose arrays are all private tensors, on the only rank of a process.

    The first has `given`, the fingerprints of the arguments `names`, and is `bound`.
    """

    def __init__(
        self, interface: Interface, mesh: Mesh, names: Sequence[str], given: Sequence[Any], bound: Bound
    ) -> None:
        arrays = {array.name: array for array in interface.passed}
        self._scalars, self._dims = bound.scalars, (*interface.dims, RANKS)
        self._rest = [(at, given[at]) for at, name in enumerate(names) if name not in arrays]
        self._known: dict[str | int, int] = {RANKS: mesh.ranks}
        self._tensors: list[tuple[int, str, tuple[str | int, ...], int, bool, object, object]] = []
        for at, name in enumerate(names):
            if name in arrays:
                array, (*_, dtype, device) = arrays[name], given[at]
                size = ELEMENTS[array.dtype].bytes
                self._tensors.append((at, name, array.dims, size, array.written, dtype, device))
                self._known |= {dim: dim for dim in array.dims if isinstance(dim, int)}
        numbered = itertools.combinations(enumerate(self._tensors), 2)
        self._apart = [(one, two) for (one, first), (two, second) in numbered if first[4] or second[4]]

    @staticmethod
    def serves(interface: Interface, mesh: Mesh, names: Sequence[str], given: Sequence[Any], settings: object) -> bool:
        """Whether these arguments are a call of that kind, whose tensors show all dimensions."""
        fingerprints = dict(zip(names, given, strict=True))
        tensors = all(_is_tensor(fingerprints[array.name]) for array in interface.passed)
        return len(mesh.local) == 1 and tensors and not settings

    def bound(self, given: Sequence[Any], pointers: Sequence[int]) -> Bound | None:
        """The arguments with these fingerprints, whose tensors are at `pointers`; `None` if they do not fit."""
        if any(given[at] != expected for at, expected in self._rest):
            return None
        dims, spans = self._known.copy(), list[Span]()
        private: dict[str, tuple[int, ...]] = {}
        for (at, name, wanted, count, written, dtype, device), pointer in zip(self._tensors, pointers, strict=True):
            if not _is_tensor(given[at]):
                return None
            offset, shape, strides, found, place = given[at]
            if offset or found != dtype or place != device or len(shape) != len(wanted):
                return None
            size = count
            for axis in range(len(wanted) - 1, -1, -1):
                extent = shape[axis]
                if strides[axis] * size != count or not 1 <= extent <= LONGEST:
                    return None
                if dims.setdefault(wanted[axis], extent) != extent:
                    return None
                count *= extent
            private[name] = (pointer,)
            spans.append(Span(name, pointer, count, written))
        for one, two in self._apart:
            first, second = spans[one], spans[two]
            if first.first < second.first + second.bytes and second.first < first.first + first.bytes:
                return None
        return Bound({dim: dims[dim] for dim in self._dims}, self._scalars, {}, private, (spans,))


def _is_tensor(found: Any) -> bool:
    """Whether a fingerprint is that of a tensor, or of a list of five, which begins with no number."""
    return type(found) is tuple and len(cast(tuple[object, ...], found)) == 5
