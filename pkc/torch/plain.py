"""The operators by torch's collectives and matmuls: on CPUs, and for what the kernels do not take."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

from pkc.torch import shapes

torch: Any = importlib.import_module("torch")
importlib.import_module("torch.distributed._functional_collectives")
_collectives: Any = torch.ops._c10d_functional

_LOG2E = math.log2(math.e)


def gather(a: Any, dim: int, ranks: int, group: str) -> Any:
    """The tensors of all ranks behind one another along a dimension, which is outermost in memory."""
    front = a.movedim(dim, 0).contiguous()
    return _collectives.wait_tensor(_collectives.all_gather_into_tensor(front, ranks, group)).movedim(0, dim)


def scatter(whole: Any, dim: int, ranks: int, group: str, *, average: bool = False) -> Any:
    """This rank's shard, along a dimension that is outermost in memory, of the sum of all ranks' tensors."""
    front = whole.movedim(dim, 0).contiguous()
    found = _collectives.wait_tensor(_collectives.reduce_scatter_tensor(front, "sum", ranks, group))
    return (found / ranks if average else found).movedim(0, dim)


def exchange(mine: Any, ranks: int, group: str) -> Any:
    """Of each rank's tensor the part for this rank, one for each position of its first dimension."""
    each = [1] * ranks
    return _collectives.wait_tensor(_collectives.all_to_all_single(mine.contiguous(), each, each, group))


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


def attention(q: Any, k: Any, v: Any, *, causal: bool, scale: float) -> tuple[Any, Any]:
    """Attention, and the log-sum-exp of each row, to base 2; rows that see nothing give zeros."""
    scores, _ = _scores(q, k, causal=causal, scale=scale)
    logs = scores.logsumexp(-1)
    weights = (scores - logs.unsqueeze(-1)).exp()
    out = (_by_group(weights, k) @ v.to(scores.dtype).unsqueeze(2)).flatten(1, 2)
    out[..., : _blind(scores, causal=causal), :] = 0
    return out.to(q.dtype), logs * _LOG2E


def attention_backward(
    grad: Any, q: Any, k: Any, v: Any, out: Any, logs: Any, *, causal: bool, scale: float
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v."""
    scores, wide = _scores(q, k, causal=causal, scale=scale)
    weights = (scores - (logs / _LOG2E).unsqueeze(-1)).exp()
    weights[..., : _blind(scores, causal=causal), :] = 0
    weights = _by_group(weights, k)
    rows, given = (_by_group(each.to(wide), k) for each in (q, grad))
    keys, values = (each.to(wide).unsqueeze(2) for each in (k, v))
    inner = (given * _by_group(out.to(wide), k)).sum(-1, keepdim=True)
    of_scores = weights * (given @ values.mT - inner) * scale
    found = (of_scores @ keys).flatten(1, 2), (of_scores.mT @ rows).sum(2), (weights.mT @ given).sum(2)
    return tuple(tensor.to(q.dtype) for tensor in found)


def _scores(q: Any, k: Any, *, causal: bool, scale: float) -> tuple[Any, Any]:
    """The scores of each row and key, -inf where it does not see one, and the type that they are computed in."""
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = (_by_group(q.to(wide), k) @ k.to(wide).unsqueeze(2).mT).flatten(1, 2) * scale
    if causal:
        rows, keys = scores.shape[-2:]
        seen = torch.ones(rows, keys, dtype=torch.bool, device=q.device).tril(keys - rows)
        scores = scores.masked_fill(~seen, -math.inf)
    return scores, wide


def _blind(scores: Any, *, causal: bool) -> int:
    """How many rows see no key: the first ones, where rows are more than keys."""
    rows, keys = scores.shape[-2:]
    return max(rows - keys, 0) if causal else 0


def _by_group(tensor: Any, k: Any) -> Any:
    """Heads as [heads of K, heads of Q for each]."""
    return tensor.unflatten(1, (k.shape[1], -1))
