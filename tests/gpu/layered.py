"""Layers of `pkc.nn` for attention and for experts, against one process: checks that `tests.gpu.operators` runs."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np

from pkc import routing
from tests.gpu.attention import in_float64, shard, whole
from tests.gpu.calls import Failure
from tests.gpu.operands import Job, all_refused


def layers_compiled(job: Job) -> str:
    """Blocks break no graph of torch.compile, also with hooks and other modules in them."""
    torch, worst = job.torch, 0.0
    nn: Any = importlib.import_module("pkc.nn")
    torch.manual_seed(11)
    options = {"sequence_parallel": True, "device": job.device, "dtype": torch.bfloat16}
    gated = nn.TensorParallelMLP(128, 192, gated=True, activation="silu", **options)
    hooked = nn.TensorParallelMLP(128, 192, gated=True, activation="silu", **options)
    hooked.load_state_dict(gated.state_dict())
    hooked.up.register_forward_hook(lambda module, given, made: made * 1)
    hooked.gate = torch.nn.Sequential(hooked.gate)
    x = job.draw(65, 32, 2, 128)[job.rank]
    with torch.no_grad():
        for block in (gated, hooked, nn.TensorParallelAttention(128, 4, **options)):
            expected = block(x).double()
            found = torch.compile(block, fullgraph=True, backend="aot_eager")(x)
            worst = max(worst, job.compared(found, expected, 4 * job.rounding(x.dtype) * expected.abs().max()))
    torch._dynamo.reset()
    return f"3 blocks, error/bound {worst:.3f}"


def layered_attention(job: Job) -> str:
    """The attention block and the attention of a spread sequence, with their gradients."""
    torch, worst = job.torch, 0.0
    nn: Any = importlib.import_module("pkc.nn")

    for dtype, hidden, heads, groups in (("bfloat16", 128, 4, 2), ("bfloat16", 256, 2, 2)):
        kind = getattr(torch, dtype)
        for sequence_parallel, dim in ((True, 0), (False, 1)):
            torch.manual_seed(7)
            layers = [torch.nn.Linear(hidden, hidden // heads * n) for n in (heads, groups, groups)]
            layers = [layer.double() for layer in (*layers, torch.nn.Linear(hidden, hidden))]
            options = {"sequence_parallel": sequence_parallel, "sequence_dim": dim, "device": job.device}
            block = nn.TensorParallelAttention(hidden, heads, groups=groups, dtype=kind, **options)
            for mine, layer in zip((block.query, block.key, block.value, block.out), layers, strict=True):
                layer.to(job.device)
                for parameter in layer.parameters():
                    parameter.data = parameter.data.to(kind).double()
                mine.load_state_dict(mine.shard_of(layer.state_dict()))
            shape = (64, 2, hidden) if dim == 0 else (2, 64, hidden)
            x = job.draw(60, *shape, dtype=dtype)[0]
            given = (x.chunk(job.ranks, dim)[job.rank] if sequence_parallel else x).clone().requires_grad_()
            outer = job.draw(61, *shape, dtype=dtype)[0]
            part = partial(_part, job, dim) if sequence_parallel else _all
            found = block(given)
            found.backward(part(outer))
            exact = x.double().requires_grad_()
            first = exact if dim else exact.transpose(0, 1)
            q, k, v = (layer(first).unflatten(-1, (-1, hidden // heads)).transpose(1, 2) for layer in layers[:3])
            expected = layers[3](in_float64(torch, q, k, v, True)[0].transpose(1, 2).flatten(2))
            expected = expected if dim else expected.transpose(0, 1)
            expected.backward(outer.double())
            pairs = [(found, part(expected)), (given.grad, part(exact.grad))]
            pairs.append((block.out.weight.grad, layers[3].weight.grad.chunk(job.ranks, 1)[job.rank]))
            # Others in the places of layers are called, and so are hooks on them: keys come out as before.
            block.key.register_forward_hook(lambda module, given, made: 2 * made)
            block.value = torch.nn.Sequential(block.value)
            with torch.no_grad():
                block.key.weight /= 2
                block.key.bias /= 2
                pairs.append((block(given), part(expected)))
            for one, other in pairs:
                bound = 16 * job.rounding(one.dtype) * other.detach().abs().max()
                worst = max(worst, job.compared(one, other.detach(), bound))
    shards = [job.draw(seed, 1, 4, 64, 64) for seed in (62, 63, 64)]
    for method, zigzag in (("ring", True), ("ring", False), ("ulysses", False)):
        attend = nn.ContextParallelAttention(causal=True, method=method, zigzag=zigzag)
        found = attend(*(tensors[job.rank] for tensors in shards))
        q, k, v = (whole(job, tensors, zigzag).double() for tensors in shards)
        expected, _ = in_float64(torch, q, k, v, True)
        bound = 8 * job.rounding(found.dtype) * expected.abs().max()
        worst = max(worst, job.compared(found, shard(job, expected, zigzag), bound))
    for wrong in ({"method": "tree"}, {"method": "ulysses", "zigzag": True}):
        try:
            nn.ContextParallelAttention(**wrong)
        except ValueError:
            continue
        raise Failure(f"not refused: {wrong}")
    return f"error/bound {worst:.3f}"


def _part(job: Job, dim: int, tensor: Any) -> Any:
    """This rank's shard along a dimension."""
    return tensor.chunk(job.ranks, dim)[job.rank]


