"""The words of the language for kernels that are written as Python functions.

    from pkc.language import *

A kernel is read, never run, so these objects do nothing: with them, annotations evaluate when the function is
defined, and editors and type checkers know the names. docs/language.md says what the words mean.
"""

from __future__ import annotations

from typing import Any

from pkc.frontend.words import Dim, TypeWord, Word, dims
from pkc.kernels import kernel

# To a type checker everything in a kernel is `Any`: it cannot know of tiles.

# Types of parameters
bf16: Any = TypeWord("bf16")
f16: Any = TypeWord("f16")
f32: Any = TypeWord("f32")
i32: Any = TypeWord("i32")
e4m3: Any = TypeWord("e4m3")
e5m2: Any = TypeWord("e5m2")
signal: Any = TypeWord("signal")
const: Any = Word("const")

# Values
inf: Any = float("inf")
rank: Any = Dim("rank")
ranks: Any = Dim("ranks")

# Lists to loop over
blocks: Any = Word("blocks")
tasks: Any = Word("tasks")
ring: Any = Word("ring")

# Tiles
zeros: Any = Word("zeros")
full: Any = Word("full")
cast: Any = Word("cast")
positions: Any = Word("positions")
gather: Any = Word("gather")

# Functions: written by `python -m tools.operations_page`
exp: Any = Word("exp")
exp2: Any = Word("exp2")
log2: Any = Word("log2")
sqrt: Any = Word("sqrt")
tanh: Any = Word("tanh")
log: Any = Word("log")
erf: Any = Word("erf")
rsqrt: Any = Word("rsqrt")
sigmoid: Any = Word("sigmoid")
where: Any = Word("where")
rowmax: Any = Word("rowmax")
rowmin: Any = Word("rowmin")
rowsum: Any = Word("rowsum")

# Explicit communication
store: Any = Word("store")
store_add: Any = Word("store_add")
reduce: Any = Word("reduce")
all_reduce: Any = Word("all_reduce")
signal_all: Any = Word("signal_all")
wait: Any = Word("wait")
barrier: Any = Word("barrier")

# Roles and the schedule
role: Any = Word("role")
loader: Any = Word("loader")
consumer: Any = Word("consumer")
storer: Any = Word("storer")
communicator: Any = Word("communicator")
schedule: Any = Word("schedule")
none: Any = Word("none")
intra_sm: Any = Word("intra_sm")
inter_sm: Any = Word("inter_sm")
copy_engine: Any = Word("copy_engine")
natural: Any = Word("natural")
local_first: Any = Word("local_first")
local_last: Any = Word("local_last")
push: Any = Word("push")

__all__ = [
    "all_reduce",
    "barrier",
    "bf16",
    "blocks",
    "cast",
    "communicator",
    "const",
    "consumer",
    "copy_engine",
    "dims",
    "e4m3",
    "e5m2",
    "erf",
    "exp",
    "exp2",
    "f16",
    "f32",
    "full",
    "gather",
    "i32",
    "inf",
    "inter_sm",
    "intra_sm",
    "kernel",
    "loader",
    "local_first",
    "local_last",
    "log",
    "log2",
    "natural",
    "none",
    "positions",
    "push",
    "rank",
    "ranks",
    "reduce",
    "ring",
    "role",
    "rowmax",
    "rowmin",
    "rowsum",
    "rsqrt",
    "schedule",
    "sigmoid",
    "signal",
    "signal_all",
    "sqrt",
    "store",
    "store_add",
    "storer",
    "tanh",
    "tasks",
    "wait",
    "where",
    "zeros",
]
