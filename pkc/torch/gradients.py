"""The gradients of the operators: each family's are the other's operators."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from pkc.torch.operators import GATHER, REDUCE, SCATTER, ranks_of

torch: Any = importlib.import_module("torch")


def gather_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    A, Bs, gather_dim, ctx.group = inputs
    ctx.dim = gather_dim % A.dim()
    ctx.set_materialize_grads(False)
    # What was gathered is kept if it is returned, and gathered again if not.
    ctx.gathered = output[0] is not None
    ctx.save_for_backward(output[0] if ctx.gathered else A, *Bs)


def gather_backward(ctx: Any, grad_whole: Any, grad_products: Sequence[Any]) -> tuple[Any, ...]:
    a, *rights = ctx.saved_tensors
    return *of_products(ctx, a, rights, grad_whole, grad_products), None, None


def of_products(
    ctx: Any, a: Any, rights: Sequence[Any], grad_whole: Any, grad_products: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """The gradients of what is gathered along `ctx.dim` and of what it is multiplied by, the first two inputs.

    `a` is what is gathered, or has been if `ctx.gathered`; a gradient that is `None` is zero.
    """
    given = [(grad, right) for grad, right in zip(grad_products, rights, strict=True) if grad is not None]
    grad_a = None
    if ctx.needs_input_grad[0] and given:
        grads, factors = ([*each] for each in zip(*given, strict=True))
        grad = torch.cat(grads, -1) if len(grads) > 1 else grads[0]
        factor = torch.cat(factors, 1) if len(factors) > 1 else factors[0]
        grad_a = getattr(torch.ops.pkc, SCATTER)(grad, factor.t(), "sum", ctx.dim, ctx.group)
    if ctx.needs_input_grad[0] and grad_whole is not None:
        summed = torch.ops.pkc.reduce_scatter(grad_whole, ctx.dim, ctx.group)
        grad_a = summed if grad_a is None else grad_a + summed
    grad_rights: list[Any] = [None] * len(rights)
    if any(ctx.needs_input_grad[1]):
        whole = a if ctx.gathered else torch.ops.pkc.all_gather(a, ctx.dim, ctx.group)
        for at, (needed, grad) in enumerate(zip(ctx.needs_input_grad[1], grad_products, strict=True)):
            if needed and grad is not None:
                grad_rights[at] = rows(whole, ctx.dim).t() @ rows(grad, ctx.dim)
    return grad_a, grad_rights


def scatter_context(ctx: Any, inputs: Any, output: Any) -> None:
    A, B, reduce_op, scatter_dim, ctx.group = inputs
    ctx.dim = scatter_dim % A.dim()
    ctx.divisor = ranks_of(ctx.group) if reduce_op == "avg" else 1
    ctx.save_for_backward(A, B)


def scatter_backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    a, right = ctx.saved_tensors
    needs_a, needs_right = ctx.needs_input_grad[:2]
    grad = grad / ctx.divisor if ctx.divisor > 1 else grad
    if needs_a:
        operator = getattr(torch.ops.pkc, GATHER)
        whole, (grad_a,) = operator(grad, [right.t()], ctx.dim, ctx.group, return_A=needs_right)
    else:
        whole, grad_a = torch.ops.pkc.all_gather(grad, ctx.dim, ctx.group), None
    grad_right = rows(a, ctx.dim).t() @ rows(whole, ctx.dim) if needs_right else None
    return grad_a, grad_right, None, None, None


def reduce_context(ctx: Any, inputs: Any, output: Any) -> None:
    A, B, reduce_op, group = inputs
    ctx.divisor = ranks_of(group) if reduce_op == "avg" else 1
    ctx.save_for_backward(A, B)


def reduce_backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    a, right = ctx.saved_tensors
    grad = grad / ctx.divisor if ctx.divisor > 1 else grad
    grad_a = grad @ right.t() if ctx.needs_input_grad[0] else None
    grad_right = a.flatten(0, -2).t() @ grad.flatten(0, -2) if ctx.needs_input_grad[1] else None
    return grad_a, grad_right, None, None


def replicated_matmul_context(ctx: Any, inputs: Any, output: Any) -> None:
    A, B, ctx.group = inputs
    ctx.save_for_backward(A, B)


def replicated_matmul_backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    a, right = ctx.saved_tensors
    grad_a = None
    if ctx.needs_input_grad[0]:
        grad_a = getattr(torch.ops.pkc, REDUCE)(grad, right.t(), "sum", ctx.group)
    grad_right = a.flatten(0, -2).t() @ grad.flatten(0, -2) if ctx.needs_input_grad[1] else None
    return grad_a, grad_right, None


def replicated_context(ctx: Any, inputs: Any, output: Any) -> None:
    _, ctx.group = inputs


def replicated_backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    return torch.ops.pkc.all_reduce(grad, ctx.group), None


def all_reduce_backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    return grad, None


def moved_context(ctx: Any, inputs: Any, output: Any) -> None:
    _, ctx.dim, ctx.group = inputs


def all_gather_backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    return torch.ops.pkc.reduce_scatter(grad, ctx.dim, ctx.group), None, None


def reduce_scatter_backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    return torch.ops.pkc.all_gather(grad, ctx.dim, ctx.group), None, None


def none_of_gradients(ctx: Any, *_: Any) -> tuple[Any, ...]:
    raise NotImplementedError("the gradients of attention and of experts have no gradients of their own")


def rows(tensor: Any, dim: int) -> Any:
    """All but the last dimension as rows, in the order that the products have."""
    return tensor.flatten(0, -2) if dim == tensor.dim() - 1 else tensor.movedim(dim, 0).flatten(0, -2)
