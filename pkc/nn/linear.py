"""Linear layers whose weights are shared out among the ranks of a process group.

With sequence parallelism the activations between a row-parallel and the next column-parallel layer are shared out along
`sequence_dim`: matmuls gather and scatter them. Without it they are the same on all ranks.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import pkc.torch

torch: Any = importlib.import_module("torch")
_c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")


class _ParallelLinear(torch.nn.Module):
    """A shard of `nn.Linear`: `weight` and `bias` are slices of its own, along dimension `partition_dim`."""

    partition_dim: int

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        group: Any = None,
        sequence_parallel: bool = False,
        sequence_dim: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        torch.nn.Module.__init__(self)
        self.group = pkc.torch.name_of(group)
        self.ranks = _c10d._get_group_size_by_name(self.group)
        self.rank = _c10d._resolve_process_group(self.group).rank()
        self.in_features, self.out_features = in_features, out_features
        self.sequence_parallel, self.sequence_dim = sequence_parallel, sequence_dim
        shape = [out_features, in_features]
        if shape[self.partition_dim] % self.ranks:
            what = ("out_features", "in_features")[self.partition_dim]
            raise ValueError(f"{what} = {shape[self.partition_dim]} cannot be shared by {self.ranks} ranks")
        shape[self.partition_dim] //= self.ranks
        place = {"device": device, "dtype": dtype}
        self.weight = torch.nn.Parameter(torch.empty(*shape, **place))
        self.bias = torch.nn.Parameter(torch.empty(shape[0], **place)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw what `nn.Linear` would. With the same seed on all ranks, shards differ and the rest is equal."""
        bound = 1 / math.sqrt(self.in_features)
        with torch.no_grad():
            self.weight.copy_(drawn(self.weight, bound, self.ranks, self.rank))
            if self.bias is not None:
                shared = (self.ranks, self.rank) if self.partition_dim == 0 else (1, 0)
                self.bias.copy_(drawn(self.bias, bound, *shared))

    @classmethod
    def from_linear(cls, linear: Any, **options: Any) -> Any:
        """This rank's shard of an `nn.Linear`, trainable as far as that is; `options` as for the class."""
        place = {"device": linear.weight.device, "dtype": linear.weight.dtype}
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, **{**place, **options})
        made.load_state_dict(made.shard_of(linear.state_dict()))
        for name, parameter in made.named_parameters():
            parameter.requires_grad_(getattr(linear, name).requires_grad)
        return made.train(linear.training)

    def shard_of(self, state: dict[str, Any]) -> dict[str, Any]:
        """This rank's shards of the state dict of an `nn.Linear`, for `load_state_dict`."""
        # Output features are the first dimension of the weight, and the only one of the bias.
        shared = {"weight", "bias"} if self.partition_dim == 0 else {"weight"}
        return {
            name: whole.chunk(self.ranks, self.partition_dim)[self.rank] if name in shared else whole
            for name, whole in state.items()
            if name in ("weight", "bias")
        }

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"ranks={self.ranks}, sequence_parallel={self.sequence_parallel}"
        )


class ColumnParallelLinear(_ParallelLinear):
    """`nn.Linear` whose output features are shared out: rank r has output features r * out / ranks and on.

    The input has all input features: a shard along `sequence_dim` with `sequence_parallel`, which is gathered, and
    otherwise the same tensor on all ranks, whose gradient is summed over them. Raises `ValueError` if the ranks cannot
    share the features.
    """

    partition_dim = 0

    def forward(self, x: Any) -> Any:
        (found,) = _multiplied(x, [self])
        return found


class RowParallelLinear(_ParallelLinear):
    """`nn.Linear` whose input features are shared out; the input has this rank's, as column-parallel layers give them.

    The output has all features: a shard along `sequence_dim` with `sequence_parallel`, otherwise it is the same on all
    ranks. Every rank has the whole bias. Raises `ValueError` if the ranks cannot share the features.
    """

    partition_dim = 1

    def forward(self, x: Any) -> Any:
        right = self.weight.t()
        if self.sequence_parallel:
            found = torch.ops.pkc.fused_matmul_reduce_scatter(x, right, "sum", self.sequence_dim, self.group)
        else:
            found = torch.ops.pkc.fused_matmul_all_reduce(x, right, "sum", self.group)
        # Each rank adds it to its own positions alone.
        shared = self.bias is not None and self.sequence_parallel
        return _with_bias(found, replicated(self.bias, self.group) if shared else self.bias)


_HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"


def as_made(module: Any) -> bool:
    """Whether a module or a function does what its class says: there are no hooks on it, nor a `forward` of its own."""
    forward, of_class = (getattr(each, "forward", None) for each in (module, module.__class__))
    own = forward is not None and getattr(forward, "__func__", None) is not of_class
    return not own and not any(getattr(module, hooks, None) for hooks in _HOOKS)


def alike(layers: Sequence[Any]) -> bool:
    """Whether these are column-parallel layers as they were made, of one group and one kind of input."""
    if not all(type(layer) is ColumnParallelLinear and as_made(layer) for layer in layers):
        return False
    kinds = [(layer.group, layer.sequence_parallel, layer.sequence_dim) for layer in layers]
    return all(kind == kinds[0] for kind in kinds)


def project(x: Any, layers: Sequence[Any]) -> list[Any]:
    """What several layers give for one input, which is gathered once if they are alike."""
    return _multiplied(x, layers) if alike(layers) else [layer(x) for layer in layers]


def _multiplied(x: Any, layers: Sequence[ColumnParallelLinear]) -> list[Any]:
    first = layers[0]
    rights = [layer.weight.t() for layer in layers]
    if first.sequence_parallel:
        learned = torch.is_grad_enabled() and any(right.requires_grad for right in rights)
        _, found = torch.ops.pkc.fused_all_gather_matmul(x, rights, first.sequence_dim, first.group, return_A=learned)
    else:
        found = [torch.ops.pkc.replicated_matmul(x, right, first.group) for right in rights]
    return [_with_bias(y, layer.bias) for y, layer in zip(found, layers, strict=True)]


def _with_bias(found: Any, bias: Any) -> Any:
    """A product with a bias, if there is one; under autocast of the product's type, as of `nn.Linear`."""
    if bias is None:
        return found
    return found + (bias.to(found.dtype) if torch.is_autocast_enabled(found.device.type) else bias)


def drawn(like: Any, bound: float, ranks: int = 1, rank: int = 0) -> Any:
    """A tensor of numbers between -bound and bound. Each rank draws those of all, so that generators stay equal."""
    found = torch.empty_like(like).detach().uniform_(-bound, bound)
    for number in range(1, ranks):
        other = torch.empty_like(found).uniform_(-bound, bound)
        found = other if number == rank else found
    return found


def replicated(parameter: Any, group: Any = None) -> Any:
    """A parameter that is the same on all ranks and used on other positions by each: its gradient is their sum."""
    return torch.ops.pkc.replicated(parameter, pkc.torch.name_of(group))
