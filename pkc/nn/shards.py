"""State dicts of whole models, shared out among the ranks."""

from __future__ import annotations

from typing import Any

from pkc.nn.linear import ColumnParallelLinear, RowParallelLinear
from pkc.nn.moe import MoE

_SHARED = ColumnParallelLinear, RowParallelLinear, MoE
"""Modules whose `shard_of` knows what is shared out; all others of this package are made of them."""


def shard_of(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """This rank's part of a state dict with all weights, for `model.load_state_dict`: shards for layers of this package
    in `model`, whose names it has, and all else as it is."""
    found = dict(state)
    for name, module in model.named_modules():
        if isinstance(module, _SHARED):
            prefix = f"{name}." if name else ""
            mine = {key.removeprefix(prefix): whole for key, whole in state.items() if key.startswith(prefix)}
            found |= {prefix + key: shard for key, shard in module.shard_of(mine).items()}
    return found
