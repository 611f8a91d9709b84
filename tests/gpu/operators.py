"""The operators of `torch.ops.pkc` against torch in float64, in a process for each GPU:

    python -m tests.gpu.operators --ranks 2
    python -m tests.gpu.operators --ranks 2 --device cpu

Without GPUs torch's collectives and matmuls do the work: that checks all but the kernels. Prints a line for each check;
the exit status is that of a test.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.gpu import present, processes
from tests.gpu.calls import Failure

LIMIT = 150
CALLS = 200
SHAPES = (((256, 128), 0), ((100, 72), 0), ((3, 40, 64), 1), ((5, 64), 1))
"""Shapes of A, and the dimension that is gathered or scattered."""
WAIT = 60
"""Seconds that a rank waits for the others."""


@dataclass(frozen=True)
class Job:
    """This process among the ranks, and random operands of all of them."""

    torch: Any
    device: str
    rank: int
    ranks: int
    group: str

    def draw(self, seed: int, *shape: int, dtype: str = "bfloat16") -> list[Any]:
        """A tensor of each rank; the generator runs on the host, the same in all processes."""
        found: list[Any] = []
        for rank in range(self.ranks):
            generator = self.torch.Generator().manual_seed(1000 * seed + rank)
            drawn = self.torch.randn(*shape, generator=generator, dtype=self.torch.float64)
            found.append(drawn.to(getattr(self.torch, dtype)).to(self.device))
        return found

    def cases(self) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Element types, shapes of A and dimensions; on GPUs each takes seconds to compile."""
        yield from (("bfloat16", shape, dim) for shape, dim in SHAPES)
        yield from (("float64", shape, dim) for shape, dim in SHAPES if self.device == "cpu")
        yield "float16", *SHAPES[0]

    @property
    def operators(self) -> Any:
        return self.torch.ops.pkc

    def compared(self, found: Any, expected: Any, bound: Any) -> float:
        """The largest error, in units of the bound; NaN counts as wrong."""
        if found.shape != expected.shape:
            raise Failure(f"shape {list(found.shape)} instead of {list(expected.shape)}")
        ratio = ((found.double() - expected).abs() / (bound + 1e-300)).max().item()
        if not ratio <= 1:
            raise Failure(f"error/bound {ratio:.3g}")
        return ratio

    def rounding(self, dtype: Any) -> float:
        """The relative error of rounding to a type, and a little for the error before it."""
        return 1.01 * self.torch.finfo(dtype).eps / 2

    def product(self, left: Any, right: Any) -> tuple[Any, Any]:
        """A product in float64, and the error that it may have before it is rounded."""
        exact = left.double() @ right.double()
        adding = left.shape[-1] * 2.0**-23 if left.dtype != self.torch.float64 else left.shape[-1] * 2.0**-52
        return exact, adding * (left.double().abs() @ right.double().abs())


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


def right_operands(job: Job, inner: int, dtype: str) -> Iterator[tuple[str, int, list[Any]]]:
    """A reduction, what it divides by, and the right operands of all ranks: by rows, and by columns."""
    yield "sum", 1, job.draw(5, inner, 136, dtype=dtype)
    yield "avg", job.ranks, [right.t() for right in job.draw(6, 136, inner, dtype=dtype)]


def summed(job: Job, lefts: Sequence[Any], rights: Sequence[Any]) -> tuple[Any, Any]:
    """The sum over ranks of their products: each contribution is rounded, each sum of them, and an average."""
    total = bound = 0.0
    for left, right in zip(lefts, rights, strict=True):
        exact, error = job.product(left, right)
        total = total + exact
        bound = bound + (job.ranks + 2) * job.rounding(left.dtype) * exact.abs() + 2 * error
    return total, bound


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
    if job.device != "cpu" and len(groups.place_of(job.group).calls) < 3:
        raise Failure("no kernel ran")
    return f"{3 * len(results)} operators"


# What torch asks of operators


def checked(job: Job) -> str:
    """`torch.library.opcheck`: schemas, shapes, gradients and tracing."""
    count = 0
    for name, arguments, keywords in samples(job, "float32" if job.device == "cpu" else "bfloat16"):
        operator = getattr(job.operators, name).default
        # Gradients are rounded otherwise where graphs compute them.
        job.torch.library.opcheck(operator, arguments, keywords, rtol=1e-2, atol=1e-1)
        count += 1
    return f"{count} operators"


