"""Extents that do not fit, tensors without elements, and NaN: checks that `tests.gpu.operators` runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tests.gpu.calls import Failure
from tests.gpu.operands import Job, all_refused, summed


def misfits(job: Job) -> str:
    """Extents that do not fit are refused with their numbers, by operators and by what traces them alike."""
    torch, ops, ranks = job.torch, job.operators, job.ranks
    fake: Any = importlib.import_module("torch._subclasses").FakeTensorMode
    a, b, short = (job.draw(seed, *shape)[job.rank] for seed, shape in ((90, (8, 64)), (91, (64, 24)), (92, (32, 24))))
    odd = job.draw(93, 8 * ranks + 1, 64)[job.rank]
    wrong = f"A has 64 columns, and B has {len(short)} rows"
    along = f"A has {64 * ranks} columns once it is gathered, and B has 64 rows"
    uneven = f"{len(odd)} positions along dimension 0 cannot be shared by {ranks} ranks"
    calls: Sequence[tuple[str, Callable[..., Any], tuple[Any, ...]]] = (
        (wrong, ops.fused_all_gather_matmul, (a, [short], 0, job.group)),
        (along, ops.fused_all_gather_matmul, (a, [b], 1, job.group)),
        (wrong.replace("B", "Bs[1]"), ops.fused_all_gather_matmul, (a, [b, short], 0, job.group)),
        (wrong, ops.fused_all_gather_matmul_activation, (a, [short], [], "gelu", 0, job.group)),
        (wrong, ops.fused_matmul_reduce_scatter, (a, short, "sum", 0, job.group)),
        (wrong, ops.fused_matmul_all_reduce, (a, short, "sum", job.group)),
        (wrong, ops.replicated_matmul, (a, short, job.group)),
        (uneven, ops.fused_matmul_reduce_scatter, (odd, b, "sum", 0, job.group)),
        (uneven, ops.reduce_scatter, (odd, 0, job.group)),
    )
    count = all_refused([(text, lambda call=call, given=given: call(*given)) for text, call, given in calls])
    with fake(allow_non_fake_inputs=True):
        all_refused([(text, lambda call=call, given=given: call(*given)) for text, call, given in calls])
    scattered = torch.compile(ops.fused_matmul_reduce_scatter, fullgraph=True, backend="eager", dynamic=True)
    for rows in (2 * ranks, 4 * ranks):  # other sizes are traced with symbols
        if scattered(a.new_ones(rows, 64), b, "sum", 0, job.group).shape != (rows // ranks, 24):
            raise Failure(f"{rows} rows are scattered to another shape")
    torch._dynamo.reset()
    return count


def without_elements(job: Job) -> str:
    """Shards of no rows, no positions or no tokens give results and gradients of the right shapes, which are zero."""
    torch, ops, group = job.torch, job.operators, job.group
    fake: Any = importlib.import_module("torch._subclasses").FakeTensorMode
    a, b = (job.draw(seed, *shape)[job.rank] for seed, shape in ((94, (0, 64)), (95, (64, 24))))
    q = job.draw(96, 1, 2, 0, 32)[job.rank]
    router = torch.zeros(0, 2, dtype=torch.int32, device=a.device), torch.zeros(0, 2, device=a.device)
    experts = [job.draw(seed, 2, 64, 64)[job.rank] for seed in (97, 98, 99)]
    calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]] = (
        (ops.fused_all_gather_matmul, (a, [b], 0, group)),
        (ops.fused_all_gather_matmul_activation, (a, [b], [], "silu", 0, group)),
        (ops.fused_matmul_reduce_scatter, (a, b, "sum", 0, group)),
        (ops.fused_matmul_all_reduce, (a, b, "sum", group)),
        (ops.replicated_matmul, (a, b, group)),
        (ops.reduce_scatter, (a, 0, group)),
        (ops.all_gather, (a, 0, group)),
        (ops.attention, (q, q, q, True)),
        (ops.ring_attention, (q, q, q, group, True, None, True)),
        (ops.ring_attention, (q, q, q, group)),
        (ops.ulysses_attention, (q, q, q, group)),
        (ops.moe_mlp, (a, *router, *experts, group)),
    )
    leaves, mapped = torch.utils._pytree.tree_leaves, torch.utils._pytree.tree_map_only
    for call, given in calls:
        floats = [one for one in leaves(given) if isinstance(one, torch.Tensor) and one.is_floating_point()]
        fresh = {id(one): one.clone().requires_grad_() for one in floats}
        arguments = mapped(torch.Tensor, lambda one, fresh=fresh: fresh.get(id(one), one), given)
        found = [one for one in leaves(call(*arguments)) if one is not None]
        with fake(allow_non_fake_inputs=True):
            faked = [one for one in leaves(call(*given)) if one is not None]
        if [one.shape for one in found] != [one.shape for one in faked]:
            raise Failure(f"{call}: {[one.shape for one in found]}, traced {[one.shape for one in faked]}")
        sum(one.float().sum() for one in found if one.requires_grad).backward()
        grads = [one.grad for one in fresh.values() if one.grad is not None]
        if any(grad.any() for grad in grads):
            raise Failure(f"{call}: a gradient of nothing is not zero")
    return f"{len(calls)} calls"


def many_sizes(job: Job) -> str:
    """More numbers of rows than memory is kept for, forth and back: what one launch leaves in scratch memory of all
    ranks, the next one takes."""
    torch, count = job.torch, 0
    sizes = [job.ranks * rows for rows in range(8, 8 + 3 * 24, 3)]
    lefts, b = job.draw(105, sizes[-1], 64), job.draw(106, 64, 72)
    exact, bound = summed(job, lefts, b)
    known: dict[int, list[Any]] = {}
    for size in (*sizes, *reversed(sizes), *sizes[::7]):
        a = lefts[job.rank][:size]
        found = [
            job.operators.fused_matmul_reduce_scatter(a, b[job.rank], "sum", 0, job.group),
            job.operators.fused_matmul_all_reduce(a, b[job.rank], "sum", job.group),
        ]
        for one, expected in zip(found, known.get(size, found), strict=True):
            if not torch.equal(one, expected):
                raise Failure(f"{size} rows give something else the next time")
        known[size] = found
        count += len(found)
    for size, (scattered, reduced) in known.items():
        job.compared(reduced, exact[:size], bound[:size])
        job.compared(scattered, *(tensor[:size].chunk(job.ranks)[job.rank] for tensor in (exact, bound)))
    if job.device != "cpu":
        groups, launches = (importlib.import_module(f"pkc.torch.{name}") for name in ("groups", "launches"))
        if groups.place_of(job.group).kept > launches.MOST_KEPT:
            raise Failure("memory is kept for more sizes than said")
    return f"{count} calls"


def not_numbers(job: Job) -> str:
    """NaN in queries, keys or values reaches all that it reaches in torch's attention by blocks, and nothing that it
    does not reach in torch's attention by its definition; rows that see no key are zero, and so are their gradients."""
    torch = job.torch
    attention: Any = importlib.import_module("torch.nn.attention")
    backends = attention.SDPBackend.FLASH_ATTENTION, attention.SDPBackend.MATH

    def reached(function: Callable[..., Any], given: Sequence[Any]) -> list[Any]:
        """The rows of the result and of the gradients that have NaN."""
        mine = [tensor.clone().requires_grad_() for tensor in given]
        found = function(*mine)
        found.float().sum().backward()
        return [one.isnan().any(-1).cpu() for one in (found, *(tensor.grad for tensor in mine))]

    for at, causal in ((0, False), (1, False), (2, False), (0, True), (1, True), (2, True)):
        given = [job.draw(seed, 1, 2, 40, 32)[0] for seed in (100, 101, 102)]
        given[at][0, 1, 3, 3] = torch.nan
        here, bounds = [tensor.cpu() for tensor in given], list[list[Any]]()
        for backend in backends:
            with attention.sdpa_kernel(backend):
                call = partial(torch.nn.functional.scaled_dot_product_attention, is_causal=causal)
                bounds.append(reached(call, here))
        found = reached(lambda *mine, causal=causal: job.operators.attention(*mine, causal)[0], given)
        for one, least, most in zip(found, *bounds, strict=True):
            # Of two rows that it goes through at once, torch's may spoil the other one.
            if (least & most & ~one).any() or (one & ~most).any():
                raise Failure(f"NaN of operand {at}, {causal=}, is in other rows than torch's")
    q = job.draw(103, 1, 2, 40, 32)[0].requires_grad_()
    k = job.draw(104, 1, 2, 24, 32)[0]
    found, _ = job.operators.attention(q, k, k, True)
    found.float().sum().backward()
    if found[:, :, :16].any() or q.grad[:, :, :16].any() or not q.grad.isfinite().all():
        raise Failure("rows that see no key are not zero")
    return "6 operands"
