"""Layers for several ranks in PyTorch, with the meaning that they have in Megatron; importing it imports torch."""

from pkc.runtime.torch import require

require("pkc.nn")

from pkc.nn.attention import ContextParallelAttention, TensorParallelAttention  # noqa: E402
from pkc.nn.linear import ColumnParallelLinear, RowParallelLinear, replicated  # noqa: E402
from pkc.nn.mlp import TensorParallelMLP  # noqa: E402
from pkc.nn.moe import MoE  # noqa: E402
from pkc.nn.shards import shard_of  # noqa: E402

__all__ = [
    "ColumnParallelLinear",
    "ContextParallelAttention",
    "MoE",
    "RowParallelLinear",
    "TensorParallelAttention",
    "TensorParallelMLP",
    "replicated",
    "shard_of",
]
