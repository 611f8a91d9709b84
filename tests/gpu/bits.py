"""What has the same bits as what: the rows of the table in docs/pytorch.md, each of them a function here.

`tests.gpu.operators` runs them. Without GPUs torch's matmuls do the work, of which no more than `ranks` is promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.gpu.calls import Failure
from tests.gpu.operands import Job

Pairs = Iterator[tuple[str, Any, Any]]
"""What differs if two tensors do."""

TILES: Sequence[dict[str, str]] = (
    {"tile_M": "128", "tile_N": "256", "tile_K": "64"},
    {"tile_M": "64", "tile_N": "64", "tile_K": "128"},
    {"tile_M": "16", "tile_N": "128", "tile_K": "32"},
)


def again(job: Job) -> Pairs:
    """The same call."""
    a, b = job.draw(80, 192, 320)[job.rank], job.draw(81, 320, 136)[job.rank]
    q, k, v, grad = (job.draw(seed, 2, 4, 200, 64)[job.rank] for seed in (82, 83, 84, 85))
    for name, call in (
        ("a sum over ranks", lambda: job.operators.fused_matmul_all_reduce(a, b, "sum", job.group)),
        ("gradients of attention", lambda: _gradients(job, q, k, v, grad)),
        ("ring attention", lambda: job.operators.ring_attention(q, k, v, job.group, True)[0]),
    ):
        first, second = call(), call()
        pairs = zip(first, second, strict=True) if isinstance(first, tuple) else [(first, second)]
        yield from ((name, one, other) for one, other in pairs)


def batch(job: Job) -> Pairs:
    """A row among other numbers of rows."""
    a, b = job.draw(86, 640, 320)[job.rank], job.draw(87, 320, 136)[job.rank]
    operators, group = job.operators, job.group
    whole = operators.fused_matmul_all_reduce(a, b, "sum", group)
    _, (product,) = operators.fused_all_gather_matmul(a, [b], 0, group, return_A=False)
    for rows in (2, 66, 128):
        few = a[:rows].contiguous()
        yield "matmul + all-reduce", operators.fused_matmul_all_reduce(few, b, "sum", group), whole[:rows]
        _, (some,) = operators.fused_all_gather_matmul(few, [b], 0, group, return_A=False)
        for rank in range(job.ranks):
            yield "all-gather + matmul", some[rank * rows :][:rows], product[rank * 640 :][:rows]
    yield from _experts(job)
    q, k, v, grad = (job.draw(seed, 3, 4, 400, 128)[job.rank] for seed in (88, 89, 90, 91))
    for causal in (False, True):
        out, _ = operators.attention(q, k, v, causal)
        for number in range(3):
            one = [tensor[number : number + 1] for tensor in (q, k, v)]
            yield "attention", operators.attention(*one, causal)[0], out[number : number + 1]
    few, _ = operators.attention(q[:, :, :100].contiguous(), k, v)
    yield "rows of attention", few, operators.attention(q, k, v)[0][:, :, :100]
    yield "gradients of rows", _gradients(job, q[:1], k[:1], v[:1], grad[:1])[0], _gradients(job, q, k, v, grad)[0][:1]


def _experts(job: Job) -> Pairs:
    """Tokens of a mixture of experts among other numbers of tokens."""
    x, logits = job.draw(101, 96, 128)[job.rank], job.draw(102, 96, 2 * job.ranks)[job.rank].float()
    weights, choices = logits.topk(2, -1)
    experts = [job.draw(seed, 2, *shape)[job.rank] for seed, shape in ((103, (128, 192)), (104, (128, 192)))]
    experts.append(job.draw(105, 2, 192, 128)[job.rank])
    given = x, choices.int(), weights
    whole = job.operators.moe_mlp(*given, *experts, job.group)
    for rows in (8, 33):
        few = [tensor[:rows].contiguous() for tensor in given]
        yield "moe_mlp", job.operators.moe_mlp(*few, *experts, job.group), whole[:rows]


def gathered(job: Job) -> Pairs:
    """All-gather + matmul, and one GPU's matmul of all of A, by tiles of any size."""
    from pkc.driver.compiler import load_program
    from pkc.torch.launches import Launch, loaded, place_on

    lefts, b = job.draw(92, 192, 320), job.draw(93, 320, 136)[job.rank]
    _, (product,) = job.operators.fused_all_gather_matmul(lefts[job.rank], [b], 0, job.group, return_A=False)
    whole, place = job.torch.cat(lefts), place_on(job.torch.cuda.current_device())
    program = load_program(Path(__file__).parents[2] / "examples" / "gemm.pk")
    for tiles in TILES:
        found = job.torch.empty_like(product)
        dims = {"M": whole.shape[0], "N": b.shape[1], "K": b.shape[0]}
        Launch(loaded(place, program, dims, schedule=tiles), "ABC", {})(whole, b, found)
        yield f"tiles {tiles}", found, product


