"""All-gather + matmul + activation: the first half of the feed-forward block of a transformer in one kernel."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pkc.torch import fused, gradients, kernels, plain, shapes
from pkc.torch.groups import calls_of, keep, place_of
from pkc.torch.operators import GATHER, layout_of, ranks_of, runs_kernel

torch: Any = importlib.import_module("torch")
_F: Any = torch.nn.functional
_aten: Any = torch.ops.aten

ACTIVATED = "fused_all_gather_matmul_activation"


def gelu_tanh(x: Any) -> Any:
    """GELU by `tanh` in place of `erf`."""
    return _F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": _F.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": _F.silu,
    "relu": _F.relu,
}
"""What the names of activations stand for."""


def _silu_gradient(grad: Any, x: Any) -> Any:
    if not torch.is_grad_enabled():
        return _aten.silu_backward(grad, x)
    chance = x.sigmoid()  # torch's function has no gradient of its own
    return grad * chance * (1 + x * (1 - chance))


_GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "gelu": _aten.gelu_backward,
    "gelu_tanh": partial(_aten.gelu_backward, approximate="tanh"),
    "silu": _silu_gradient,
    "relu": partial(_aten.threshold_backward, threshold=0),
}
"""The gradient of the operand, from that of the result and the operand."""


def fused_all_gather_matmul_activation(
    A: Any,
    Bs: Sequence[Any],
    biases: Sequence[Any],
    activation: str,
    gather_dim: int,
    group_name: str,
    *,
    return_A: bool = False,
    return_products: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """`activation(all_gather(A) @ Bs[0] + biases[0])`, times `all_gather(A) @ Bs[1] + biases[1]` if there are two.

    `biases` has a vector for each of `Bs`, or is empty. Behind it, what was gathered, or `None`, and what the
    activation and the product were computed from, rounded, or nothing. Operands as for `fused_all_gather_matmul`.
    Raises `ValueError` and `PkcError`.
    """
    calls = calls_of(group_name)
    layout = ACTIVATED, activation, gather_dim, return_A, return_products, len(Bs), layout_of(A)
    layout += tuple(layout_of(each) for each in (*Bs, *biases))
    call = calls.get(layout)
    if call is None:
        dim, ranks = _checked(A, Bs, biases, activation, gather_dim, group_name)
        options: dict[str, Any] = {
            "activation": activation,
            "group": group_name,
            "return_a": return_A,
            "kept": return_products,
        }
        if runs_kernel(ACTIVATED, A, Bs, dim, ranks):
            call = GatherActivated(A, Bs, shapes.flat(A.shape, dim), biased=bool(biases), **options)
        else:
            call = partial(_by_torch, dim=dim, ranks=ranks, **options)
        keep(calls, layout, call)
    return call(A, Bs, biases)


def _checked(
    A: Any, Bs: Sequence[Any], biases: Sequence[Any], activation: str, gather_dim: int, group: str
) -> tuple[int, int]:
    """The dimension, counted from the first one, and the number of ranks. Raises `ValueError`."""
    dim, ranks = shapes.along(ACTIVATED, "gather_dim", gather_dim, A.shape), ranks_of(group)
    shapes.check_matmul(ACTIVATED, A, *Bs, gathered=ranks if dim == len(A.shape) - 1 else 1)
    if activation not in ACTIVATIONS:
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"{ACTIVATED}: activation is {activation!r}; it must be one of {known}")
    if not 1 <= len(Bs) <= 2:
        raise ValueError(f"{ACTIVATED}: there are {len(Bs)} right operands; there must be one or two")
    if len(biases) not in (0, len(Bs)):
        raise ValueError(f"{ACTIVATED}: there are {len(biases)} biases for {len(Bs)} right operands")
    for number, (bias, right) in enumerate(zip(biases, Bs, strict=False)):
        if len(bias.shape) != 1 or bias.dtype != A.dtype:
            what = f"{len(bias.shape)} dimensions and type {bias.dtype}"
            raise ValueError(f"{ACTIVATED}: biases[{number}] must be a vector of {A.dtype}; it has {what}")
        torch._check_value(
            bias.shape[0] == right.shape[1],
            lambda bias=bias, right=right: f"{ACTIVATED}: {bias.shape[0]} biases for {right.shape[1]} columns",
        )
    if len(Bs) == 2:
        torch._check_value(
            Bs[0].shape[1] == Bs[1].shape[1],
            lambda: f"{ACTIVATED}: Bs have {Bs[0].shape[1]} and {Bs[1].shape[1]} columns; they must have the same",
        )
    return dim, ranks


class GatherActivated:
    """The kernel for tensors that are laid out as these."""

    def __init__(
        self,
        a: Any,
        rights: Sequence[Any],
        form: shapes.Flat,
        *,
        biased: bool,
        activation: str,
        group: str,
        return_a: bool,
        kept: bool,
    ) -> None:
        place, dtype = place_of(group), kernels.type_name(a.dtype)
        self._form, self._whole_form = form, form.times(place.mesh.ranks)
        self._rights = [fused.Right(right) for right in rights]
        self._returns, self._kept = return_a, kept
        self._shape = (math.prod(self._whole_form.rows), rights[0].shape[1])
        transposed = tuple(right.transposed for right in self._rights)
        sizes = self._shape[0], a.shape[-1], self._shape[1]
        key = ("activated", activation, transposed, biased, kept, a.dtype, *sizes)
        if key not in place.sizes:
            kernel = kernels.gather_activated(dtype, activation, transposed=transposed, biased=biased, kept=kept)
            array = place.array(sizes[:2], a.dtype, "shard", 0)
            place.sizes[key] = fused.Sizes(place, kernel, "A", array, sizes)
        self._sizes: fused.Sizes = place.sizes[key]
        count = len(rights)
        names = "BV"[:count] + "bv"[: count * biased] + "C" + "PQ"[: count * kept]
        turned = "".join(name for name, one in zip("BV", transposed, strict=False) if one)
        self._launch = self._sizes.launch(names, turned)

    def __call__(self, a: Any, rights: Sequence[Any], biases: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
        matrix = self._form.of(a)
        out = matrix.new_empty(self._shape)
        products = [matrix.new_empty(self._shape) for _ in rights] if self._kept else []
        taken = [right.of(given) for right, given in zip(self._rights, rights, strict=True)]
        taken += [fused.aligned(bias.contiguous()) for bias in biases]
        back = self._whole_form.back
        with self._sizes.turn:
            self._launch(*taken, out, *products, *self._sizes.given(matrix))
            whole = back(self._sizes.gathered(matrix)) if self._returns else None
        return back(out), whole, [back(product) for product in products]


def _by_torch(
    A: Any,
    Bs: Sequence[Any],
    biases: Sequence[Any],
    *,
    activation: str,
    dim: int,
    ranks: int,
    group: str,
    return_a: bool,
    kept: bool,
) -> tuple[Any, Any, list[Any]]:
    whole, products = plain.all_gather_matmul(A, Bs, dim, ranks, group, return_a=return_a)
    products = _with_biases(products, biases)
    found = ACTIVATIONS[activation](products[0])
    return found * products[1] if len(products) > 1 else found, whole, products if kept else []


def _with_biases(products: list[Any], biases: Sequence[Any]) -> list[Any]:
    return [product + bias for product, bias in zip(products, biases, strict=True)] if biases else products


def fake_activated(
    A: Any,
    Bs: Sequence[Any],
    biases: Sequence[Any],
    activation: str,
    gather_dim: int,
    group_name: str,
    *,
    return_A: bool = False,
    return_products: bool = False,
) -> tuple[Any, Any, list[Any]]:
    dim, ranks = _checked(A, Bs, biases, activation, gather_dim, group_name)
    last = dim == len(A.shape) - 1
    form = shapes.flat(A.shape, 0) if last else shapes.flat(A.shape, dim).times(ranks)
    inner = A.shape[-1] * ranks if last else A.shape[-1]
    count = len(Bs) if return_products else 0
    out, *products = (form.empty(A, Bs[0].shape[1]) for _ in range(1 + count))
    return out, form.empty(A, inner) if return_A else None, products


def activated_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    A, Bs, biases, ctx.activation, gather_dim, ctx.group = inputs
    _, whole, products = output
    ctx.dim = gather_dim % A.dim()
    ctx.set_materialize_grads(False)
    # What was gathered and the products are kept if they are returned, and computed again if not.
    ctx.gathered, ctx.kept, ctx.count, ctx.biases = whole is not None, bool(products), len(Bs), len(biases)
    ctx.save_for_backward(whole if ctx.gathered else A, *Bs, *(products or biases))


def activated_backward(ctx: Any, grad: Any, grad_whole: Any, grad_products: Sequence[Any]) -> tuple[Any, ...]:
    count, (a, *rest) = ctx.count, ctx.saved_tensors
    rights, behind = rest[:count], rest[count:]
    grads: list[Any] = [*grad_products] if ctx.kept else [None] * count
    if grad is not None:
        products = behind if ctx.kept else _again(ctx, a, rights, behind)
        through = [_GRADIENTS[ctx.activation](grad * products[1] if count > 1 else grad, products[0])]
        if count > 1:
            through.append(grad * ACTIVATIONS[ctx.activation](products[0]))
        grads = [one if other is None else one + other for one, other in zip(through, grads, strict=True)]
    grad_a, grad_rights = gradients.of_products(ctx, a, rights, grad_whole, grads)
    grad_biases: list[Any] = [None] * ctx.biases
    for at, (needed, one) in enumerate(zip(ctx.needs_input_grad[2], grads, strict=False)):
        if needed and one is not None:
            grad_biases[at] = gradients.rows(one, ctx.dim).sum(0)
    return grad_a, grad_rights, grad_biases, None, None, None


def _again(ctx: Any, a: Any, rights: Sequence[Any], biases: Sequence[Any]) -> list[Any]:
    """The products once more."""
    if ctx.gathered:
        products = [a @ right for right in rights]
    else:
        _, products = getattr(torch.ops.pkc, GATHER)(a, rights, ctx.dim, ctx.group, return_A=False)
    return _with_biases(products, biases)
