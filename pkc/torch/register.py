"""Registers the operators with torch: their schemas, implementations, shapes and gradients."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pkc.torch import activated, attention, experts, gradients, operators
from pkc.torch.activated import ACTIVATED
from pkc.torch.attention import ATTENTION, BACKWARD, RING, RING_BACKWARD, ULYSSES, ULYSSES_BACKWARD
from pkc.torch.casts import autocast
from pkc.torch.experts import MOE, MOE_BACKWARD
from pkc.torch.operators import GATHER, REDUCE, SCATTER

torch: Any = importlib.import_module("torch")
_autograd: Any = importlib.import_module("torch._library.autograd")
_library: Any = torch.library.Library("pkc", "DEF")

_OPERATORS = (
    (
        f"{GATHER}(Tensor A, Tensor[] Bs, int gather_dim, str group_name, *, bool return_A = True)"
        " -> (Tensor?, Tensor[])",
        operators.fused_all_gather_matmul,
        operators.fake_gather,
        gradients.gather_context,
        gradients.gather_backward,
    ),
    (
        f"{ACTIVATED}(Tensor A, Tensor[] Bs, Tensor[] biases, str activation, int gather_dim, str group_name,"
        " *, bool return_A = False, bool return_products = False) -> (Tensor, Tensor?, Tensor[])",
        activated.fused_all_gather_matmul_activation,
        activated.fake_activated,
        activated.activated_context,
        activated.activated_backward,
    ),
    (
        f"{SCATTER}(Tensor A, Tensor B, str reduce_op, int scatter_dim, str group_name) -> Tensor",
        operators.fused_matmul_reduce_scatter,
        operators.fake_scatter,
        gradients.scatter_context,
        gradients.scatter_backward,
    ),
    (
        f"{REDUCE}(Tensor A, Tensor B, str reduce_op, str group_name) -> Tensor",
        operators.fused_matmul_all_reduce,
        operators.fake_reduce,
        gradients.reduce_context,
        gradients.reduce_backward,
    ),
    (
        "replicated_matmul(Tensor A, Tensor B, str group_name) -> Tensor",
        operators.replicated_matmul,
        operators.fake_replicated_matmul,
        gradients.replicated_matmul_context,
        gradients.replicated_matmul_backward,
    ),
    (
        "replicated(Tensor A, str group_name) -> Tensor",
        operators.replicated,
        operators.fake_replicated,
        gradients.replicated_context,
        gradients.replicated_backward,
    ),
    (
        "all_reduce(Tensor A, str group_name) -> Tensor",
        operators.all_reduce,
        operators.fake_all_reduce,
        gradients.replicated_context,
        gradients.all_reduce_backward,
    ),
    (
        "all_gather(Tensor A, int gather_dim, str group_name) -> Tensor",
        operators.all_gather,
        operators.fake_all_gather,
        gradients.moved_context,
        gradients.all_gather_backward,
    ),
    (
        "reduce_scatter(Tensor A, int scatter_dim, str group_name) -> Tensor",
        operators.reduce_scatter,
        operators.fake_reduce_scatter,
        gradients.moved_context,
        gradients.reduce_scatter_backward,
    ),
    (
        f"{ATTENTION}(Tensor Q, Tensor K, Tensor V, bool causal = False, float? scale = None) -> (Tensor, Tensor)",
        attention.attention,
        attention.fake_attention,
        attention.attention_context,
        attention.attention_gradients,
    ),
    (
        f"{BACKWARD}(Tensor grad, Tensor Q, Tensor K, Tensor V, Tensor O, Tensor L, bool causal = False,"
        " float? scale = None) -> (Tensor, Tensor, Tensor)",
        attention.attention_backward,
        attention.fake_backward,
        None,
        gradients.none_of_gradients,
    ),
    (
        f"{RING}(Tensor Q, Tensor K, Tensor V, str group_name, bool causal = False, float? scale = None,"
        " bool zigzag = False) -> (Tensor, Tensor)",
        attention.ring_attention,
        attention.fake_ring,
        attention.ring_context,
        attention.ring_gradients,
    ),
    (
        f"{RING_BACKWARD}(Tensor grad, Tensor Q, Tensor K, Tensor V, Tensor O, Tensor L, str group_name,"
        " bool causal = False, float? scale = None, bool zigzag = False) -> (Tensor, Tensor, Tensor)",
        attention.ring_attention_backward,
        attention.fake_ring_backward,
        None,
        gradients.none_of_gradients,
    ),
    (
        f"{ULYSSES}(Tensor Q, Tensor K, Tensor V, str group_name, bool causal = False, float? scale = None) -> Tensor",
        attention.ulysses_attention,
        attention.fake_ulysses,
        attention.ulysses_context,
        attention.ulysses_gradients,
    ),
    (
        f"{ULYSSES_BACKWARD}(Tensor grad, Tensor Q, Tensor K, Tensor V, str group_name, bool causal = False,"
        " float? scale = None) -> (Tensor, Tensor, Tensor)",
        attention.ulysses_attention_backward,
        attention.fake_ulysses_backward,
        None,
        gradients.none_of_gradients,
    ),
    (
        f"{MOE}(Tensor X, Tensor choices, Tensor weights, Tensor gate, Tensor up, Tensor down, str group_name)"
        " -> Tensor",
        experts.moe_mlp,
        experts.fake_moe,
        experts.moe_context,
        experts.moe_gradients,
    ),
    (
        f"{MOE_BACKWARD}(Tensor grad, Tensor X, Tensor choices, Tensor weights, Tensor gate, Tensor up, Tensor down,"
        " str group_name) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
        experts.moe_mlp_backward,
        experts.fake_moe_backward,
        None,
        gradients.none_of_gradients,
    ),
)

_DEVICES = ("CPU", "CUDA")
_MULTIPLIES = (GATHER, ACTIVATED, SCATTER, REDUCE, "replicated_matmul", ATTENTION, RING, ULYSSES, MOE)
_KEPT = {MOE: 2}
"""The argument whose element type autocast leaves: the weights of experts."""
_BELOW = torch._C._after_autograd_keyset


def _direct(device: str, implementation: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
    """Autograd's kernel for a device: the implementation, without another way through the dispatcher, where no gradient
    is wanted and nothing traces, transforms or intercepts operators; `general` otherwise."""
    alone = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, device)).raw_repr()

    def kernel(keyset: Any, *arguments: Any, **keywords: Any) -> Any:
        wanted = torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments)
        if wanted or (keyset & _BELOW).raw_repr() != alone:
            return general(keyset, *arguments, **keywords)
        with torch._C._AutoDispatchBelowAutograd():
            return implementation(*arguments, **keywords)

    return kernel


for _schema, _implementation, _fake, _context, _backward in _OPERATORS:
    _name = _schema.partition("(")[0]
    # Strides are part of what a graph knows: a right operand by columns must not become one by rows.
    _library.define(_schema, tags=(torch.Tag.needs_fixed_stride_order,))
    torch.library.register_fake(f"pkc::{_name}", _fake, lib=_library)
    torch.library.register_autograd(f"pkc::{_name}", _backward, setup_context=_context, lib=_library)
    _info = _autograd.Info(_backward, _context)
    _general = _autograd.make_autograd_impl(getattr(torch.ops.pkc, _name).default, _info)
    for _device in _DEVICES:
        _library.impl(_name, _implementation, _device)
        _casting = autocast(_device, getattr(torch.ops.pkc, _name).default, _name in _MULTIPLIES, _KEPT.get(_name))
        _library.impl(_name, _casting, f"Autocast{_device}")
        _library.impl(_name, _direct(_device, _implementation, _general), f"Autograd{_device}", with_keyset=True)

OPERATORS = tuple(schema.partition("(")[0] for schema, *_ in _OPERATORS)
"""The names of the operators in `torch.ops.pkc`."""
