"""A mixture of experts whose experts are shared out among the ranks."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pkc.torch
from pkc.nn.linear import drawn, replicated

torch: Any = importlib.import_module("torch")
_c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")


class MoE(torch.nn.Module):
    """Each token goes to the `top` experts that its router's logits name, and gets the sum of what they make of it,
    weighted by the softmax over these logits. An expert is `down(silu(gate(x)) * up(x))`, without biases.

    Rank r has experts r * experts / ranks and on: `gate` and `up` are [experts / ranks, hidden, inner], `down` is
    [experts / ranks, inner, hidden]; every rank has the whole `router`. The input has this rank's tokens, as many as on
    each other rank, [..., hidden]. Raises `ValueError` if the ranks cannot share the experts.
    """

    def __init__(
        self,
        hidden: int,
        inner: int,
        experts: int,
        top: int,
        *,
        group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        torch.nn.Module.__init__(self)
        self.group = pkc.torch.name_of(group)
        self.ranks = _c10d._get_group_size_by_name(self.group)
        self.rank = _c10d._resolve_process_group(self.group).rank()
        if experts % self.ranks:
            raise ValueError(f"{experts} experts cannot be shared by {self.ranks} ranks")
        if not 0 < top <= experts:
            raise ValueError(f"top is {top}; there are {experts} experts")
        self.top, each = top, experts // self.ranks
        place = {"device": device, "dtype": dtype}
        self.router = torch.nn.Linear(hidden, experts, bias=False, **place)
        self.gate, self.up = (torch.nn.Parameter(torch.empty(each, hidden, inner, **place)) for _ in range(2))
        self.down = torch.nn.Parameter(torch.empty(each, inner, hidden, **place))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights of experts, as of layers without biases; the router, a layer itself, draws its own."""
        with torch.no_grad():
            for weight in (self.gate, self.up, self.down):
                weight.copy_(drawn(weight, 1 / math.sqrt(weight.shape[1]), self.ranks, self.rank))

    def shard_of(self, state: dict[str, Any]) -> dict[str, Any]:
        """This rank's part of a state dict with the weights of all experts, for `load_state_dict`."""
        return {
            name: whole if name.startswith("router") else whole.chunk(self.ranks)[self.rank]
            for name, whole in state.items()
        }

    def forward(self, x: Any) -> Any:
        tokens = x.flatten(0, -2)
        # Every rank routes other tokens with the same weight.
        routed = torch.nn.functional.linear(tokens, replicated(self.router.weight, self.group))
        logits, choices = routed.float().topk(self.top, -1)
        found = torch.ops.pkc.moe_mlp(
            tokens, choices.int(), logits.softmax(-1), self.gate, self.up, self.down, self.group
        )
        return found.view(x.shape)
