"""What the operators of `torch.ops.pkc` do, and the shapes of their results.

Signatures are those of torch's `symm_mem` operators of these names, where it has one. None changes an argument, and
what they return is new memory. A group is known by its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pkc.torch import fixed, fused, plain, shapes
from pkc.torch.groups import calls_of, keep

torch: Any = importlib.import_module("torch")
_c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")

GATHER, SCATTER, REDUCE = "fused_all_gather_matmul", "fused_matmul_reduce_scatter", "fused_matmul_all_reduce"
REPLICATED = "replicated_matmul"


def fused_all_gather_matmul(
    A: Any, Bs: Sequence[Any], gather_dim: int, group_name: str, *, return_A: bool = True
) -> tuple[Any, list[Any]]:
    """`all_gather(A, gather_dim)`, or `None`, and its products with each of `Bs`.

    `A` has two dimensions or more, the last of which is multiplied; `Bs` are matrices of its type, by rows or by
    columns in memory. Raises `ValueError` and `PkcError`.
    """
    calls = calls_of(group_name)
    layout = GATHER, gather_dim, return_A, layout_of(A), *[layout_of(B) for B in Bs]
    call = calls.get(layout)
    if call is None:
        call = _gather(A, Bs, gather_dim, group_name, return_a=return_A)
        keep(calls, layout, call)
    return call(A, Bs)


def _gather(A: Any, Bs: Sequence[Any], gather_dim: int, group: str, *, return_a: bool) -> Callable[..., Any]:
    """What the operator does with tensors that are laid out as these."""
    dim, ranks = _checked_gather(A, Bs, gather_dim, group)
    if not runs_kernel(GATHER, A, Bs, dim, ranks) or not Bs:
        return partial(plain.all_gather_matmul, dim=dim, ranks=ranks, group=group, return_a=return_a)
    return fused.GatherMatmul(A, Bs, shapes.flat(A.shape, dim), group, return_a=return_a)


def fused_matmul_reduce_scatter(A: Any, B: Any, reduce_op: str, scatter_dim: int, group_name: str) -> Any:
    """`reduce_scatter(A @ B, scatter_dim)`, where `reduce_op` is "sum" or "avg".

    The extent along `scatter_dim` is a multiple of the number of ranks. Raises `ValueError` and `PkcError`.
    """
    calls = calls_of(group_name)
    layout = SCATTER, fixed.splits(), reduce_op, scatter_dim, layout_of(A), layout_of(B)
    call = calls.get(layout)
    if call is None:
        call = _scatter(A, B, reduce_op, scatter_dim, group_name)
        keep(calls, layout, call)
    return call(A, B)


def _scatter(A: Any, B: Any, reduce_op: str, scatter_dim: int, group: str) -> Callable[..., Any]:
    """What the operator does with tensors that are laid out as these."""
    average, dim, ranks = _checked_scatter(A, B, reduce_op, scatter_dim, group)
    if fixed.splits() and dim < len(A.shape) - 1:
        return _fixed(A, B, dim, group, scatter=True, average=average)
    if not runs_kernel(SCATTER, A, [B], dim, ranks):
        return partial(plain.matmul_reduce_scatter, dim=dim, ranks=ranks, group=group, average=average)
    return fused.MatmulSum(A, B, shapes.flat(A.shape, dim), group, scatter=True, average=average)


def fused_matmul_all_reduce(A: Any, B: Any, reduce_op: str, group_name: str) -> Any:
    """`all_reduce(A @ B)`, where `reduce_op` is "sum" or "avg".

    The gradient of the result is the same on all ranks, as that of what they go on computing with it together is.
    Raises `ValueError` and `PkcError`.
    """
    calls = calls_of(group_name)
    layout = REDUCE, fixed.splits(), reduce_op, layout_of(A), layout_of(B)
    call = calls.get(layout)
    if call is None:
        call = _reduce(A, B, reduce_op, group_name)
        keep(calls, layout, call)
    return call(A, B)


def _reduce(A: Any, B: Any, reduce_op: str, group: str) -> Callable[..., Any]:
    """What the operator does with tensors that are laid out as these."""
    average, ranks = _checked_reduce(A, B, reduce_op, group)
    if fixed.splits():
        return _fixed(A, B, 0, group, scatter=False, average=average)
    if not runs_kernel(REDUCE, A, [B], 0, ranks):
        return partial(plain.matmul_all_reduce, ranks=ranks, group=group, average=average)
    return fused.MatmulSum(A, B, shapes.flat(A.shape, 0), group, scatter=False, average=average)


def _fixed(A: Any, B: Any, dim: int, group: str, *, scatter: bool, average: bool) -> Callable[..., Any]:
    kernel = A.device.type == "cuda" and not fused.unknown(A, [B])
    form, ranks = shapes.flat(A.shape, dim), ranks_of(group)
    return fixed.FixedSum(A, B, form, group, ranks, scatter=scatter, average=average, kernel=kernel)


def layout_of(tensor: Any) -> tuple[Any, ...]:
    """All that decides what an operator does with a tensor, but for its address."""
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _checked_gather(A: Any, Bs: Sequence[Any], gather_dim: int, group: str) -> tuple[int, int]:
    """The dimension, counted from the first one, and the number of ranks. Raises `ValueError`."""
    dim, ranks = shapes.along(GATHER, "gather_dim", gather_dim, A.shape), ranks_of(group)
    shapes.check_matmul(GATHER, A, *Bs, gathered=ranks if dim == len(A.shape) - 1 else 1)
    return dim, ranks


def _checked_scatter(A: Any, B: Any, reduce_op: str, scatter_dim: int, group: str) -> tuple[bool, int, int]:
    """Whether it is an average, the dimension, counted from the first one, and the number of ranks. Raises
    `ValueError`."""
    average = shapes.check_reduction(SCATTER, reduce_op)
    dim, ranks = shapes.along(SCATTER, "scatter_dim", scatter_dim, A.shape), ranks_of(group)
    shapes.check_matmul(SCATTER, A, B)
    last = dim == len(A.shape) - 1
    shapes.check_shared(SCATTER, B.shape[1] if last else A.shape[dim], dim, ranks)
    if fixed.splits() and not last:
        fixed.parts_of(ranks, A.shape[-1])
    return average, dim, ranks


def _checked_reduce(A: Any, B: Any, reduce_op: str, group: str) -> tuple[bool, int]:
    """Whether it is an average, and the number of ranks. Raises `ValueError`."""
    average, ranks = shapes.check_reduction(REDUCE, reduce_op), ranks_of(group)
    shapes.along(REDUCE, "dimension", 0, A.shape)
    shapes.check_matmul(REDUCE, A, B)
    if fixed.splits():
        fixed.parts_of(ranks, A.shape[-1])
    return average, ranks


def runs_kernel(operator: str, A: Any, rights: Sequence[Any], dim: int, ranks: int) -> bool:
    """Whether a kernel does this; if none does on several ranks, why is logged, once."""
    if A.device.type != "cuda":
        return False
    last = "columns of A are gathered or scattered" if dim == len(A.shape) - 1 else ""
    reason = last or fused.obstacle(A, rights, ranks)
    if reason and ranks > 1:
        fused.tell(operator, reason)
    return not reason


def ranks_of(group: str) -> int:
    """How many ranks the group of this name has."""
    return _c10d._get_group_size_by_name(group)


def all_gather(A: Any, gather_dim: int, group_name: str) -> Any:
    """The tensors of all ranks behind one another along a dimension."""
    return plain.gather(A, gather_dim, ranks_of(group_name), group_name)


def all_reduce(A: Any, group_name: str) -> Any:
    """The sum of all ranks' tensors. The gradient of the result is the same on all ranks."""
    return plain.reduce(A, group_name)


