"""Layers for tensor parallelism in PyTorch, with the meaning that they have in Megatron; importing it imports torch."""

from pkc.nn.linear import ColumnParallelLinear, RowParallelLinear, replicated
from pkc.nn.mlp import TensorParallelMLP

__all__ = ["ColumnParallelLinear", "RowParallelLinear", "TensorParallelMLP", "replicated"]
