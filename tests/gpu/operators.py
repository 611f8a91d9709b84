"""The operators of `torch.ops.pkc` against torch in float64, in a process for each GPU:

    python -m tests.gpu.operators --ranks 2
    python -m tests.gpu.operators --ranks 2 --device shared
    python -m tests.gpu.operators --ranks 2 --device cpu

With `shared` all processes drive the first GPU, where their kernels take turns: results are those of several GPUs,
times mean nothing, and the pass of torch.compile is not checked. Without GPUs torch's collectives and matmuls do the
work: that checks all but the kernels. Prints a line for each check; the exit status is that of a test.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tests.gpu import present, processes, shared
from tests.gpu.attention import asked, attended, attended_in_graphs, beside_each_other, spread, unattended
from tests.gpu.bits import same_bits
from tests.gpu.calls import Failure
from tests.gpu.extents import many_sizes, misfits, not_numbers, without_elements
from tests.gpu.graphs import captured, checked, compiled, differentiated, exported, fused, under_autocast
from tests.gpu.layered import layered_attention, layers_compiled, routed, routed_in_graphs, tabled
from tests.gpu.mlp import activated, drawn_apart, layered_mlp, misactivated
from tests.gpu.models import cast_in_models, in_models, loaded_in_models
from tests.gpu.operands import Job, all_refused, layers, right_operands, summed

LIMIT = 900
"""Seconds; machine code that is not in the cache takes most of them."""
CALLS = 200
WAIT = 60
"""Seconds that a rank waits for the others."""


# Values


def gathered(job: Job) -> str:
    """All-gather + matmul: one and several right operands, by rows and by columns, along each dimension."""
    worst = 0.0
    for dtype, shape, dim in job.cases():
        lefts = job.draw(1, *shape, dtype=dtype)
        whole = job.torch.cat(lefts, dim)
        inner = whole.shape[-1]
        by_rows, by_columns = job.draw(2, inner, 136, dtype=dtype), job.draw(3, 264, inner, dtype=dtype)
        rights = [by_rows[job.rank], by_columns[job.rank].t()]
        for used, kept in ((rights, True), (rights[:1], False), (rights[1:], False), (rights[1:], True)):
            a, found = job.operators.fused_all_gather_matmul(lefts[job.rank], used, dim, job.group, return_A=kept)
            if (a is not None) != kept or (kept and not job.torch.equal(a, whole)):
                raise Failure("what is gathered differs from the shards")
            for right, product in zip(used, found, strict=True):
                exact, error = job.product(whole, right)
                bound = job.rounding(product.dtype) * exact.abs() + error
                worst = max(worst, job.compared(product, exact, bound))
    return f"error/bound {worst:.3f}"


def scattered(job: Job) -> str:
    """Matmul + reduce-scatter, sums and averages, along each dimension."""
    worst = 0.0
    for dtype, shape, dim in job.cases():
        lefts = job.draw(4, *shape, dtype=dtype)
        for op, divisor, rights in right_operands(job, shape[-1], dtype):
            exact, bound = summed(job, lefts, rights)
            found = job.operators.fused_matmul_reduce_scatter(lefts[job.rank], rights[job.rank], op, dim, job.group)
            mine = [tensor.chunk(job.ranks, dim)[job.rank] / divisor for tensor in (exact, bound)]
            worst = max(worst, job.compared(found, *mine))
    return f"error/bound {worst:.3f}"


def reduced(job: Job) -> str:
    """Matmul + all-reduce."""
    worst = 0.0
    for dtype, shape, _ in job.cases():
        lefts = job.draw(7, *shape, dtype=dtype)
        for op, divisor, rights in right_operands(job, shape[-1], dtype):
            exact, bound = summed(job, lefts, rights)
            found = job.operators.fused_matmul_all_reduce(lefts[job.rank], rights[job.rank], op, job.group)
            worst = max(worst, job.compared(found, exact / divisor, bound / divisor))
    return f"error/bound {worst:.3f}"


def repeated(job: Job) -> str:
    """Operators one after the other, each on what the one before gave, while torch writes operands late."""
    from pkc.torch import groups

    torch = job.torch
    left, right = job.draw(10, 128, 256), job.draw(11, 256, 256)
    back = job.draw(12, 256, 256)
    a = left[job.rank]
    results: list[Any] = []
    for _ in range(20):
        if job.device != "cpu":
            torch.cuda._sleep(100_000 * (1 + job.rank))
        _, (wide,) = job.operators.fused_all_gather_matmul(a * 1, [right[job.rank]], 0, job.group, return_A=False)
        narrow = job.operators.fused_matmul_reduce_scatter(wide, back[job.rank], "sum", 0, job.group)
        results.append(job.operators.fused_matmul_all_reduce(narrow, back[0], "sum", job.group))
    if not all(torch.equal(results[0], other) for other in results[1:]):
        raise Failure("the same operands give other results")
    if job.device != "cpu" and len(groups.place_of(job.group).sizes) < 3:
        raise Failure("no kernel ran")
    return f"{3 * len(results)} operators"


def on_streams(job: Job) -> str:
    """Operators on two streams: while one waits, the other must not overwrite what that will have copied."""
    torch, operators = job.torch, job.operators
    if job.device == "cpu":
        return "not on a CPU"
    right = job.draw(13, 128, 136)[job.rank]
    matmuls = [(job.draw(seed, 256, 128)[job.rank],) for seed in (14, 15)]
    attended_to = [tuple(job.draw(seed + at, 1, 2, 128, 64)[job.rank] for at in range(3)) for seed in (70, 73)]
    calls: tuple[tuple[Callable[..., Any], Sequence[Any]], ...] = (
        (lambda a: operators.fused_all_gather_matmul(a, [right], 0, job.group, return_A=True), matmuls),
        (lambda q, k, v: operators.ring_attention(q, k, v, job.group), attended_to),
        (lambda q, k, v: operators.ulysses_attention(q, k, v, job.group), attended_to),
    )
    streams = [torch.cuda.Stream() for _ in range(2)]
    for call, operands in calls:
        expected = [leaves(call(*given)) for given in operands]
        torch.cuda.synchronize()
        found: list[Any] = []
        for _ in range(5):
            for number, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    torch.cuda._sleep(1_000_000 * (1 - number))
                    found.append(leaves(call(*operands[number])))
        torch.cuda.synchronize()
        for number, tensors in enumerate(found):
            if not all(map(torch.equal, tensors, expected[number % 2])):
                raise Failure(f"call {number} of {len(found)} gives something else on its stream")
    return f"{len(calls)} operators"


def leaves(result: Any) -> list[Any]:
    """The tensors of what an operator returns."""
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, list | tuple) else [result]


def backward(job: Job) -> str:
    """Gradients in the types of kernels, of two layers as a transformer has them, against one process in float64."""
    torch, worst = job.torch, 0.0
    for dtype in ("bfloat16", "float64"):
        tokens, hidden, inner = 64, 128, 96
        x, up, down = job.draw(19, tokens, hidden, dtype=dtype), *layers(job, hidden, inner, dtype)
        outer = job.draw(22, tokens, hidden, dtype=dtype)
        mine = [tensor[job.rank].clone().requires_grad_() for tensor in (x, up, down)]
        _, (wide,) = job.operators.fused_all_gather_matmul(mine[0], [mine[1].t()], 0, job.group, return_A=False)
        out = job.operators.fused_matmul_reduce_scatter(wide, mine[2].t(), "sum", 0, job.group)
        out.backward(outer[job.rank])
        whole = [torch.cat(x).double(), torch.cat(up).double(), torch.cat(down, 1).double()]
        for tensor in whole:
            tensor.requires_grad_()
        (whole[0] @ whole[1].t() @ whole[2].t()).backward(torch.cat(outer).double())
        parts = [whole[0].grad.chunk(job.ranks)[job.rank], whole[1].grad.chunk(job.ranks)[job.rank]]
        parts.append(whole[2].grad.chunk(job.ranks, 1)[job.rank])
        for tensor, expected in zip(mine, parts, strict=True):
            # Three roundings of each number of a sum, relative to what such sums are.
            bound = 8 * job.rounding(tensor.dtype) * expected.abs().max() + 1e-12
            worst = max(worst, job.compared(tensor.grad, expected, bound))
    return f"error/bound {worst:.3f}"


def grouped(job: Job) -> str:
    """Several groups at once: of the same ranks, of some of them, and dimensions of a `DeviceMesh`."""
    torch = job.torch
    dist = torch.distributed
    alone = [dist.new_group([rank]) for rank in range(job.ranks)][job.rank]
    same = dist.new_group(list(range(job.ranks)))
    kind = "cpu" if job.device == "cpu" else "cuda"
    grid = dist.device_mesh.init_device_mesh(kind, (1, job.ranks), mesh_dim_names=("data", "tensor"))
    import pkc.torch

    names = [job.group, pkc.torch.name_of(same), pkc.torch.name_of(grid["tensor"]), pkc.torch.name_of(grid["data"])]
    names.append(pkc.torch.name_of(alone))
    a, b = job.draw(28, 64, 128), job.draw(29, 128, 64)
    whole, single = [summed(job, a, b), summed(job, [a[job.rank]], [b[job.rank]])]
    for _ in range(3):
        for name, (exact, bound) in zip(names, (whole, whole, whole, single, single), strict=True):
            found = job.operators.fused_matmul_all_reduce(a[job.rank], b[job.rank], "sum", name)
            job.compared(found, exact, bound)
    return f"{len(names)} groups"


def remade(job: Job) -> str:
    """Process groups that are destroyed and made anew, with the mesh closed between or left to the next operator."""
    from pkc.torch import close, groups

    dist, backend = job.torch.distributed, job.torch.distributed.get_backend()
    store = dist.distributed_c10d._get_default_store()
    a, b = job.draw(34, 64, 128)[job.rank], job.draw(35, 128, 64)[job.rank]
    expected, meshes = None, list[Any]()
    for number, closed in enumerate((False, True, False)):
        found = job.operators.fused_matmul_all_reduce(a, b, "sum", job.group)
        if expected is not None and not job.torch.equal(found, expected):
            raise Failure("a group that was made anew gives something else")
        expected = found
        if job.device != "cpu":
            job.torch.cuda.synchronize()
            meshes.append(groups.mesh_of())
            if [mesh for mesh in meshes[:-1] if not mesh.closed or mesh is meshes[-1]]:
                raise Failure("the mesh of a group that is gone is still there")
        dist.destroy_process_group()
        if closed:
            close()
        place = {"store": dist.PrefixStore(f"again {number}", store), "rank": job.rank, "world_size": job.ranks}
        dist.init_process_group(backend, timeout=timedelta(seconds=WAIT), **place)
    return "3 times"


def refused(job: Job) -> str:
    """What cannot be multiplied or shared out."""
    a, b = job.draw(30, 64, 128)[job.rank], job.draw(31, 128, 64)[job.rank]
    scatter = job.operators.fused_matmul_reduce_scatter
    gone = job.torch.distributed.new_group(range(job.ranks))
    name = gone.group_name
    scatter(a, b, "sum", 0, name)
    job.torch.distributed.destroy_process_group(gone)
    wrong: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("must be 'sum' or 'avg'", lambda: scatter(a, b, "max", 0, job.group)),
        ("scatter_dim is 2; A has 2 dimensions", lambda: scatter(a, b, "sum", 2, job.group)),
        (f"cannot be shared by {job.ranks} ranks", lambda: scatter(a[:63], b, "sum", 0, job.group)),
        ("B is torch.float32, and A is torch.bfloat16", lambda: scatter(a, b.float(), "sum", 0, job.group)),
        ("process group", lambda: scatter(a, b, "sum", 0, name)),
        ("B must be a matrix", lambda: job.operators.fused_all_gather_matmul(a, [b[0]], 0, job.group)),
    )
    return all_refused(wrong)


def cost(job: Job) -> str:
    """Microseconds of the host for a call, and for the same by torch's matmul and collective."""
    torch, dist = job.torch, job.torch.distributed
    a, b = job.draw(32, 64, 128)[job.rank], job.draw(33, 128, 128)[job.rank]
    whole, part = a.new_empty(64 * job.ranks, 128), a.new_empty(64 // job.ranks, 128)

    def gather() -> None:
        dist.all_gather_into_tensor(whole, a)
        torch.mm(whole, b)

    found: list[str] = []
    with torch.no_grad():
        for name, call in (
            ("gather", lambda: job.operators.fused_all_gather_matmul(a, [b], 0, job.group, return_A=False)),
            ("scatter", lambda: job.operators.fused_matmul_reduce_scatter(a, b, "sum", 0, job.group)),
            ("reduce", lambda: job.operators.fused_matmul_all_reduce(a, b, "sum", job.group)),
            ("torch: gather", gather),
            ("scatter", lambda: dist.reduce_scatter_tensor(part, a @ b)),
            ("reduce", lambda: dist.all_reduce(a @ b)),
        ):
            times: list[float] = []
            for number in range(CALLS):
                started = time.perf_counter()
                call()
                times.append(time.perf_counter() - started)
                # The queue of launches must not fill up.
                if job.device != "cpu" and number % 20 == 0:
                    torch.cuda.synchronize()
            found.append(f"{name} {sorted(times)[CALLS // 2] * 1e6:.1f}")
        times = []
        # Their schedule is that of 64 rows.
        for rows in range(57, 64):
            part = a[:rows]
            started = time.perf_counter()
            job.operators.fused_matmul_all_reduce(part, b, "sum", job.group)
            times.append(time.perf_counter() - started)
        found.append(f"first calls of other sizes {sorted(times)[len(times) // 2] * 1e6:.1f}")
    return f"{', '.join(found)} us"


CHECKS: Sequence[Callable[[Job], str]] = (
    refused,
    misfits,
    without_elements,
    not_numbers,
    many_sizes,
    gathered,
    scattered,
    reduced,
    repeated,
    on_streams,
    checked,
    differentiated,
    backward,
    compiled,
    exported,
    fused,
    captured,
    grouped,
    remade,
    unattended,
    attended,
    spread,
    asked,
    attended_in_graphs,
    beside_each_other,
    activated,
    layered_mlp,
    drawn_apart,
    misactivated,
    under_autocast,
    layered_attention,
    layers_compiled,
    in_models,
    cast_in_models,
    loaded_in_models,
    tabled,
    routed,
    routed_in_graphs,
    same_bits,
    cost,
)


CRASHES = {"fused": "gloo's gathering of tensors on GPUs crashes (torch 2.11)"}
"""What processes that share a GPU cannot check, and why."""


# In each process


def run_checks(device: str, names: Sequence[str]) -> bool:
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    import pkc.torch

    local = int(os.environ["LOCAL_RANK"])
    if device == "shared":
        shared.use()
        local = 0
    if device != "cpu":
        torch.cuda.set_device(local)
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=timedelta(seconds=WAIT))
    place = "cpu" if device == "cpu" else f"cuda:{local}"
    job = Job(torch, place, dist.get_rank(), dist.get_world_size(), pkc.torch.name_of())
    by_name = {check.__name__: check for check in CHECKS}
    for check in [by_name[name] for name in names] or CHECKS:
        started = time.perf_counter()
        if device == "shared" and check.__name__ in CRASHES:
            print(f"{device} {job.ranks} ranks  {check.__name__:14} not checked: {CRASHES[check.__name__]}", flush=True)
            continue
        try:
            told, right = check(copy.copy(job)), True
            dist.barrier()
        except Exception as error:  # what is wrong with a check is told, whatever it is
            told, right = f"FAILED: {type(error).__name__}: {error}", False
        if job.rank == 0 or not right:
            passed = time.perf_counter() - started
            where = f" (rank {job.rank})" * (not right)
            print(f"{device} {job.ranks} ranks  {check.__name__:14} {passed:6.2f} s  {told}{where}", flush=True)
        if not right:
            return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, help="all GPUs, if it is not given")
    parser.add_argument("--device", choices=["cuda", "shared", "cpu"], default="cuda")
    parser.add_argument("--only", nargs="*", default=[], help="these checks, in this order")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here:
        right = run_checks(given.device, given.only)
        sys.stdout.flush()
        # A kernel that hangs would keep the interpreter from ending.
        os._exit(not right)
    ranks = given.ranks or 2
    if given.device != "cpu":
        found = present.gpus(given.ranks if given.device == "cuda" else 1)
        ranks = found if given.device == "cuda" else ranks
    passed_on = ["--here", "--device", given.device, *(["--only", *given.only] if given.only else [])]
    right = processes.run("tests.gpu.operators", passed_on, ranks, LIMIT, torchrun=True)
    print(f"the operators are {'right' if right else 'WRONG'} on {ranks} ranks", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
