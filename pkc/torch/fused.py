"""The operators by pkc's kernels: which kernel runs on which memory."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pkc.driver.builder import artifact_for
from pkc.driver.kernel import Kernel
from pkc.runtime.arrays import Array, View, row_major
from pkc.runtime.launch import LoadedKernel, runs_on
from pkc.runtime.torch import tensor
from pkc.targets import DEFAULT
from pkc.targets.target import lookup
from pkc.torch import kernels
from pkc.torch.groups import Place, place_of

torch: Any = importlib.import_module("torch")

_logger = logging.getLogger("pkc.torch")
_told: set[str] = set()

_ALIGNMENT = 16


def obstacle(a: Any, rights: Sequence[Any], ranks: int) -> str:
    """Why no kernel multiplies these; empty if one does."""
    name = str(a.dtype).removeprefix("torch.")
    if ranks == 1:
        return "the group has one rank"
    if name not in kernels.TYPES:
        return f"the element type is {name}; kernels multiply {' and '.join(kernels.TYPES)}"
    if not a.numel() or not all(right.numel() for right in rights):
        return "a tensor has no elements"
    found = torch.cuda.get_device_capability(a.device)
    if not runs_on(lookup(DEFAULT).code, found):
        return f"the GPU has compute capability {found[0]}.{found[1]}; kernels are for {DEFAULT}"
    return ""


def tell(operator: str, reason: str) -> None:
    """Log, once, why an operator runs without a kernel."""
    text = f"{operator} runs by collectives and matmuls of torch: {reason}"
    if text not in _told:
        _told.add(text)
        _logger.warning(text)


def gather_matmul(a: Any, rights: Sequence[Any], group: str, *, return_a: bool) -> tuple[Any, list[Any]]:
    """The gathered rows of `a`, a matrix, and their products; the kernel multiplies by the first right operand."""
    place = place_of(group)
    (rows, inner), first = a.shape, rights[0]
    rows *= place.mesh.ranks
    first, transposed = _right(first)
    out = a.new_empty((rows, first.shape[1]))
    key = ("gather", transposed, a.dtype, rows, inner, first.shape[1])
    call = place.calls.get(key)
    if call is None:
        kernel = kernels.gather_matmul(_name(a.dtype), transposed=transposed)
        call = place.calls[key] = _Call(place, kernel, "A", place.array((rows, inner), a.dtype, "shard", 0), _dims(key))
    call.shared.copy_(a)
    call.launch({"B": first.t() if transposed else first, "C": out})
    whole = call.gathered(a) if return_a or len(rights) > 1 else None
    return whole if return_a else None, [out, *(whole @ right for right in rights[1:])]


def matmul_scatter(a: Any, right: Any, group: str, *, average: bool) -> Any:
    """This rank's rows of the sum over ranks of a product of matrices."""
    return _summed("scatter", a, right, group, average=average)


def matmul_reduce(a: Any, right: Any, group: str, *, average: bool) -> Any:
    """The sum over ranks of a product of matrices."""
    return _summed("reduce", a, right, group, average=average)


def _summed(kind: str, a: Any, right: Any, group: str, *, average: bool) -> Any:
    place = place_of(group)
    a, (right, transposed) = _aligned(a.contiguous()), _right(right)
    rows, inner, columns = *a.shape, right.shape[1]
    key = (kind, transposed, a.dtype, rows, inner, columns, average)
    call = place.calls.get(key)
    if call is None:
        make = kernels.matmul_scatter if kind == "scatter" else kernels.matmul_reduce
        layout = ("shard", 0) if kind == "scatter" else ("replicate", None)
        kernel = make(_name(a.dtype), transposed=transposed, average=average)
        call = place.calls[key] = _Call(place, kernel, "C", place.array((rows, columns), a.dtype, *layout), _dims(key))
    call.launch({"A": a, "B": right.t() if transposed else right})
    return call.shared.clone()


class _Call:
    """A kernel for some sizes, with the array that other ranks reach; `shared` is its part on this rank, a tensor."""

    def __init__(self, place: Place, kernel: Kernel, name: str, array: Array, dims: Mapping[str, int]) -> None:
        mesh = place.mesh
        self._dims, self._name, self._array = dims, name, array
        chosen = {**dims, "M": kernels.rows_of_schedule(dims["M"])}
        artifact = artifact_for(kernel.tree, dims=chosen, ranks=mesh.ranks, target=kernel.target)
        if artifact not in place.loaded:
            place.loaded[artifact] = LoadedKernel(artifact, mesh)
        self._loaded = place.loaded[artifact]
        self._rank = mesh.local[0]
        self.shared = array.tensor()
        self._fetched: Any = None

    def launch(self, private: Mapping[str, Any]) -> None:
        """Launch on torch's current stream."""
        stream = torch.cuda.current_stream(self._rank.device).cuda_stream
        self._loaded({self._name: self._array, **private}, stream=stream)

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


def _dims(key: tuple[Any, ...]) -> dict[str, int]:
    return dict(zip("MKN", key[3:6], strict=True))


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _right(right: Any) -> tuple[Any, bool]:
    """A right operand that lies in memory as a kernel takes it, and whether by columns."""
    by_rows = right.is_contiguous()
    if not by_rows and right.t().is_contiguous():
        return _aligned(right.t()).t(), True
    return _aligned(right.contiguous()), False


def _aligned(matrix: Any) -> Any:
    return matrix.clone() if matrix.data_ptr() % _ALIGNMENT else matrix
