"""What models do with the layers of `pkc.nn`: checks that `tests.gpu.operators` runs."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tests.gpu.calls import Failure
from tests.gpu.operands import Job

HIDDEN, INNER, TOKENS = 128, 192, 32


def in_models(job: Job) -> str:
    """Blocks are copied, cast, frozen, recomputed, and made without memory first, as those of torch are."""
    torch = job.torch
    checkpoint: Any = importlib.import_module("torch.utils.checkpoint").checkpoint
    blocks = _blocks(job)
    for make in blocks:
        torch.manual_seed(21)
        block, x = make("bfloat16"), job.draw(110, TOKENS, 2, HIDDEN)[job.rank].requires_grad_()
        expected, grads = _trained(block, block, x)
        twin = copy.deepcopy(block)
        again = partial(checkpoint, block, use_reentrant=False)
        for form, owner, what in ((twin, twin, "a copy"), (again, block, "what is computed again")):
            found, others = _trained(form, owner, x)
            _alike(job, [found, *others], [expected, *grads], what)
        with torch.no_grad():
            _alike(job, [block(x)], [expected], "without gradients")
        with torch.inference_mode():
            _alike(job, [block(x)], [expected], "for inference")
        block.requires_grad_(False)
        (grad,) = torch.autograd.grad(block(x).float().square().sum(), x)
        _alike(job, [grad], grads[:1], "with frozen weights")
        with torch.device("meta"):
            empty = make("bfloat16", device=None)
        empty.to_empty(device=job.device)
        torch.manual_seed(21)
        for module in empty.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        if not all(parameter.isfinite().all() and parameter.any() for parameter in empty.parameters()):
            raise Failure("weights are not drawn where they had no memory")
        narrow = copy.deepcopy(block).to(torch.float16)
        if narrow(x.half()).dtype != torch.float16:
            raise Failure("another type than that of the operands")
        if make("bfloat16")(x.detach()[:, :0]).shape != (TOKENS, 0, HIDDEN):
            raise Failure("an empty batch has another shape")
    return f"{len(blocks)} blocks"


def cast_in_models(job: Job) -> str:
    """Under autocast blocks of f32 give what they have multiplied, its type too, as `nn.Linear` does."""
    torch, kind = job.torch, "cpu" if job.device == "cpu" else "cuda"
    blocks = _blocks(job)
    for make in blocks:
        block, x = make("float32"), job.draw(111, TOKENS, 2, HIDDEN, dtype="float32")[job.rank].requires_grad_()
        with torch.autocast(kind, torch.bfloat16):
            found = block(x)
        if found.dtype != torch.bfloat16:
            raise Failure(f"{type(block).__name__} gives {found.dtype}")
        found.float().sum().backward()
        if any(one.grad is None or one.grad.dtype != torch.float32 for one in (x, *block.parameters())):
            raise Failure(f"{type(block).__name__} has gradients of another type")
    return f"{len(blocks)} blocks"


def loaded_in_models(job: Job) -> str:
    """The state of a whole model is shared out among its layers, by name; a layer is trainable as far as its own is."""
    torch = job.torch
    nn: Any = importlib.import_module("pkc.nn")

    class Block(torch.nn.Module):
        def __init__(self, mlp: Any) -> None:
            super().__init__()
            self.norm, self.mlp = torch.nn.LayerNorm(HIDDEN), mlp

        def forward(self, x: Any) -> Any:
            return self.mlp(self.norm(x))

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = torch.nn.Linear(HIDDEN, INNER), torch.nn.Linear(INNER, HIDDEN)

        def forward(self, x: Any) -> Any:
            return self.down(torch.nn.functional.gelu(self.up(x)))

    torch.manual_seed(22)
    whole = torch.nn.Sequential(Block(Whole()), Block(Whole())).double().to(job.device)
    spread = torch.nn.Sequential(*[Block(nn.TensorParallelMLP(HIDDEN, INNER)) for _ in range(2)])
    spread.double().to(job.device).load_state_dict(nn.shard_of(spread, whole.state_dict()))
    x = job.draw(112, TOKENS, HIDDEN, dtype="float64")[0]
    torch.testing.assert_close(spread(x), whole(x))
    linear = torch.nn.Linear(HIDDEN, INNER, device=job.device)
    linear.bias.requires_grad_(False)
    layer = nn.ColumnParallelLinear.from_linear(linear)
    if (layer.weight.requires_grad, layer.bias.requires_grad) != (True, False):
        raise Failure("what is frozen is trainable in its shard")
    return f"{len(spread.state_dict())} tensors"


def _blocks(job: Job) -> Sequence[Callable[..., Any]]:
    """What makes each kind of block, of an element type, and on a device."""
    nn: Any = importlib.import_module("pkc.nn")

    def made(form: Callable[..., Any], *sizes: int, **options: Any) -> Callable[..., Any]:
        def make(dtype: str, device: Any = job.device) -> Any:
            return form(*sizes, device=device, dtype=getattr(job.torch, dtype), **options)

        return make

    return (
        made(nn.TensorParallelMLP, HIDDEN, INNER, sequence_parallel=True),
        made(nn.TensorParallelMLP, HIDDEN, INNER, gated=True, activation="silu"),
        made(nn.TensorParallelAttention, HIDDEN, 4, sequence_parallel=True),
        made(nn.TensorParallelAttention, HIDDEN, 4),
        made(nn.MoE, HIDDEN, INNER, 4, 2),
    )


def _trained(form: Callable[[Any], Any], block: Any, x: Any) -> tuple[Any, list[Any]]:
    """What a form of a block gives, and the gradients of its operand and of what the block is made of."""
    wanted = [x, *block.parameters()]
    for one in wanted:
        one.grad = None
    found = form(x)
    found.float().square().sum().backward()
    return found.detach(), [one.grad for one in wanted]


def _alike(job: Job, found: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    for one, other in zip(found, expected, strict=True):
        bound = 16 * job.rounding(one.dtype) * other.detach().double().abs().max()
        try:
            job.compared(one, other.detach().double(), bound)
        except Failure as error:
            raise Failure(f"{what}: {error}") from None
