"""The attention operators of `torch.ops.pkc` against torch in float64: checks that `tests.gpu.operators` runs."""

from __future__ import annotations

import itertools
from typing import Any

from tests.gpu.calls import Failure
from tests.gpu.operands import Job, all_refused

ALONE = ((1, 4, 2, 150, 200, 64, False), (2, 4, 4, 130, 130, 128, True), (1, 6, 2, 70, 200, 64, True))
"""Batch, heads of Q, heads of K, rows, keys, features, whether causal."""

SPREAD = (("ring_attention", {}), ("ring_attention", {"causal": True, "zigzag": True}), ("ulysses_attention", {}))
SPREAD_SHAPE = (1, 4, 96, 64)
"""Of a rank's shard."""
SPREAD_SHAPES = (
    (SPREAD_SHAPE, SPREAD_SHAPE),
    (SPREAD_SHAPE, (1, 2, 96, 64)),
    ((1, 2, 38, 64), (1, 2, 38, 64)),
    ((1, 2, 300, 128), (1, 1, 300, 128)),
    ((1, 2, 32, 160), (1, 2, 32, 160)),
)
"""The same of Q, and of K and V: heads that two of Q share, rows of sums that begin anywhere, several blocks, heads for
which there is no kernel for gradients."""


def attended(job: Job) -> str:
    """Attention of one GPU: results, log-sum-exps and gradients."""
    torch, worst = job.torch, 0.0
    for dtype in ("bfloat16", "float16", *(["float64"] if job.device == "cpu" else [])):
        for batch, heads, groups, rows, keys, features, causal in ALONE[:1] if dtype == "float16" else ALONE:
            q = job.draw(40, batch, heads, rows, features, dtype=dtype)[0]
            k, v = (job.draw(seed, batch, groups, keys, features, dtype=dtype)[0] for seed in (41, 42))
            grad = job.draw(43, batch, heads, rows, features, dtype=dtype)[0]
            mine = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
            out, sums = job.operators.attention(*mine, causal)
            out.backward(grad)
            exact = [tensor.double().requires_grad_() for tensor in (q, k, v)]
            expected, logs = in_float64(torch, *exact, causal)
            expected.backward(grad.double())
            worst = max(worst, job.compared(sums, logs.detach(), 0.01 + 0 * logs.detach()))
            found = [out, *(tensor.grad for tensor in mine)]
            for one, other in zip(found, [expected, *(tensor.grad for tensor in exact)], strict=True):
                worst = max(worst, job.compared(one, other.detach(), _bound(job, one, other)))
    return f"error/bound {worst:.3f}"


def spread(job: Job) -> str:
    """Attention over a sequence that is spread over the ranks: results and gradients."""
    torch, worst = job.torch, 0.0
    types = "bfloat16", *(["float64"] if job.device == "cpu" else [])
    for dtype, (many, few), (name, options) in itertools.product(types, SPREAD_SHAPES, SPREAD):
        shapes = many, few, few, many
        shards = [job.draw(44 + number, *shape, dtype=dtype) for number, shape in enumerate(shapes)]
        mine = [tensors[job.rank].clone().requires_grad_() for tensors in shards[:3]]
        found = getattr(job.operators, name)(*mine, job.group, **options)
        out, sums = found if name == "ring_attention" else (found, None)
        out.backward(shards[3][job.rank])
        zigzag = options.get("zigzag", False)
        exact = [whole(job, tensors, zigzag).double().requires_grad_() for tensors in shards[:3]]
        expected, logs = in_float64(torch, *exact, options.get("causal", False))
        expected.backward(whole(job, shards[3], zigzag).double())
        if sums is not None:
            part = shard(job, logs.detach(), zigzag)
            worst = max(worst, job.compared(sums, part, 0.01 + 0 * part))
        for one, other in zip(
            [out, *(tensor.grad for tensor in mine)], [expected, *(tensor.grad for tensor in exact)], strict=True
        ):
            part = shard(job, other.detach(), zigzag)
            worst = max(worst, job.compared(one, part, _bound(job, one, other)))
    return f"error/bound {worst:.3f}"