def samples(job: Job, dtype: str) -> Sequence[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    a = job.draw(13, 32, 64, dtype=dtype)[job.rank].requires_grad_()
    b = job.draw(14, 64, 72, dtype=dtype)[job.rank].requires_grad_()
    c = job.draw(15, 72, 64, dtype=dtype)[job.rank].requires_grad_()
    return (
        ("fused_all_gather_matmul", (a, [b, c.t()], 0, job.group), {"return_A": True}),
        ("fused_all_gather_matmul", (a, [b], 0, job.group), {"return_A": False}),
        ("fused_matmul_reduce_scatter", (a, b, "avg", 0, job.group), {}),
        ("fused_matmul_all_reduce", (a, c.t(), "sum", job.group), {}),
        ("replicated_matmul", (a, b, job.group), {}),
        ("replicated", (a, job.group), {}),
        ("all_reduce", (a, job.group), {}),
        ("all_gather", (a, 1, job.group), {}),
        ("reduce_scatter", (a, 0, job.group), {}),
    )


def differentiated(job: Job) -> str:
    """`torch.autograd.gradcheck` and `gradgradcheck`: each operator as a function of all ranks' operands."""
    torch = job.torch

    class Mine(torch.autograd.Function):
        """This rank's part of what all ranks have."""

        @staticmethod
        def forward(ctx: Any, whole: Any) -> Any:
            return whole[job.rank].clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return Whole.apply(grad)

    class Whole(torch.autograd.Function):
        """All ranks' parts, on every rank."""

        @staticmethod
        def forward(ctx: Any, mine: Any) -> Any:
            return job.operators.all_gather(mine.detach().unsqueeze(0).contiguous(), 0, job.group)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return Mine.apply(grad)

    def gather(a: Any, b: Any, c: Any) -> Any:
        whole, products = job.operators.fused_all_gather_matmul(
            Mine.apply(a), [Mine.apply(b), Mine.apply(c).t()], 1, job.group
        )
        return Whole.apply(whole), *(Whole.apply(product) for product in products)

    def again(a: Any, b: Any, c: Any) -> Any:
        _, (product,) = job.operators.fused_all_gather_matmul(
            Mine.apply(a), [Mine.apply(b)], 0, job.group, return_A=False
        )
        return Whole.apply(product)

    def scatter(a: Any, b: Any, c: Any) -> Any:
        found = job.operators.fused_matmul_reduce_scatter(Mine.apply(a), Mine.apply(c).t(), "avg", 1, job.group)
        return Whole.apply(found)

    def reduce(a: Any, b: Any, c: Any) -> Any:
        # Its result is the same on all ranks, so it is one result.
        return job.operators.fused_matmul_all_reduce(Mine.apply(a), Mine.apply(b), "avg", job.group)

    def replicate(a: Any, b: Any, c: Any) -> Any:
        # What is the same on all ranks has a gradient on each, and what differs one of its own.
        same = job.operators.replicated(a.sum(0), job.group)
        found = job.operators.replicated_matmul(b.sum(0).t(), Mine.apply(c).t(), job.group)
        return job.operators.all_reduce(Mine.apply(a) * same, job.group), Whole.apply(found)

    def drawn(seed: int, *shape: int) -> Any:
        return torch.stack(job.draw(seed, *shape, dtype="float64")).requires_grad_()

    operands = drawn(16, 2, 4, 3), drawn(17, 3, 2), drawn(18, 4, 3)
    for function in (gather, again, scatter, reduce, replicate):
        torch.autograd.gradcheck(function, operands, fast_mode=False, check_undefined_grad=False)
        if function not in (reduce, replicate):
            torch.autograd.gradgradcheck(function, operands, fast_mode=True, check_undefined_grad=False)
    return "5 functions"


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


def layers(job: Job, hidden: int, inner: int, dtype: str) -> tuple[list[Any], list[Any]]:
    """The weights of two layers, each rank's shard as `nn.Linear` has it."""
    up, down = job.draw(20, inner, hidden, dtype=dtype), job.draw(21, hidden, inner, dtype=dtype)
    return [w * hidden**-0.5 for w in up], [w * inner**-0.5 for w in down]


def compiled(job: Job) -> str:
    """`torch.compile` without graph breaks, forward and backward, at two sizes."""
    torch = job.torch
    backend = "aot_eager" if job.device == "cpu" else "inductor"

    def function(x: Any, up: Any, down: Any) -> Any:
        _, (wide,) = torch.ops.pkc.fused_all_gather_matmul(x, [up.t()], 0, job.group, return_A=False)
        return torch.ops.pkc.fused_matmul_reduce_scatter(wide, down.t(), "sum", 0, job.group)

    traced = torch.compile(function, fullgraph=True, backend=backend)
    for tokens in (64, 96):
        x, (up, down) = job.draw(23, tokens, 128), layers(job, 128, 96, "bfloat16")
        results: list[list[Any]] = []
        for form in (function, traced):
            given = [tensor[job.rank].clone().requires_grad_() for tensor in (x, up, down)]
            out = form(*given)
            out.sum().backward()
            results.append([out, *(tensor.grad for tensor in given)])
        for eager, graph in zip(*results, strict=True):
            bound = 4 * job.rounding(eager.dtype) * eager.double().abs().max()
            job.compared(graph, eager.double(), bound)
    return backend


def exported(job: Job) -> str:
    """`torch.export`: the program has the operators, and gives what the module gives."""
    torch, group = job.torch, job.group

    class Two(torch.nn.Module):
        def forward(self, x: Any, up: Any, down: Any) -> Any:
            _, (wide,) = torch.ops.pkc.fused_all_gather_matmul(x, [up.t()], 0, group, return_A=False)
            return torch.ops.pkc.fused_matmul_all_reduce(wide, down.t(), "sum", group)

    x, (up, down) = job.draw(24, 64, 128), layers(job, 128, 96, "bfloat16")
    given = tuple(tensor[job.rank] for tensor in (x, up, down))
    program = torch.export.export(Two(), given)
    names = [str(node.target) for node in program.graph.nodes if str(node.target).startswith("pkc.")]
    if names != ["pkc.fused_all_gather_matmul.default", "pkc.fused_matmul_all_reduce.default"]:
        raise Failure(f"the graph has {names}")
    if not torch.equal(program.module()(*given), Two()(*given)):
        raise Failure("the program gives something else")
    return f"{len(names)} operators"


def fused(job: Job) -> str:
    """The pass of torch.compile: what it replaces in functions, why it leaves other places, and the same results."""
    torch = job.torch
    import torch._dynamo.backends.common as backends
    import torch.distributed._functional_collectives as collectives
    from torch._functorch.aot_autograd import make_boxed_func

    import pkc.torch

    group, told, counts = torch.distributed.group.WORLD, list[str](), list[int]()

    def first(graph: Any) -> None:
        count, left = pkc.torch.fuse(graph.graph)
        counts.append(count)
        told.extend(map(str, left))
        graph.recompile()

    def passed(graph: Any, _: Any) -> Any:
        first(graph)
        return make_boxed_func(graph.forward)

    def linears(x: Any, up: Any, down: Any) -> Any:
        wide = collectives.all_gather_tensor(x, 0, group)
        wide = torch.nn.functional.linear(wide, up) * torch.nn.functional.linear(wide, up + 1)
        return collectives.reduce_scatter_tensor(wide @ down.t(), "sum", 0, group) + x

    def along(x: Any, up: Any, down: Any) -> Any:
        # As newer versions of torch trace a gather along another dimension; older ones do not trace it.
        wide = torch.cat(torch.chunk(collectives.all_gather_tensor(x, 0, group), job.ranks), 1)
        out = torch.nn.functional.linear(wide, up, up[:, 0]) @ down.t()
        return collectives.reduce_scatter_tensor(out, "sum", 1, group), wide.sum()

    def whole(x: Any, up: Any, down: Any) -> Any:
        return collectives.all_reduce(x @ up.t(), "avg" if job.device != "cpu" else "sum", group) @ down.t()

    def others(x: Any, up: Any, down: Any) -> Any:
        wide = collectives.all_gather_tensor(x, 0, group)
        most = collectives.all_reduce(x @ up.t(), "max", group)
        biased = torch.nn.functional.linear(x, up, up[:, 0])
        return (
            wide.exp(),
            most,
            collectives.all_reduce(biased, "sum", group),
            collectives.all_reduce(x + 1, "sum", group),
        )

    reasons = (
        "no matmul has the gathered tensor as its left operand",
        "it reduces by max, not by a sum",
        "a bias is added before the sum over ranks",
        "what it sums is no matmul but aten.add.Tensor",
    )
    for function, shape, replaced in (
        (linears, (64, 128), 2),
        (along, (3, 32, 128), 2),
        (whole, (64, 128), 1),
        (others, (64, 128), 0),
    ):
        x, (up, down) = job.draw(34, *shape), layers(job, 128, 96, "bfloat16")
        given = [tensor[job.rank] for tensor in (x, up, down)]
        counts.clear()
        told.clear()
        torch._dynamo.reset()
        graph = torch.compile(function, fullgraph=True, backend=backends.aot_autograd(fw_compiler=passed))
        expected, found = (torch.utils._pytree.tree_leaves(form(*given)) for form in (function, graph))
        if sum(counts) != replaced or [text.rpartition("fused: ")[2] for text in told] != [*reasons] * (not replaced):
            raise Failure(f"{function.__name__}: {counts} replaced, left: {told}")
        if not all("operators.py:" in text for text in told):
            raise Failure(f"without a place: {told}")
        for one, other in zip(found, expected, strict=True):
            bound = 4 * job.rounding(one.dtype) * other.double().abs().max()
            job.compared(one, other.double(), bound)
    if job.device != "cpu":
        said: list[str] = []
        pkc.torch.fuse_in_compile(say=said.append)
        torch._dynamo.reset()
        expected = linears(*given)
        bound = 4 * job.rounding(expected.dtype) * expected.double().abs().max()
        job.compared(torch.compile(linears, fullgraph=True)(*given), expected.double(), bound)
        if said:
            raise Failure(f"left in Inductor's graph: {said}")
        torch.compile(others, fullgraph=True)(*given)
        torch._inductor.config.post_grad_custom_pre_pass = None
        if len(said) != len(reasons):
            raise Failure(f"Inductor's graph: {said}")
    return f"5 collectives, {len(reasons)} left"


def captured(job: Job) -> str:
    """CUDA graphs: replays give what calls give, on new operands."""
    torch = job.torch
    if job.device == "cpu":
        return "not on a CPU"
    x, (up, down) = job.draw(25, 128, 256), layers(job, 256, 128, "bfloat16")
    x, up, down = x[job.rank], up[job.rank], down[job.rank]

    def function() -> Any:
        _, (wide,) = job.operators.fused_all_gather_matmul(x, [up.t()], 0, job.group, return_A=False)
        return job.operators.fused_matmul_reduce_scatter(wide, down.t(), "sum", 0, job.group)

    function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = function()
    for seed in (26, 27):
        x.copy_(job.draw(seed, 128, 256)[job.rank])
        expected = function().clone()
        for _ in range(50):
            graph.replay()
        torch.cuda.synchronize()
        if not torch.equal(out, expected):
            raise Failure("a replay gives something else")
    return "100 replays"


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


def refused(job: Job) -> str:
    """What cannot be multiplied or shared out."""
    a, b = job.draw(30, 64, 128)[job.rank], job.draw(31, 128, 64)[job.rank]
    scatter = job.operators.fused_matmul_reduce_scatter
    wrong: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("must be 'sum' or 'avg'", lambda: scatter(a, b, "max", 0, job.group)),
        ("scatter_dim is 2; A has 2 dimensions", lambda: scatter(a, b, "sum", 2, job.group)),
        (f"cannot be shared by {job.ranks} ranks", lambda: scatter(a[:63], b, "sum", 0, job.group)),
        ("B is torch.float32, and A is torch.bfloat16", lambda: scatter(a, b.float(), "sum", 0, job.group)),
        ("B must be a matrix", lambda: job.operators.fused_all_gather_matmul(a, [b[0]], 0, job.group)),
    )
    for text, call in wrong:
        try:
            call()
        except (ValueError, RuntimeError) as error:
            if text not in str(error):
                raise Failure(f"{error} does not say: {text}") from None
        else:
            raise Failure(f"not refused: {text}")
    return f"{len(wrong)} calls"


