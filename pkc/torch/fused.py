"""The operators by pkc's kernels: which kernel runs on which memory."""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Sequence
from typing import Any

from pkc.kernels import Kernel
from pkc.runtime.arrays import Array, View, row_major
from pkc.runtime.launch import runs_on
from pkc.runtime.torch import tensor
from pkc.targets import DEFAULT, code_of
from pkc.torch import kernels
from pkc.torch.groups import Place, place_of
from pkc.torch.launches import Launch, aligned, lies_anywhere, loaded_for_sizes
from pkc.torch.shapes import Flat

torch: Any = importlib.import_module("torch")

_logger = logging.getLogger("pkc.torch")
_told: set[str] = set()


def obstacle(a: Any, rights: Sequence[Any], ranks: int) -> str:
    """Why no kernel multiplies these on several ranks; empty if one does."""
    return "the group has one rank" if ranks == 1 else unknown(a, rights)


def unknown(a: Any, rights: Sequence[Any]) -> str:
    """Why no kernel multiplies these; empty if one does."""
    name = kernels.type_name(a.dtype)
    if name not in kernels.TYPES:
        return f"the element type is {name}; kernels multiply {' and '.join(kernels.TYPES)}"
    if not a.numel() or not all(right.numel() for right in rights):
        return "a tensor has no elements"
    found = torch.cuda.get_device_capability(a.device)
    if not runs_on(code_of(DEFAULT), found):
        return f"the GPU has compute capability {found[0]}.{found[1]}; kernels are for {DEFAULT}"
    return ""


def tell(operator: str, reason: str) -> None:
    """Log, once, why an operator runs without a kernel."""
    text = f"{operator} runs by collectives and matmuls of torch: {reason}"
    if text not in _told:
        _told.add(text)
        _logger.warning(text)


class GatherMatmul:
    """All-gather + matmul of tensors that are laid out as these; the kernel multiplies by the first right operand."""

    def __init__(self, a: Any, rights: Sequence[Any], form: Flat, group: str, *, return_a: bool) -> None:
        place = place_of(group)
        self._form, self._whole_form = form, form.times(place.mesh.ranks)
        self._right = Right(rights[0])
        self._returns, self._keeps = return_a, return_a or len(rights) > 1
        self._shape = (math.prod(self._whole_form.rows), rights[0].shape[1])
        key = ("gather", self._right.transposed, a.dtype, self._shape[0], a.shape[-1], self._shape[1])
        sizes = place.sizes.get(key)
        if sizes is None:
            kernel = kernels.gather_matmul(kernels.type_name(a.dtype), transposed=self._right.transposed)
            array = place.array((key[3], key[4]), a.dtype, "shard", 0)
            sizes = place.sizes[key] = Sizes(place, kernel, "A", array, key[3:])
        self._sizes, self._launch = sizes, sizes.launch("BC", "B" * self._right.transposed)

    def __call__(self, a: Any, rights: Sequence[Any]) -> tuple[Any, list[Any]]:
        matrix, sizes = self._form.of(a), self._sizes
        out, right = matrix.new_empty(self._shape), self._right.of(rights[0])
        with sizes.turn:
            self._launch(right, out, *sizes.given(matrix))
            whole = sizes.gathered(matrix) if self._keeps else None
        back = self._whole_form.back
        if whole is None:
            return None, [back(out)]
        products = [back(out), *(back(whole @ right) for right in rights[1:])]
        return back(whole) if self._returns else None, products


class MatmulSum:
    """The sum over ranks, or the average, of products of tensors that are laid out as these.

    With `scatter` each rank has its shard along the first dimension of `form`, otherwise all of it.
    """

    def __init__(self, a: Any, right: Any, form: Flat, group: str, *, scatter: bool, average: bool) -> None:
        place = place_of(group)
        self._form, self._mine = form, form.over(place.mesh.ranks) if scatter else form
        self._right = Right(right)
        rows, inner, columns = math.prod(form.rows), *right.shape
        key = (scatter, average, self._right.transposed, a.dtype, rows, inner, columns)
        sizes = place.sizes.get(key)
        if sizes is None:
            make = kernels.matmul_scatter if scatter else kernels.matmul_reduce
            kernel = make(kernels.type_name(a.dtype), transposed=self._right.transposed, average=average)
            array = place.array((rows, columns), a.dtype, *(("shard", 0) if scatter else ("replicate", None)))
            sizes = place.sizes[key] = Sizes(place, kernel, "C", array, key[4:])
        self._shape = math.prod(self._mine.rows), columns
        self._sizes, self._launch = sizes, sizes.launch("AB", "B" * self._right.transposed, results="C")

    def __call__(self, a: Any, right: Any) -> Any:
        matrix, taken, shared = aligned(self._form.of(a).contiguous()), self._right.of(right), self._sizes.shared
        if shared is None:
            out = matrix.new_empty(self._shape)
            self._launch(matrix, taken, out)
            return self._mine.back(out)
        with self._sizes.turn:
            self._launch(matrix, taken)
            return self._mine.back(shared.clone())


class Right:
    """How a kernel takes a right operand of a layout: as it lies if it has no gaps, by rows or by columns."""

    def __init__(self, right: Any) -> None:
        by_rows = right.is_contiguous()
        self.transposed = not by_rows and right.t().is_contiguous()
        self._taken = by_rows or self.transposed

    def of(self, right: Any) -> Any:
        return aligned(right if self._taken else right.contiguous())


class Sizes:
    """A kernel for some sizes, with an array of the mesh; `shared` is its part on this rank, a tensor, or `None` if no
    other rank reaches it: then launches take one more tensor in its place. What is copied there, the launch, and what
    is copied from there are one `turn`."""

    def __init__(self, place: Place, kernel: Kernel, name: str, array: Array, sizes: Sequence[int]) -> None:
        self._name, self._array, self._rank, self.turn = name, array, place.mesh.local[0], place.turn
        self._dims = dict(zip("MKN", sizes, strict=True))
        chosen = {**self._dims, "M": kernels.rows_of_schedule(self._dims["M"])}
        self._loaded = loaded_for_sizes(place, kernel.tree, chosen)
        self.shared = None if lies_anywhere(self._loaded, name) else array.tensor()
        self._fetched: Any = None

    def launch(self, names: str, transposed: str, *, results: str = "") -> Launch:
        """Launches with tensors of these names, a letter each, and of the array behind them if no other rank reaches
        it, which may be among `results`; those that are `transposed` lie by columns."""
        shared = {self._name: self._array}
        if self.shared is None:
            return Launch(self._loaded, names + self._name, {}, transposed, shared, results)
        return Launch(self._loaded, names, shared, transposed)

    def given(self, operand: Any) -> Sequence[Any]:
        """Copy an operand to where other ranks reach it; or what a launch takes in its place."""
        if self.shared is None:
            return [aligned(operand.contiguous())]
        self.shared.copy_(operand)
        return ()

    def gathered(self, local: Any) -> Any:
        """A copy of the whole operand, which the kernel has fetched but for this rank's rows."""
        if self._fetched is None:
            name = f"{self._name}.fetched"
            heap, shape = self._array.heap, self._array.shape
            address = heap.address(self._rank.rank, self._loaded.scratch(name, self._dims))
            view = View(address, shape, row_major(shape), self._array.dtype, self._rank.device)
            self._fetched = tensor(view)
        whole = self._fetched.clone()
        rows = local.shape[0]
        whole[self._rank.rank * rows : (self._rank.rank + 1) * rows] = local
        return whole