def scattered(job: Job) -> Pairs:
    """Matmul + reduce-scatter, and the rows of matmul + all-reduce."""
    a, b = job.draw(94, 128 * job.ranks, 320)[job.rank], job.draw(95, 320, 136)[job.rank]
    whole = job.operators.fused_matmul_all_reduce(a, b, "sum", job.group)
    mine = job.operators.fused_matmul_reduce_scatter(a, b, "sum", 0, job.group)
    yield "a shard", mine, whole.chunk(job.ranks)[job.rank]


def ranks(job: Job) -> Pairs:
    """Sums over any number of ranks within `fixed_order`, also if one rank has all of the inner dimension."""
    import pkc.torch

    torch, dist = job.torch, job.torch.distributed
    lefts, rights = job.draw(99, 128, 320), job.draw(100, 320, 136)
    a, b = torch.cat(lefts, 1), torch.cat(rights)
    alone = pkc.torch.name_of([dist.new_group([rank]) for rank in range(job.ranks)][job.rank])
    operators, mine = job.operators, (lefts[job.rank], rights[job.rank])
    with pkc.torch.fixed_order(4 * job.ranks):
        expected = operators.fused_matmul_all_reduce(a, b, "sum", alone)
        yield "matmul + all-reduce", operators.fused_matmul_all_reduce(*mine, "sum", job.group), expected
        shard = operators.fused_matmul_reduce_scatter(*mine, "sum", 0, job.group)
        yield "matmul + reduce-scatter", shard, expected.chunk(job.ranks)[job.rank]
    exact, error = job.product(a, b)
    parts = 4 * job.ranks
    bound = (parts + 1) * job.rounding(a.dtype) * (a.double().abs() @ b.double().abs()) / parts**0.5 + error
    job.compared(expected, exact, bound)


def replayed(job: Job) -> Pairs:
    """A CUDA graph, and calls."""
    torch = job.torch
    q, k, v = (job.draw(seed, 1, 4, 128, 64)[job.rank] for seed in (96, 97, 98))

    def call() -> Any:
        return job.operators.ulysses_attention(job.operators.attention(q, k, v)[0], k, v, job.group)

    expected = call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    graph.replay()
    torch.cuda.synchronize()
    yield "attention", found, expected


ROWS: Sequence[Callable[[Job], Pairs]] = (again, batch, gathered, scattered, ranks, replayed)


def same_bits(job: Job) -> str:
    """The table of what has the same bits."""
    count = 0
    for row in ROWS if job.device != "cpu" else (ranks,):
        for what, found, expected in row(job):
            count += 1
            if not job.torch.equal(found, expected):
                differing = (found != expected).sum().item()
                raise Failure(f"{row.__name__}: {what}: {differing} of {found.numel()} elements differ")
    return f"{count} pairs of tensors"


def _gradients(job: Job, q: Any, k: Any, v: Any, grad: Any) -> tuple[Any, ...]:
    out, sums = job.operators.attention(q, k, v, True)
    return tuple(job.operators.attention_backward(grad, q, k, v, out, sums, True))
