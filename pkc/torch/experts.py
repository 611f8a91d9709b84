"""What the operator of a mixture of experts in `torch.ops.pkc` does, and the shape of its result."""

from __future__ import annotations

import importlib
from typing import Any

from pkc.torch import attending, fused, kernels, plain
from pkc.torch.attending import as_kernels_read
from pkc.torch.groups import Place, place_of
from pkc.torch.launches import Launch, loaded
from pkc.torch.operators import ranks_of
from pkc.torch.routes import room, routes

torch: Any = importlib.import_module("torch")
_c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")

MOE, MOE_BACKWARD = "moe_mlp", "moe_mlp_backward"

_ROW = 8
"""Elements of 16 bits that TMA needs rows to be a multiple of."""


def moe_mlp(X: Any, choices: Any, weights: Any, gate: Any, up: Any, down: Any, group_name: str) -> Any:
    """The sum of what the chosen experts make of each token, `down(silu(gate(x)) * up(x))`, each times its weight.

    `X` [tokens, hidden] are this rank's tokens, as many as on each other rank; `choices` [tokens, top] the experts of
    each, counted through all ranks, -1 for none; `weights` [tokens, top] are of f32. `gate` and `up` [experts of a
    rank, hidden, inner] and `down` [experts of a rank, inner, hidden] are this rank's experts. The tables of rows are
    made on the GPU, from the choices of all ranks, and have room for any. Raises `ValueError` and `PkcError`.
    """
    _check(X, choices, weights, gate, up, down)
    ranks = ranks_of(group_name)
    reason = _obstacle(X, choices, gate, ranks)
    if reason:
        if X.device.type == "cuda" and ranks > 1:
            fused.tell(MOE, reason)
        chosen, by = (plain.gather(each, 0, ranks, group_name) for each in (choices, weights))
        return _by_matmuls(X, chosen, by, (gate, up, down), ranks, group_name)
    place, rank = place_of(group_name), _c10d._resolve_process_group(group_name).rank()
    key = MOE, X.dtype, X.shape, choices.shape[1], gate.shape
    if key not in place.sizes:
        place.sizes[key] = _prepared(place, X, choices, gate, ranks)
    shard, mine, whole, gather, launch = place.sizes[key]
    out = torch.empty_like(X, memory_format=torch.contiguous_format)
    with place.turn:
        mine.copy_(choices)
        gather()
        made = routes(whole, len(gate), rank=rank, ranks=ranks)
        shard.copy_(X)
        tables = made.rows, made.first, made.count, made.places, weights.t().contiguous()
        launch(*tables, *map(as_kernels_read, (gate, up, down)), out)
    return out


def _prepared(place: Place, X: Any, choices: Any, gate: Any, ranks: int) -> tuple[Any, ...]:
    """This rank's shards of tokens and of choices, the choices of all ranks, the launch that gathers these, and that of
    the experts."""
    (tokens, hidden), top, (experts, _, inner) = X.shape, choices.shape[1], gate.shape
    whole, rows = tokens * ranks, room(tokens * ranks, top, experts)
    x, y = (
        place.array((whole, hidden), X.dtype, "shard", 0),
        place.array((rows, hidden), X.dtype, "symmetric", number=1),
    )
    chosen = place.array((whole, top), choices.dtype, "shard", 0, number=2)
    gathered = place.array((whole, top), choices.dtype, "replicate", number=3)
    loads = loaded(place, kernels.example("all_gather", "int32"), {"M": whole, "N": top})
    gather = Launch(loads, (), {"X": chosen, "Y": gathered})
    dims = {"S": whole, "H": hidden, "R": rows, "E": experts, "K": top, "T": tokens, "N": inner}
    names = "rows", "first", "count", "places", "weight", "gate", "up", "down", "O"
    launch = Launch(loaded(place, kernels.experts(kernels.type_name(X.dtype)), dims), names, {"X": x, "Y": y})
    return x.tensor(), chosen.tensor(), gathered.tensor(), gather, launch


def _obstacle(X: Any, choices: Any, gate: Any, ranks: int) -> str:
    """Why no kernel does it; empty if one does."""
    if X.device.type != "cuda":
        return "tensors are on no GPU"
    if ranks == 1:
        return "the group has one rank"
    if not choices.numel() or not gate.numel():
        return "a tensor has no elements"
    if gate.shape[1] % _ROW or gate.shape[2] % _ROW:
        return f"rows of {gate.shape[1]} and {gate.shape[2]} elements; kernels take multiples of {_ROW}"
    return attending.unknown(X)