def asked(job: Job) -> str:
    """What torch asks of them: `opcheck`, gradients in float64, graphs without breaks, exported programs."""
    torch = job.torch
    dtype = "float32" if job.device == "cpu" else "bfloat16"
    q, k, v = (job.draw(seed, *SPREAD_SHAPE, dtype=dtype)[job.rank].requires_grad_() for seed in (48, 49, 50))
    few = [tensor.detach()[:, ::2].contiguous().requires_grad_() for tensor in (k, v)]
    out, sums = job.operators.attention(q.detach(), *(tensor.detach() for tensor in few), True)
    ring = job.operators.ring_attention(q.detach(), k.detach(), v.detach(), job.group, True, None, True)
    for name, arguments, options in (
        ("attention", (q, *few, True), {}),
        ("attention_backward", (out, q.detach(), *(tensor.detach() for tensor in few), out, sums, True), {}),
        ("ring_attention", (q, k, v, job.group, True, None, True), {}),
        ("ulysses_attention", (q, k, v, job.group), {"scale": 0.5}),
        ("ring_attention_backward", (out, q.detach(), k.detach(), v.detach(), *ring, job.group, True, None, True), {}),
        ("ulysses_attention_backward", (out, q.detach(), k.detach(), v.detach(), job.group, True), {}),
    ):
        torch.library.opcheck(getattr(job.operators, name).default, arguments, options, rtol=1e-2, atol=1e-1)
    small = [job.draw(seed, 1, 4, 5, 4, dtype="float64")[0].requires_grad_() for seed in (51, 52, 53)]
    few = [tensor.detach()[:, :2].contiguous().requires_grad_() for tensor in small[1:]]
    for causal in (False, True):
        torch.autograd.gradcheck(lambda *of: job.operators.attention(*of, causal)[0], (small[0], *few))  # noqa: B023

    def function(q: Any, k: Any, v: Any) -> Any:
        a, _ = torch.ops.pkc.attention(q, k, v, True)
        return torch.ops.pkc.ring_attention(a, k, v, job.group, True, None, True)[0]

    backend = "aot_eager" if job.device == "cpu" else "inductor"
    results: list[list[Any]] = []
    for form in (function, torch.compile(function, fullgraph=True, backend=backend)):
        given = [tensor.detach().clone().requires_grad_() for tensor in (q, k, v)]
        found = form(*given)
        found.sum().backward()
        results.append([found, *(tensor.grad for tensor in given)])
    for eager, graph in zip(*results, strict=True):
        job.compared(graph, eager.double(), 8 * job.rounding(eager.dtype) * eager.double().abs().max())

    class Both(torch.nn.Module):
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return function(q, k, v)

    given = tuple(tensor.detach() for tensor in (q, k, v))
    program = torch.export.export(Both(), given)
    names = [str(node.target) for node in program.graph.nodes if str(node.target).startswith("pkc.")]
    if names != ["pkc.attention.default", "pkc.ring_attention.default"]:
        raise Failure(f"the graph has {names}")
    if not torch.equal(program.module()(*given), function(*given)):
        raise Failure("the program gives something else")
    return backend


def attended_in_graphs(job: Job) -> str:
    """CUDA graphs of both: replays give what calls give, on new operands."""
    torch = job.torch
    if job.device == "cpu":
        return "not on a CPU"
    q, k, v = (job.draw(seed, *SPREAD_SHAPE)[job.rank] for seed in (54, 55, 56))

    def function() -> Any:
        a, _ = job.operators.attention(q, k, v, True)
        b, _ = job.operators.ring_attention(a, k, v, job.group)
        return job.operators.ulysses_attention(b, k, v, job.group)

    def gradients() -> Any:
        out, sums = job.operators.ring_attention(q, k, v, job.group, True, None, True)
        found = job.operators.ring_attention_backward(q, q, k, v, out, sums, job.group, True, None, True)
        return torch.cat([function(), *found])

    gradients()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = gradients()
    q.copy_(job.draw(57, *SPREAD_SHAPE)[job.rank])
    expected = gradients().clone()
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    if not torch.equal(out, expected):
        raise Failure("a replay gives something else")
    return "20 replays"