def cost(job: Job) -> str:
    """Microseconds of the host for a call, and for the same by torch's matmul and collective."""
    torch, dist = job.torch, job.torch.distributed
    a, b = job.draw(32, 64, 128)[job.rank], job.draw(33, 128, 128)[job.rank]
    whole, part = a.new_empty(64 * job.ranks, 128), a.new_empty(64 // job.ranks, 128)

    def gather() -> None:
        dist.all_gather_into_tensor(whole, a)
        whole @ b

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
    return f"{', '.join(found)} us"


CHECKS: Sequence[Callable[[Job], str]] = (
    refused,
    gathered,
    scattered,
    reduced,
    repeated,
    checked,
    differentiated,
    backward,
    compiled,
    exported,
    fused,
    captured,
    grouped,
    cost,
)


# In each process


def run_checks(device: str, names: Sequence[str]) -> bool:
    import torch
    import torch.distributed as dist

    import pkc.torch

    local = int(os.environ["LOCAL_RANK"])
    if device == "cuda":
        torch.cuda.set_device(local)
    backend = "gloo" if device == "cpu" else "nccl"
    dist.init_process_group(backend, timeout=timedelta(seconds=WAIT))
    place = "cpu" if device == "cpu" else f"cuda:{local}"
    job = Job(torch, place, dist.get_rank(), dist.get_world_size(), pkc.torch.name_of())
    by_name = {check.__name__: check for check in CHECKS}
    for check in [by_name[name] for name in names] or CHECKS:
        started = time.perf_counter()
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
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--only", nargs="*", default=[], help="these checks, in this order")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here:
        right = run_checks(given.device, given.only)
        sys.stdout.flush()
        # A kernel that hangs would keep the interpreter from ending.
        os._exit(not right)
    ranks = present.gpus(given.ranks) if given.device == "cuda" else given.ranks or 2
    passed_on = ["--here", "--device", given.device, *(["--only", *given.only] if given.only else [])]
    right = processes.run("tests.gpu.operators", passed_on, ranks, LIMIT, torchrun=True)
    print(f"the operators are {'right' if right else 'WRONG'} on {ranks} ranks", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