def _all(tensor: Any) -> Any:
    return tensor


def _trained(job: Job, moe: Any, exact: dict[str, Any]) -> float:
    """The gradients of all that a mixture of experts is made of, against autograd in float64 of all tokens."""
    torch, worst = job.torch, 0.0
    x, outer = (job.draw(seed, 96, exact["router.weight"].shape[1]) for seed in (75, 76))
    mine = x[job.rank].clone().requires_grad_()
    moe(mine).backward(outer[job.rank])
    whole = torch.cat(x).double().requires_grad_()
    known = {name: tensor.clone().requires_grad_() for name, tensor in exact.items()}
    # The choices are those of the layer, whose logits are rounded.
    choices = torch.cat([moe.router(part).float().topk(moe.top, -1)[1] for part in x])
    weights = (whole @ known["router.weight"].t()).gather(1, choices).softmax(-1)
    total = torch.zeros_like(whole)
    for number in range(len(known["gate"])):
        token, choice = torch.where(choices == number)
        rows = whole[token]
        made = torch.nn.functional.silu(rows @ known["gate"][number]) * (rows @ known["up"][number])
        total = total.index_add(0, token, made @ known["down"][number] * weights[token, choice].unsqueeze(-1))
    total.backward(torch.cat(outer).double())
    pairs = [(mine.grad, whole.grad.chunk(job.ranks)[job.rank])]
    for name in ("gate", "up", "down"):
        pairs.append((getattr(moe, name).grad, known[name].grad.chunk(job.ranks)[job.rank]))
    pairs.append((moe.router.weight.grad, known["router.weight"].grad))
    for one, other in pairs:
        bound = 24 * job.rounding(torch.bfloat16) * other.abs().max()
        worst = max(worst, job.compared(one, other, bound))
    return worst


def tabled(job: Job) -> str:
    """The tables that the operator makes of choices, against those of `pkc.routing`."""
    torch: Any = job.torch
    made: Any = importlib.import_module("pkc.torch.routes")
    random, count = np.random.default_rng(5), 0
    for ranks, tokens, top, local in ((1, 40, 3, 2), (2, 8, 1, 1), (3, 100, 2, 4), (job.ranks, 2000, 8, 16)):
        drawn = random.integers(-1, local * ranks, (tokens * ranks, top)).astype(np.int32)
        for choices in (drawn, drawn * 0 - 1, drawn * 0 + local, np.repeat(drawn[:, :1], top, 1)):
            most = routing.tables(choices, local * ranks, ranks=ranks).rows.shape[1]
            where = routing.places(choices, local * ranks, ranks=ranks, step=most)
            given = torch.from_numpy(choices).to(job.device)
            each = [made.routes(given, local, rank=rank, ranks=ranks) for rank in range(ranks)]
            first = np.stack([found.first.cpu().numpy() for found in each])
            expert, row = np.divmod(where[..., 1], most)
            where[..., 1] = np.where(where[..., 0] < 0, -1, first[where[..., 0], expert] + row)
            for rank, found in enumerate(each):
                own = routing.tables(choices, local * ranks, rank=rank, ranks=ranks)
                rows = np.full(made.room(len(choices), top, local), -1, np.int32)
                for number, start in enumerate(first[rank]):
                    rows[start : start + own.count[number]] = own.rows[number, : own.count[number]]
                back = where[:, rank * tokens : (rank + 1) * tokens]
                pairs = (found.rows, rows), (found.count, own.count), (found.places, back)
                if not all(np.array_equal(tensor.cpu().numpy(), table) for tensor, table in pairs):
                    raise Failure(f"tables of rank {rank} of {ranks}, {top} of {local} experts each")
                count += 1
    return f"{count} tables"