def beside_each_other(job: Job) -> str:
    """Gradients of many scores, whose kernels run on two streams: those of one stream, and of replays of a graph."""
    torch = job.torch
    if job.device == "cpu":
        return "not on a CPU"
    q, k, v, grad = (job.draw(seed, 1, 4, 8192, 64)[job.rank] for seed in (60, 61, 62, 63))
    out, sums = job.operators.attention(q, k, v)

    def gradients(heads: slice) -> list[Any]:
        given = (tensor[:, heads].contiguous() for tensor in (grad, q, k, v, out, sums))
        return list(job.operators.attention_backward(*given))

    each = [gradients(slice(head, head + 1)) for head in range(4)]
    expected = [torch.cat(parts, 1) for parts in zip(*each, strict=True)]
    found = [gradients(slice(None)) for _ in range(5)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found.append(gradients(slice(None)))
    for tensor in found[-1]:
        tensor.zero_()
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    if not all(torch.equal(one, other) for some in found for one, other in zip(some, expected, strict=True)):
        raise Failure("two streams give something else")
    return f"{len(found)} times"


def unattended(job: Job) -> str:
    """What no operator attends to."""
    q, k = job.draw(58, 1, 4, 8, 16)[job.rank], job.draw(59, 1, 3, 8, 16)[job.rank]
    wrong = (
        ("cannot share 3 of K and V evenly", lambda: job.operators.attention(q, k, k)),
        ("Q is torch.bfloat16", lambda: job.operators.attention(q, q.float(), q.float())),
        ("tensors have four dimensions", lambda: job.operators.attention(q[0], q[0], q[0])),
        ("must be greater than 0", lambda: job.operators.attention(q, q, q, False, -1.0)),
        ("4 positions of Q and 8 of K", lambda: job.operators.ring_attention(q[:, :, :4], q, q, job.group)),
    )
    return all_refused(wrong)


def in_float64(torch: Any, q: Any, k: Any, v: Any, causal: bool) -> tuple[Any, Any]:
    """Attention by its definition, and the log-sum-exp of each row to base 2."""
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        rows, keys = scores.shape[-2:]
        later = torch.ones(rows, keys, dtype=torch.bool, device=q.device).triu(keys - rows + 1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores.softmax(-1) @ v, scores.logsumexp(-1) / 0.6931471805599453


def halves(job: Job, rank: int, zigzag: bool) -> list[int]:
    """Of 2 ranks x 2 halves those that a rank has, in its order."""
    return [rank, 2 * job.ranks - 1 - rank] if zigzag else [2 * rank, 2 * rank + 1]


def whole(job: Job, shards: list[Any], zigzag: bool) -> Any:
    """The shards of all ranks in the order of positions."""
    found: dict[int, Any] = {}
    for rank, tensor in enumerate(shards):
        found |= dict(zip(halves(job, rank, zigzag), tensor.chunk(2, 2), strict=True))
    return job.torch.cat([found[number] for number in sorted(found)], 2)


def shard(job: Job, tensor: Any, zigzag: bool) -> Any:
    """This rank's shard."""
    parts = tensor.chunk(2 * job.ranks, 2)
    return job.torch.cat([parts[number] for number in halves(job, job.rank, zigzag)], 2)


def _bound(job: Job, found: Any, exact: Any) -> Any:
    """Roundings of probabilities, of results and of gradients to the type, relative to what such sums are."""
    exact = exact.detach()
    return 8 * job.rounding(found.dtype) * exact.abs().max() + 1e-12