def _by_matmuls(X: Any, choices: Any, weights: Any, experts: tuple[Any, ...], ranks: int, group: str) -> Any:
    """The same by gathering all tokens, torch's matmuls, and a sum over the ranks in f32."""
    first = _c10d._resolve_process_group(group).rank() * len(experts[0])
    whole = plain.gather(X, 0, ranks, group)
    total = torch.zeros(whole.shape, device=X.device, dtype=torch.promote_types(X.dtype, torch.float32))
    for number, (gate, up, down) in enumerate(zip(*experts, strict=True)):
        tokens, choice = torch.where(choices == first + number)
        rows = whole[tokens]
        made = torch.nn.functional.silu(rows @ gate) * (rows @ up) @ down
        total.index_add_(0, tokens, made.to(total.dtype) * weights[tokens, choice].unsqueeze(-1).to(total.dtype))
    return plain.scatter(total, 0, ranks, group).to(X.dtype)


def moe_mlp_backward(
    grad: Any, X: Any, choices: Any, weights: Any, gate: Any, up: Any, down: Any, group_name: str
) -> tuple[Any, Any, Any, Any, Any]:
    """The gradients of X, weights, gate, up and down, from that of what `moe_mlp` gave: all tokens are gathered, each
    rank computes its experts again by torch's matmuls, and the gradients of tokens are summed over the ranks, in f32
    as all that is no matmul."""
    ranks, rank = ranks_of(group_name), _c10d._resolve_process_group(group_name).rank()
    x, outer, chosen, by = (plain.gather(each, 0, ranks, group_name) for each in (X, grad, choices, weights))
    wide = torch.promote_types(X.dtype, torch.float32)
    of_x, of_weights = torch.zeros(x.shape, device=X.device, dtype=wide), torch.zeros_like(by)
    of_experts = [torch.empty_like(each, memory_format=torch.contiguous_format) for each in (gate, up, down)]
    for number in range(len(gate)):
        token, choice = torch.where(chosen == rank * len(gate) + number)
        rows, given, weight = x[token], outer[token], by[token, choice].unsqueeze(-1)
        g, u, inner = (
            (left @ right).to(wide)
            for left, right in ((rows, gate[number]), (rows, up[number]), (given, down[number].t()))
        )
        sigmoid = g.sigmoid()
        made = g * sigmoid * u
        of_weights[token, choice] = (made * inner).sum(-1).to(by.dtype)
        inner = inner * weight
        of_gate = (inner * u * sigmoid * (1 + g * (1 - sigmoid))).to(X.dtype)
        of_up = (inner * g * sigmoid).to(X.dtype)
        factors = (rows.t(), of_gate), (rows.t(), of_up), ((made * weight).to(X.dtype).t(), given)
        for total, (left, right) in zip(of_experts, factors, strict=True):
            total[number] = left @ right
        of_x.index_add_(0, token, (of_gate @ gate[number].t()).to(wide) + of_up @ up[number].t())
    mine = [plain.scatter(total, 0, ranks, group_name).contiguous() for total in (of_x, of_weights)]
    return mine[0].to(X.dtype), mine[1], *of_experts


def moe_context(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.group = inputs
    ctx.save_for_backward(*tensors)


def moe_gradients(ctx: Any, grad: Any) -> tuple[Any, ...]:
    of_x, of_weights, *of_experts = torch.ops.pkc.moe_mlp_backward(grad, *ctx.saved_tensors, ctx.group)
    return of_x, None, of_weights, *of_experts, None


def fake_moe_backward(
    grad: Any, X: Any, choices: Any, weights: Any, gate: Any, up: Any, down: Any, group_name: str
) -> tuple[Any, ...]:
    return tuple(tensor.new_empty(tensor.shape) for tensor in (X, weights, gate, up, down))


def _check(X: Any, choices: Any, weights: Any, gate: Any, up: Any, down: Any) -> None:
    if len(X.shape) != 2 or len(gate.shape) != 3:
        raise ValueError(f"{MOE}: X has two dimensions and weights of experts have three")
    experts, hidden, inner = gate.shape
    if X.shape[1] != hidden or up.shape != gate.shape or tuple(down.shape) != (experts, inner, hidden):
        shapes = ", ".join(str(list(tensor.shape)) for tensor in (X, gate, up, down))
        raise ValueError(f"{MOE}: the shapes of X, gate, up and down do not fit together: {shapes}")
    if choices.shape != weights.shape or len(choices.shape) != 2 or choices.shape[0] != X.shape[0]:
        raise ValueError(f"{MOE}: choices are {list(choices.shape)} and weights {list(weights.shape)}")
    for name, tensor, dtype in (("choices", choices, "int32"), ("weights", weights, "float32")):
        if tensor.dtype != getattr(torch, dtype):
            raise ValueError(f"{MOE}: {name} are {tensor.dtype}, not {dtype}")
    if not (X.dtype == gate.dtype == up.dtype == down.dtype):
        raise ValueError(f"{MOE}: X is {X.dtype}, gate {gate.dtype}, up {up.dtype}, down {down.dtype}")


def fake_moe(X: Any, choices: Any, weights: Any, gate: Any, up: Any, down: Any, group_name: str) -> Any:
    _check(X, choices, weights, gate, up, down)
    return X.new_empty(X.shape)