def routed_in_graphs(job: Job) -> str:
    """A CUDA graph of a mixture of experts: replays give what calls give, on new tokens that choose others."""
    torch = job.torch
    if job.device == "cpu":
        return "not on a CPU"
    tokens, hidden, local, top = 96, 128, 2, 2
    x = job.draw(80, tokens, hidden)[job.rank]
    gate, up, down = (job.draw(seed, local, hidden, hidden)[job.rank] * hidden**-0.5 for seed in (81, 82, 83))
    drawn = [job.draw(seed, tokens, local * job.ranks)[job.rank].float().topk(top, -1) for seed in (84, 85)]
    weights, choices = drawn[0][0].softmax(-1), drawn[0][1].int()

    def call() -> Any:
        return job.operators.moe_mlp(x, choices, weights, gate, up, down, job.group)

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    others = (drawn[1][1].int(), drawn[1][1].int() * 0 + 1, torch.where(drawn[0][1] % 2 == 0, drawn[0][1], -1).int())
    for number, other in enumerate(others):
        x.copy_(job.draw(86 + number, tokens, hidden)[job.rank])
        choices.copy_(other)
        expected = call().clone()
        for _ in range(5):
            graph.replay()
        torch.cuda.synchronize()
        if not torch.equal(out, expected):
            raise Failure(f"a replay with choices {number} gives something else")
    if not out.any():
        raise Failure("tokens get nothing")
    return f"{5 * len(others)} replays"


def routed(job: Job) -> str:
    """A mixture of experts, with even and uneven choices and tokens of none, against torch in float64."""
    torch, worst = job.torch, 0.0
    nn: Any = importlib.import_module("pkc.nn")

    tokens, hidden, inner, experts, top = 96, 128, 192, 4, 2
    torch.manual_seed(3)
    moe = nn.MoE(hidden, inner, experts, top, device=job.device, dtype=torch.bfloat16)
    state = {"router.weight": job.draw(70, experts, hidden)[0]}
    for seed, (name, shape) in enumerate(
        {"gate": (hidden, inner), "up": (hidden, inner), "down": (inner, hidden)}.items()
    ):
        state[name] = job.draw(71 + seed, experts, *shape)[0] * shape[0] ** -0.5
    moe.load_state_dict(moe.shard_of(state))
    exact = {name: tensor.double() for name, tensor in state.items()}

    def made(x: Any, choices: Any, weights: Any) -> Any:
        total = torch.zeros_like(x, dtype=torch.float64)
        for number in range(experts):
            token, choice = torch.where(choices == number)
            rows = x.double()[token]
            gate = rows @ exact["gate"][number]
            found = gate * gate.sigmoid() * (rows @ exact["up"][number]) @ exact["down"][number]
            total.index_add_(0, token, found * weights.double()[token, choice].unsqueeze(-1))
        return total

    x = job.draw(74, tokens, hidden)[job.rank]
    with torch.no_grad():
        logits, choices = moe.router(x).float().topk(top, -1)
        expected = made(x, choices, logits.softmax(-1))
        worst = max(worst, job.compared(moe(x), expected, 16 * job.rounding(x.dtype) * expected.abs().max()))
        # All tokens of all ranks go to one expert, and some nowhere.
        for few in (choices.int() * 0 + 1, torch.where(choices % 2 == 0, choices, -1).int()):
            weights = torch.rand(tokens, top, device=x.device)
            found = job.operators.moe_mlp(x, few, weights, moe.gate, moe.up, moe.down, job.group)
            expected = made(x, few, weights)
            worst = max(worst, job.compared(found, expected, 16 * job.rounding(x.dtype) * expected.abs().max() + 1e-9))
    given = x, choices.int(), logits.softmax(-1), *(t.detach() for t in (moe.gate, moe.up, moe.down)), job.group
    torch.library.opcheck(job.operators.moe_mlp_backward.default, (x, *given), rtol=1e-2, atol=1e-1)
    trained = x.clone().requires_grad_(), given[1], given[2].requires_grad_(), moe.gate, moe.up, moe.down, job.group
    torch.library.opcheck(job.operators.moe_mlp.default, trained, rtol=1e-2, atol=1e-1)
    worst = max(worst, _trained(job, moe, exact))
    wrong = (
        ("experts cannot be shared", lambda: nn.MoE(8, 8, job.ranks + 1, 1)),
        ("not int32", lambda: job.operators.moe_mlp(x, choices.long(), *given[2:])),
        ("do not fit together", lambda: job.operators.moe_mlp(x[:, :64], *given[1:])),
    )
    all_refused(wrong)
    return f"error/bound {worst:.3f}"
