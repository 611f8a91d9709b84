"""All-gather + matmul + activation, and the layer made of it: checks that `tests.gpu.operators` runs."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tests.gpu.calls import Failure
from tests.gpu.operands import Job, all_refused

STEEPEST = 1.2
"""No activation changes more than so many times what its operand does."""


def activated(job: Job) -> str:
    """Each activation, of one product and of one times another, with and without biases and what gradients need."""
    worst, count, names = 0.0, 0, itertools.cycle(("gelu", "gelu_tanh", "silu", "relu"))
    for dtype, shape, dim in job.cases():
        by_torch = job.device == "cpu" or dim == len(shape) - 1
        name = "gelu" if dim == len(shape) - 1 else next(names)  # kernels compute all of them
        lefts = job.draw(80, *shape, dtype=dtype)
        whole = job.torch.cat(lefts, dim)
        inner = whole.shape[-1]
        by_rows, by_columns = job.draw(81, inner, 264, dtype=dtype), job.draw(82, 264, inner, dtype=dtype)
        rights = [by_rows[job.rank], by_columns[job.rank].t()]
        biases = [tensor[job.rank] for tensor in (job.draw(83, 264, dtype=dtype), job.draw(84, 264, dtype=dtype))]
        for used, added, kept in (
            (rights, biases, True),
            (rights, [], False),
            (rights[1:], biases[1:], True),
            (rights[:1], [], False),
        ):
            found, gathered, products = job.operators.fused_all_gather_matmul_activation(
                lefts[job.rank], used, added, name, dim, job.group, return_A=kept, return_products=kept
            )
            if (gathered is not None) != kept or (kept and not job.torch.equal(gathered, whole)):
                raise Failure("what is gathered differs from the shards")
            exact = [_product(job, whole, right, added[at : at + 1], by_torch) for at, right in enumerate(used)]
            if len(products) != len(used) * kept:
                raise Failure(f"{len(products)} products are returned")
            for product, (expected, error) in zip(products, exact, strict=False):
                worst = max(
                    worst, job.compared(product, expected, error + job.rounding(product.dtype) * expected.abs())
                )
            worst = max(worst, job.compared(found, *_made(job, name, exact, found.dtype, by_torch)))
            count += 1
    return f"{count} products, error/bound {worst:.3f}"


def _product(job: Job, left: Any, right: Any, biases: Sequence[Any], by_torch: bool) -> tuple[Any, Any]:
    """A product with its bias in float64, and the error that it may have before it is rounded."""
    exact, error = job.product(left, right)
    size = exact.abs()
    for bias in biases:
        exact, size = exact + bias.double(), size + bias.double().abs()
        error = error + 2.0**-23 * size
    # torch rounds it before and after the bias is added.
    return exact, error + 3 * job.rounding(left.dtype) * size if by_torch else error


def _made(job: Job, name: str, products: list[tuple[Any, Any]], dtype: Any, by_torch: bool) -> tuple[Any, Any]:
    """What an activation makes of products, and how far a result may be off."""
    activations = importlib.import_module("pkc.torch.activated").ACTIVATIONS
    (first, error), *others = products
    found = activations[name](first)
    error = STEEPEST * error + 8 * 2.0**-23 * first.abs()
    for factor, its in others:
        error = error * (factor.abs() + its) + found.abs() * its
        found = found * factor
    return found, error + (1 + by_torch) * job.rounding(dtype) * (found.abs() + error)


def _watched(call: Callable[[], Any]) -> tuple[Any, bool]:
    """What a call gives, and whether it calls the operator."""
    names: list[str] = []
    modes: Any = importlib.import_module("torch.utils._python_dispatch")

    class Watch(modes.TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            names.append(str(function))
            return function(*arguments, **(keywords or {}))

    with Watch():
        found = call()
    return found, any("fused_all_gather_matmul_activation" in name for name in names)


def layered_mlp(job: Job) -> str:
    """The feed-forward block, plain and gated, with its gradients, against one process in float64."""
    torch, worst = job.torch, 0.0
    nn: Any = importlib.import_module("pkc.nn")
    functional = torch.nn.functional
    hidden, inner, tanh = 128, 192, partial(functional.gelu, approximate="tanh")
    for gated, bias, activation, exact_activation, parallel in (
        (False, True, "gelu", functional.gelu, True),
        (True, False, torch.nn.SiLU(), functional.silu, True),
        (True, True, "gelu_tanh", tanh, True),
        (False, False, functional.mish, functional.mish, True),
        (False, True, torch.nn.GELU("tanh"), tanh, False),
    ):
        torch.manual_seed(9)
        exact = {name: torch.nn.Linear(hidden, inner, bias).double() for name in ("up", "gate")[: 1 + gated]}
        exact["down"] = torch.nn.Linear(inner, hidden, bias).double()
        options = {"sequence_parallel": parallel, "device": job.device, "dtype": torch.bfloat16}
        mlp = nn.TensorParallelMLP(hidden, inner, bias, activation=activation, gated=gated, **options)
        for name, layer in exact.items():
            layer.to(job.device)
            for parameter in layer.parameters():
                parameter.data = parameter.data.bfloat16().double()
            mine = getattr(mlp, name)
            mine.load_state_dict(mine.shard_of(layer.state_dict()))
        whole, outer = (job.draw(seed, 64, hidden)[0] for seed in (85, 86))
        x = (whole.chunk(job.ranks)[job.rank] if parallel else whole).clone().requires_grad_()
        with torch.no_grad():
            unheld = mlp(x)
        found, called = _watched(partial(mlp, x))
        fused = parallel and activation is not functional.mish
        if called != fused:
            raise Failure(f"the activation is {'not ' * fused}computed by the operator")
        found.backward(outer.chunk(job.ranks)[job.rank] if parallel else outer)
        known = whole.double().requires_grad_()
        made = exact_activation(exact["gate" if gated else "up"](known))
        expected = exact["down"](made * exact["up"](known) if gated else made)
        expected.backward(outer.double())
        share = (lambda tensor: tensor.chunk(job.ranks)[job.rank]) if parallel else (lambda tensor: tensor)
        pairs = [(found, share(expected)), (unheld, share(expected)), (x.grad, share(known.grad))]
        for name, layer in exact.items():
            along = 1 if name == "down" else 0
            pairs.append((getattr(mlp, name).weight.grad, layer.weight.grad.chunk(job.ranks, along)[job.rank]))
        for name in exact if bias else ():
            grad = exact[name].bias.grad
            pairs.append((getattr(mlp, name).bias.grad, grad if name == "down" else grad.chunk(job.ranks)[job.rank]))
        if parallel:
            mlp.up.register_forward_hook(lambda *_: None)
            with torch.no_grad():
                again, called = _watched(partial(mlp, x))
            pairs.append((again, share(expected)))
            if called:
                raise Failure("a layer with a hook is not called")
        # Others in the places of layers are called, and so are hooks on them.
        calls: list[Any] = []
        mlp.down.register_forward_hook(lambda *_, calls=calls: calls.append("down"))
        mlp.up.register_forward_pre_hook(lambda *_, calls=calls: calls.append("up"))
        for name in ("gate", "up")[not gated :]:
            setattr(mlp, name, torch.nn.Sequential(getattr(mlp, name)))
            with torch.no_grad():
                pairs.append((mlp(x), share(expected)))
        if calls != ["up", "down"] * (1 + gated):
            raise Failure(f"hooks were called so: {calls}")
        for one, other in pairs:
            worst = max(worst, job.compared(one, other.detach(), 16 * job.rounding(one.dtype) * other.abs().max()))
    return f"error/bound {worst:.3f}"


def drawn_apart(job: Job) -> str:
    """With one seed on all ranks, shards of layers differ, and what all ranks have is equal."""
    torch: Any = job.torch
    nn: Any = importlib.import_module("pkc.nn")
    torch.manual_seed(11)
    mlp, moe = nn.TensorParallelMLP(64, 128, device=job.device), nn.MoE(64, 32, 4, 2, device=job.device)
    shards = [mlp.up.weight, mlp.up.bias, mlp.down.weight, moe.gate, moe.up, moe.down]
    for mine, apart in [*((one, True) for one in shards), (mlp.down.bias, False), (moe.router.weight, False)]:
        first, *others = job.operators.all_gather(mine.detach().unsqueeze(0), 0, job.group)
        if any(torch.equal(first, other) == apart for other in others):
            raise Failure(f"{list(mine.shape)}: {'equal' if apart else 'other'} numbers on the ranks")
    return f"{len(shards)} shards"


def misactivated(job: Job) -> str:
    """What the operator and the layer refuse."""
    nn: Any = importlib.import_module("pkc.nn")
    a, b, v = (job.draw(87, *shape)[job.rank] for shape in ((64, 128), (128, 64), (64,)))

    def call(rights: list[Any], biases: list[Any], activation: str = "gelu") -> Any:
        return job.operators.fused_all_gather_matmul_activation(a, rights, biases, activation, 0, job.group)

    return all_refused(
        (
            (
                "activation is 'selu'; it must be one of 'gelu', 'gelu_tanh', 'silu', 'relu'",
                lambda: call([b], [], "selu"),
            ),
            ("there are 3 right operands; there must be one or two", lambda: call([b, b, b], [])),
            ("there are 1 biases for 2 right operands", lambda: call([b, b], [v])),
            ("biases[0] must be a vector of torch.bfloat16", lambda: call([b], [v.float()])),
            ("32 biases for 64 columns", lambda: call([b], [v[:32]])),
            # As many tensors as in a call that was right.
            ("biases[0] must be a vector", lambda: (call([b, b], []), call([b], [b]))),
            ("Bs have 64 and 32 columns; they must have the same", lambda: call([b, b[:, :32]], [])),
            ("activation is 'selu'", lambda: nn.TensorParallelMLP(128, 64 * job.ranks, activation="selu")),
        )
    )
