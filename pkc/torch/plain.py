"""The operators by torch's collectives and matmuls: on CPUs, and for what the kernels do not take."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from pkc.torch import shapes

torch: Any = importlib.import_module("torch")
importlib.import_module("torch.distributed._functional_collectives")
_collectives: Any = torch.ops._c10d_functional


def gather(a: Any, dim: int, ranks: int, group: str) -> Any:
    """The tensors of all ranks behind one another along a dimension, which is outermost in memory."""
    front = a.movedim(dim, 0).contiguous()
    return _collectives.wait_tensor(_collectives.all_gather_into_tensor(front, ranks, group)).movedim(0, dim)


def scatter(whole: Any, dim: int, ranks: int, group: str, *, average: bool = False) -> Any:
    """This rank's shard, along a dimension that is outermost in memory, of the sum of all ranks' tensors."""
    front = whole.movedim(dim, 0).contiguous()
    found = _collectives.wait_tensor(_collectives.reduce_scatter_tensor(front, "sum", ranks, group))
    return (found / ranks if average else found).movedim(0, dim)


def reduce(mine: Any, group: str) -> Any:
    """The sum of all ranks' tensors."""
    return _collectives.wait_tensor(_collectives.all_reduce(mine.contiguous(), "sum", group))


def all_gather_matmul(
    a: Any, rights: Sequence[Any], dim: int, ranks: int, group: str, *, return_a: bool
) -> tuple[Any, list[Any]]:
    whole = gather(a, dim, ranks, group)
    if dim == len(a.shape) - 1:
        whole = whole.contiguous()
        return whole if return_a else None, [whole @ right for right in rights]
    form = shapes.flat(a.shape, dim).times(ranks)
    matrix = form.of(whole)
    return whole if return_a else None, [form.back(matrix @ right) for right in rights]


def matmul_reduce_scatter(a: Any, right: Any, dim: int, ranks: int, group: str, *, average: bool) -> Any:
    if dim == len(a.shape) - 1:
        return scatter(a @ right, dim, ranks, group, average=average).contiguous()
    form = shapes.flat(a.shape, dim)
    return form.over(ranks).back(scatter(form.of(a) @ right, 0, ranks, group, average=average))


def matmul_all_reduce(a: Any, right: Any, ranks: int, group: str, *, average: bool) -> Any:
    found = reduce(a @ right, group)
    return found / ranks if average else found
