"""What torch asks of the operators of `torch.ops.pkc`, and graphs of them: checks that `tests.gpu.operators` runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.gpu.calls import Failure
from tests.gpu.operands import Job, layers


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
    d = job.draw(27, 72, dtype=dtype)[job.rank].requires_grad_()
    activated = "fused_all_gather_matmul_activation"
    return (
        ("fused_all_gather_matmul", (a, [b, c.t()], 0, job.group), {"return_A": True}),
        ("fused_all_gather_matmul", (a, [b], 0, job.group), {"return_A": False}),
        (activated, (a, [b, c.t()], [d, d], "silu", 0, job.group), {"return_A": True, "return_products": True}),
        (activated, (a, [b], [d], "gelu", 0, job.group), {}),
        ("fused_matmul_reduce_scatter", (a, b, "avg", 0, job.group), {}),
        ("fused_matmul_all_reduce", (a, c.t(), "sum", job.group), {}),
        ("replicated_matmul", (a, b, job.group), {}),
        ("replicated", (a, job.group), {}),
        ("all_reduce", (a, job.group), {}),
        ("all_gather", (a, 1, job.group), {}),
        ("reduce_scatter", (a, 0, job.group), {}),
    )


def under_autocast(job: Job) -> str:
    """Operators of f32 under `torch.autocast` give what operands of its type do, also traced; gradients are f32."""
    torch, kind = job.torch, "cpu" if job.device == "cpu" else "cuda"
    leaves, count = torch.utils._pytree.tree_leaves, 0

    def tensors(tree: Any) -> list[Any]:
        return [one for one in leaves(tree) if isinstance(one, torch.Tensor)]

    multiplying = [one for one in samples(job, "float32") if "matmul" in one[0]]
    for name, arguments, keywords in multiplying:
        operator = getattr(job.operators, name)
        narrow = torch.utils._pytree.tree_map_only(torch.Tensor, lambda one: one.detach().bfloat16(), arguments)
        expected = tensors(operator(*narrow, **keywords))
        with torch.autocast(kind, torch.bfloat16):
            found = tensors(operator(*arguments, **keywords))
            with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
                faked = tensors(operator(*arguments, **keywords))
        for one, other, fake in zip(found, expected, faked, strict=True):
            if one.dtype != torch.bfloat16 or fake.dtype != one.dtype or not torch.equal(one, other):
                raise Failure(f"{name}: {one.dtype}, traced {fake.dtype}, or other numbers than of bf16")
        wanted = [one for one in tensors(arguments) if one.requires_grad]
        results = [one for one in found if one.requires_grad]
        gradients = torch.autograd.grad(results, wanted, [torch.ones_like(one) for one in results])
        if any(one.dtype != torch.float32 or not one.isfinite().all() for one in gradients):
            raise Failure(f"{name}: gradients of {[one.dtype for one in gradients]}")
        count += 1
    return f"{count} operators"


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

    def alone(a: Any, b: Any, c: Any) -> Any:
        activated, given = job.operators.fused_all_gather_matmul_activation, (Mine.apply(a), [Mine.apply(b)])
        bias = Mine.apply(c)[:2, 0]
        found = [activated(*given, [bias], name, 0, job.group)[0] for name in ("gelu", "relu")]
        found.append(activated(*given, [bias], "gelu_tanh", 0, job.group, return_A=True)[0])
        return [Whole.apply(each) for each in found]

    def gated(a: Any, b: Any, c: Any) -> Any:
        activated, rights = job.operators.fused_all_gather_matmul_activation, [Mine.apply(b), Mine.apply(c).t()[:, :2]]
        biases = [Mine.apply(b)[0], Mine.apply(c)[0, :2]]
        found, whole, products = activated(
            Mine.apply(a).unsqueeze(0), rights, biases, "silu", 1, job.group, return_A=True, return_products=True
        )
        again, _, _ = activated(Mine.apply(a), rights, biases, "gelu_tanh", 0, job.group)
        return Whole.apply(found), Whole.apply(again), Whole.apply(whole), *(Whole.apply(each) for each in products)

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
    for function in (gather, again, alone, gated, scatter, reduce, replicate):
        torch.autograd.gradcheck(function, operands, fast_mode=False, check_undefined_grad=False)
        if function not in (reduce, replicate):
            torch.autograd.gradgradcheck(function, operands, fast_mode=True, check_undefined_grad=False)
    return "7 functions"


def compiled(job: Job) -> str:
    """`torch.compile` without graph breaks, forward and backward, at two sizes."""
    torch = job.torch
    backend = "aot_eager" if job.device == "cpu" else "inductor"

    def function(x: Any, up: Any, down: Any) -> Any:
        wide, _, (kept,) = torch.ops.pkc.fused_all_gather_matmul_activation(
            x, [up.t()], [], "gelu", 0, job.group, return_products=True
        )
        wide = wide + kept
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

    def stacked(x: Any, up: Any, down: Any) -> Any:
        # Parts of the sequence of all ranks, one behind the other: no gather along any dimension gives these.
        wide = torch.cat(torch.chunk(collectives.all_gather_tensor(x, 0, group), job.ranks, 1), 0)
        return wide.reshape(-1, wide.shape[-1]) @ up.t(), wide.sum()

    def vector(x: Any, up: Any, down: Any) -> Any:
        return collectives.all_reduce((x[:1] @ up.t()).view(-1), "sum", group)

    reasons = (
        "no matmul has the gathered tensor as its left operand",
        "it reduces by max, not by a sum",
        "a bias is added before the sum over ranks",
        "what it sums is no matmul but aten.add.Tensor",
    )
    left: dict[Any, tuple[str, ...]] = {
        others: reasons,
        stacked: reasons[:1],
        vector: ("the product is seen as a vector",),
    }
    for function, shape, replaced in (
        (linears, (64, 128), 2),
        (along, (3, 32, 128), 2),
        (whole, (64, 128), 1),
        (others, (64, 128), 0),
        (stacked, (3, 32, 128), 0),
        (vector, (64, 128), 0),
    ):
        x, (up, down) = job.draw(34, *shape), layers(job, 128, 96, "bfloat16")
        given = [tensor[job.rank] for tensor in (x, up, down)]
        counts.clear()
        told.clear()
        torch._dynamo.reset()
        graph = torch.compile(function, fullgraph=True, backend=backends.aot_autograd(fw_compiler=passed))
        expected, found = (torch.utils._pytree.tree_leaves(form(*given)) for form in (function, graph))
        if sum(counts) != replaced or [text.rpartition("fused: ")[2] for text in told] != [*left.get(function, ())]:
            raise Failure(f"{function.__name__}: {counts} replaced, left: {told}")
        if not all("graphs.py:" in text for text in told):
            raise Failure(f"without a place: {told}")
        for one, other in zip(found, expected, strict=True):
            bound = 4 * job.rounding(one.dtype) * other.double().abs().max()
            job.compared(one, other.double(), bound)
    _composed()
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
    return f"5 collectives, {sum(map(len, left.values()))} left"


def _composed() -> None:
    """The pass that stood there runs first; a second call takes the place of the first one's alone."""
    import torch

    import pkc.torch

    config, ran = torch._inductor.config, list[str]()
    config.post_grad_custom_pre_pass = lambda _: ran.append("earlier")
    for name in ("one", "other"):
        pkc.torch.fuse_in_compile(say=lambda text, name=name: ran.append(name))
    config.post_grad_custom_pre_pass(torch.fx.Graph())
    config.post_grad_custom_pre_pass = None
    if ran != ["earlier"]:
        raise Failure(f"passes that ran: {ran}")


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