def replicated_matmul(A: Any, B: Any, group_name: str) -> Any:
    """`A @ B` on each rank by itself. A is the same on all ranks, so its gradient is the sum of theirs.

    Raises `ValueError`.
    """
    shapes.check_matmul(REPLICATED, A, B)
    return A @ B


def replicated(A: Any, group_name: str) -> Any:
    """A copy of what is the same on all ranks; its gradient is the sum of theirs."""
    return A.clone()


def reduce_scatter(A: Any, scatter_dim: int, group_name: str) -> Any:
    """This rank's shard, along a dimension, of the sum of all ranks' tensors. Raises `ValueError`."""
    shapes.check_shared("reduce_scatter", A.shape[scatter_dim], scatter_dim, ranks_of(group_name))
    return plain.scatter(A, scatter_dim, ranks_of(group_name), group_name)


# Shapes


def fake_gather(
    A: Any, Bs: Sequence[Any], gather_dim: int, group_name: str, *, return_A: bool = True
) -> tuple[Any, list[Any]]:
    dim, ranks = _checked_gather(A, Bs, gather_dim, group_name)
    if dim == len(A.shape) - 1:
        whole = A.new_empty((*A.shape[:-1], A.shape[-1] * ranks))
        products = [A.new_empty((*A.shape[:-1], B.shape[1])) for B in Bs]
        return whole if return_A else None, products
    form = shapes.flat(A.shape, dim).times(ranks)
    return form.empty(A, A.shape[-1]) if return_A else None, [form.empty(A, B.shape[1]) for B in Bs]


def fake_scatter(A: Any, B: Any, reduce_op: str, scatter_dim: int, group_name: str) -> Any:
    _, dim, ranks = _checked_scatter(A, B, reduce_op, scatter_dim, group_name)
    if dim == len(A.shape) - 1:
        return A.new_empty((*A.shape[:-1], B.shape[1] // ranks))
    return shapes.flat(A.shape, dim).over(ranks).empty(A, B.shape[1])


def fake_reduce(A: Any, B: Any, reduce_op: str, group_name: str) -> Any:
    _checked_reduce(A, B, reduce_op, group_name)
    return A.new_empty((*A.shape[:-1], B.shape[1]))


def fake_replicated_matmul(A: Any, B: Any, group_name: str) -> Any:
    shapes.check_matmul(REPLICATED, A, B)
    return A.new_empty((*A.shape[:-1], B.shape[1]))


def fake_replicated(A: Any, group_name: str) -> Any:
    return torch.empty_like(A)


def fake_all_reduce(A: Any, group_name: str) -> Any:
    return A.new_empty(A.shape)


def fake_all_gather(A: Any, gather_dim: int, group_name: str) -> Any:
    front = A.movedim(gather_dim, 0).shape
    return A.new_empty((front[0] * ranks_of(group_name), *front[1:])).movedim(0, gather_dim)


def fake_reduce_scatter(A: Any, scatter_dim: int, group_name: str) -> Any:
    shapes.check_shared("reduce_scatter", A.shape[scatter_dim], scatter_dim, ranks_of(group_name))
    front = A.movedim(scatter_dim, 0).shape
    return A.new_empty((front[0] // ranks_of(group_name), *front[1:])).movedim(0, scatter_dim)
