"""Layers for several ranks in PyTorch, with the meaning that they have in Megatron; importing it imports torch."""

from pkc.nn.attention import ContextParallelAttention, TensorParallelAttention
from pkc.nn.linear import ColumnParallelLinear, RowParallelLinear, replicated
from pkc.nn.mlp import TensorParallelMLP
from pkc.nn.moe import MoE
from pkc.nn.shards import shard_of

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
